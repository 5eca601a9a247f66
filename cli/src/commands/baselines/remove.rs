//! `dynalake baselines drop LAKE LABEL` and `dynalake baselines retain LAKE`.

use dynalake_pipeline::baseline::{self, DropReport, Retention};
use dynalake_pipeline::publish;
use dynalake_pipeline::shell::quoted;
use serde::Serialize;

use crate::World;
use crate::args::{BaselinesDropArgs, BaselinesRetainArgs, Format};
use crate::catalog;
use crate::commands::duckdb::location;
use crate::exit::{Exit, Failure, Outcome};
use crate::holder::holder;
use crate::lake;
use crate::output::{Printer, bytes, number};

#[derive(Debug, Serialize)]
struct Removal {
    lake: String,
    dry_run: bool,
    #[serde(flatten)]
    report: DropReport,
}

pub(super) async fn drop(
    args: &BaselinesDropArgs,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    let before = baseline::current(&store, None).await?;
    let report = baseline::drop(&store, &args.label, args.force, &holder(world), world.now).await?;
    let removal = Removal {
        lake: args.lake.clone(),
        dry_run: false,
        report,
    };
    let exit = print(&removal, args.format, printer)?;
    let was_current = before.is_some_and(|record| record.label == args.label);
    if was_current && store.head(publish::LAKE_SQL).await?.is_some() {
        let script = store.address(publish::LAKE_SQL);
        if let Some(catalog) = catalog::of_lake_if_kept(&store).await? {
            let location = location(&args.lake, &args.s3, world)?;
            publish::lake_sql(&store, &catalog, &location).await?;
            printer.note(format!("{script} written anew"));
        } else {
            printer.note(format!(
                "the views of `{script}` still read it: write them anew with \
                 `dynalake duckdb {} --schemas DIR`",
                quoted(&args.lake)
            ));
        }
    }
    if was_current && args.lake.starts_with("s3://") {
        printer.note(format!(
            "views in Athena still read it: `dynalake sql {} --engine athena` prints them anew",
            quoted(&args.lake)
        ));
    }
    Ok(exit)
}

pub(super) async fn retain(
    args: &BaselinesRetainArgs,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let retention = match (args.newest, args.days) {
        (Some(newest), None) => Retention::Newest(usize::from(newest)),
        (None, Some(days)) => Retention::Days(days),
        _ => {
            return Err(Failure::usage("it is not said what to keep")
                .hint("give `--newest N` or `--days D`"));
        }
    };
    let store = lake::existing(&args.lake, &args.s3).await?;
    let report = if args.dry_run {
        let records = baseline::list(&store).await?;
        let mut report = DropReport::default();
        for record in baseline::retention_plan(&records, retention, world.now) {
            report.labels.push(record.label.clone());
            for counts in record.tables.values() {
                report.objects += counts.objects;
                report.bytes += counts.bytes;
            }
        }
        report
    } else {
        baseline::retain(&store, retention, &holder(world), world.now).await?
    };
    let removal = Removal {
        lake: args.lake.clone(),
        dry_run: args.dry_run,
        report,
    };
    print(&removal, args.format, printer)
}

fn print(removal: &Removal, format: Format, printer: &mut Printer) -> Outcome {
    if format == Format::Json {
        printer.json(removal)?;
        return Ok(Exit::Ok);
    }
    let report = &removal.report;
    if report.labels.is_empty() {
        printer.note("nothing to remove");
        return Ok(Exit::Ok);
    }
    for label in &report.labels {
        printer.line(label)?;
    }
    printer.note(format!(
        "{} {} baselines, {} objects, {}",
        if removal.dry_run {
            "would remove"
        } else {
            "removed"
        },
        number(u64::try_from(report.labels.len()).unwrap_or(u64::MAX)),
        number(report.objects),
        bytes(report.bytes)
    ));
    Ok(Exit::Ok)
}
