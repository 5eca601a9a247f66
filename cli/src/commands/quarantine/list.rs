//! `dynalake quarantine list LAKE`: counts per object and reason.

use std::collections::BTreeMap;

use dynalake_pipeline::shell::quoted;

use serde::Serialize;

use super::{entries, objects};
use crate::args::{Format, QuarantineListArgs};
use crate::exit::{Exit, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, number};

#[derive(Debug, Serialize)]
struct ListReport {
    lake: String,
    records: u64,
    objects: Vec<ObjectReport>,
}

#[derive(Debug, Serialize)]
struct ObjectReport {
    object: String,
    bytes: u64,
    records: u64,
    reasons: BTreeMap<&'static str, u64>,
}

pub(super) async fn run(args: &QuarantineListArgs, printer: &mut Printer) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    let mut report = ListReport {
        lake: args.lake.clone(),
        records: 0,
        objects: Vec::new(),
    };
    for object in objects(&store, &[]).await? {
        let mut counts = ObjectReport {
            object: object.key.clone(),
            bytes: object.size,
            records: 0,
            reasons: BTreeMap::new(),
        };
        for entry in entries(&store, &object.key).await? {
            counts.records += 1;
            *counts.reasons.entry(entry.reason.as_str()).or_default() += 1;
        }
        report.records += counts.records;
        report.objects.push(counts);
    }
    match args.format {
        Format::Json => printer.json(&report)?,
        Format::Table if report.objects.is_empty() => printer.note("nothing is in quarantine"),
        Format::Table => print(&report, printer)?,
    }
    Ok(Exit::Ok)
}

fn print(report: &ListReport, printer: &mut Printer) -> Outcome<()> {
    let mut sheet = Sheet::new([
        ("object", Align::Left),
        ("reason", Align::Left),
        ("records", Align::Right),
    ]);
    for object in &report.objects {
        for (reason, count) in &object.reasons {
            sheet.row([object.object.clone(), (*reason).to_owned(), number(*count)]);
        }
    }
    printer.table(&sheet)?;
    printer.note(format!(
        "see why: `dynalake quarantine show {}`",
        quoted(&report.lake)
    ));
    Ok(())
}
