//! `dynalake estimate`: what a deployment costs a month, by service, with the arithmetic.

use serde::Serialize;

use crate::args::{EstimateArgs, Format};
use crate::estimate::{self, Estimate, Load, PriceList};
use crate::exit::{Exit, Outcome};
use crate::output::{Align, Printer, Sheet};

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    estimate: Estimate,
    prices: PriceList,
}

pub(super) fn run(args: &EstimateArgs, printer: &mut Printer) -> Outcome {
    let prices = PriceList::load(args.prices.as_deref())?;
    let load = Load {
        changes_per_second: args.changes_per_second,
        item_bytes: args.item_bytes,
        table_gb: args.table_gb,
        entities: f64::from(args.entities),
        exports_per_month: args.exports_per_month,
        incremental_per_month: args.incremental_per_month,
        queried_gb: args.queried_gb,
    };
    let estimate = estimate::estimate(load, &prices);
    match args.format {
        Format::Json => printer.json(&Report { estimate, prices })?,
        Format::Table => print(&estimate, &prices, printer)?,
    }
    Ok(Exit::Ok)
}

fn print(estimate: &Estimate, prices: &PriceList, printer: &mut Printer) -> Outcome<()> {
    let mut sheet = Sheet::new([
        ("quantity", Align::Left),
        ("", Align::Right),
        ("because", Align::Left),
    ]);
    for quantity in &estimate.quantities {
        sheet.row([
            quantity.what.to_owned(),
            estimate::figure(quantity.value),
            quantity.because.clone(),
        ]);
    }
    printer.table(&sheet)?;
    printer.line("")?;
    let mut sheet = Sheet::new([
        ("service", Align::Left),
        ("for", Align::Left),
        (prices.currency.as_str(), Align::Right),
        ("arithmetic", Align::Left),
    ]);
    for line in &estimate.lines {
        sheet.row([
            line.service.to_owned(),
            line.what.to_owned(),
            format!("{:.2}", line.cost),
            line.arithmetic(&prices.currency),
        ]);
    }
    sheet.row([
        "all".to_owned(),
        "a month".to_owned(),
        format!("{:.2}", estimate.total),
        String::new(),
    ]);
    printer.table(&sheet)?;
    printer.note(format!(
        "list prices of {} as of {}, without free tiers and taxes; check them: `--prices FILE` takes your own",
        prices.region, prices.as_of
    ));
    Ok(())
}
