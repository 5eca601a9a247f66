//! `dynalake compact LAKE`: the small change objects of closed days become few large ones.

use std::io::Write;

use dynalake_pipeline::compact::{
    CompactError, CompactOptions, CompactReport, DayReport, ObjectCounts, Watch, compact,
};
use dynalake_pipeline::time::parse_iso_date;
use serde::Serialize;

use crate::World;
use crate::args::{CompactArgs, Format};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, bytes, number};

const MEGABYTE: u32 = 1 << 20;
const HOUR_MS: i64 = 3_600_000;

#[derive(Debug, Serialize)]
struct Compacted<'a> {
    lake: &'a str,
    #[serde(flatten)]
    report: &'a CompactReport,
}

/// Tells on stderr what has been merged: large lakes take hours.
struct Lines;

impl Watch for Lines {
    fn merged(&self, table: &str, day: &str, inputs: u64, outputs: u64) {
        // Nothing can be done about a closed stderr.
        drop(writeln!(
            std::io::stderr(),
            "{table} {day}: {inputs} objects merged into {outputs}"
        ));
    }
}

pub(super) async fn run(args: &CompactArgs, world: &World, printer: &mut Printer) -> Outcome {
    let options = options(args, world)?;
    let store = lake::existing(&args.lake, &args.s3).await?;
    let catalog = catalog::of_lake(args.schemas.as_deref(), &store, printer).await?;
    let report = compact(&store, &catalog, &options, &Lines)
        .await
        .map_err(failure)?;
    match args.format {
        Format::Json => printer.json(&Compacted {
            lake: &args.lake,
            report: &report,
        })?,
        Format::Table => print(&report, printer)?,
    }
    for problem in &report.problems {
        printer.warning(problem);
    }
    Ok(if report.problems.is_empty() {
        Exit::Ok
    } else {
        Exit::Findings
    })
}

fn options(args: &CompactArgs, world: &World) -> Outcome<CompactOptions> {
    let mut options = CompactOptions {
        target_bytes: u64::from(args.target_mb) * u64::from(MEGABYTE),
        grace_ms: i64::from(args.grace_hours) * HOUR_MS,
        spool: args.spool.clone(),
        dry_run: args.dry_run,
        ..CompactOptions::at(world.now)
    };
    if let Some(megabytes) = args.memory_mb {
        options.memory_bytes =
            usize::try_from(u64::from(megabytes) * u64::from(MEGABYTE)).unwrap_or(usize::MAX);
    }
    if let Some(day) = &args.before {
        options.before = parse_iso_date(day).ok_or_else(|| {
            Failure::usage(format!("`{day}` is not a day")).hint("give it as `YYYY-MM-DD`")
        })?;
    }
    Ok(options)
}

fn failure(error: CompactError) -> Failure {
    match error {
        CompactError::Store(error) => {
            Failure::from(error).hint("started again, the compaction goes on where it stopped")
        }
        spool @ CompactError::Spool { .. } => Failure::usage(spool),
        other => Failure::remote(other),
    }
}

fn print(report: &CompactReport, printer: &mut Printer) -> Outcome<()> {
    let days: Vec<(&str, &DayReport)> = report
        .tables
        .iter()
        .flat_map(|(table, days)| days.iter().map(move |day| (table.as_str(), day)))
        .collect();
    if days.is_empty() {
        printer.note(format!("nothing to merge before {}", report.before));
    } else {
        printer.table(&sheet(report, &days))?;
    }
    if report.dry_run {
        printer.note("nothing was written (`--dry-run`)");
        return Ok(());
    }
    if !days.is_empty() {
        printer.line(format!(
            "{} became {}",
            counts(report.objects_before),
            counts(report.objects_after)
        ))?;
    }
    if report.deleted.objects > 0 {
        printer.note(format!("deleted {}", counts(report.deleted)));
    }
    if report.in_grace.objects > 0 {
        printer.note(format!(
            "{} are no longer needed; a later `dynalake compact` deletes them, when queries that \
             may still read them are over",
            counts(report.in_grace)
        ));
    }
    Ok(())
}

fn sheet(report: &CompactReport, days: &[(&str, &DayReport)]) -> Sheet {
    let columns = [
        ("table", Align::Left),
        ("day", Align::Left),
        ("objects", Align::Right),
        ("bytes", Align::Right),
        ("merged", Align::Right),
        ("objects after", Align::Right),
        ("bytes after", Align::Right),
        ("duplicates", Align::Right),
    ];
    let shown = if report.dry_run { 5 } else { columns.len() };
    let mut sheet = Sheet::new(columns.into_iter().take(shown));
    for (table, day) in days {
        let cells = [
            (*table).to_owned(),
            day.day.clone(),
            number(day.before.objects),
            bytes(day.before.bytes),
            number(day.merged),
            number(day.after.objects),
            bytes(day.after.bytes),
            number(day.duplicates),
        ];
        sheet.row(cells.into_iter().take(shown));
    }
    sheet
}

fn counts(counts: ObjectCounts) -> String {
    let noun = match counts.objects {
        1 => "object",
        _ => "objects",
    };
    format!("{} {noun}, {}", number(counts.objects), bytes(counts.bytes))
}
