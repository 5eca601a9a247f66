//! Incremental exports: each becomes rows, and all together roll a baseline forward.

use std::sync::Arc;

use dynalake_export_job::manifest::Summary;
use dynalake_export_job::roll::{Chain, RollOptions, RollReport, Watch, Window, chain, roll};
use dynalake_export_job::{ConvertReport, Source};
use dynalake_pipeline::audit::AuditReport;
use dynalake_pipeline::baseline;
use dynalake_pipeline::shell::{quoted, quoted_path};
use serde::Serialize;

use super::progress::{RollBar, RollLines};
use super::{Baseline, Work, audit, commit, converted, failure, options, print, publish};
use crate::args::Format;
use crate::exit::{Exit, Outcome};
use crate::output::{Align, Printer, Sheet, bytes, number};

/// Part of the memory that a row group may take, which is held about three times.
const ROW_GROUP_PART: usize = 4;

/// The report for programs.
#[derive(Debug, Serialize)]
struct Rolled<'a> {
    /// The incremental exports that were converted now or before, in the order of their windows.
    exports: &'a [ConvertReport],
    roll: &'a RollReport,
    baseline: Baseline,
    /// How the lake compared with it, where it was committed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<&'a AuditReport>,
}

pub(super) async fn run(
    work: &Work<'_>,
    exports: &[(Source, Summary)],
    printer: &mut Printer,
) -> Outcome {
    let args = work.args;
    let end = format!(
        "--lake {} --schemas {}",
        quoted(&args.lake),
        quoted_path(&args.schemas)
    );
    // What is missing is better told before anything is converted.
    let baselines = baseline::list(&work.store).await?;
    let windows = exports
        .iter()
        .filter_map(|(_, summary)| Window::of(summary));
    let windows = match chain(&baselines, windows.collect(), args.replace, &end).map_err(failure)? {
        Chain::Done(record) => return done(work, &record, printer).await,
        Chain::Roll(_, windows) => windows,
    };
    let mut reports = Vec::new();
    for window in &windows {
        let of_window = |(_, summary): &&(Source, Summary)| summary.export_id == window.export_id;
        if let Some((source, _)) = exports.iter().find(of_window) {
            let report = converted(work, source, printer).await?;
            if args.format == Format::Table {
                print(&report, printer)?;
            }
            if report.without_keys > 0 {
                printer.warning(format!(
                    "{} changes in quarantine do not tell their keys: what the tables have of these \
                     items stays as it was",
                    number(report.without_keys)
                ));
            }
            reports.push(report);
        }
    }
    let report = rolled(work, &reports, end, printer).await?;
    let baseline = commit(work, &report.export_id, printer).await?;
    let audit = audit(work, &report.label, baseline, printer).await?;
    publish(work, printer).await?;
    match args.format {
        Format::Json => printer.json(&Rolled {
            exports: &reports,
            roll: &report,
            baseline,
            audit: audit.as_ref(),
        })?,
        Format::Table => {
            print_roll(&report, printer)?;
            printer.line(baseline.words(&report.label))?;
            if report.quarantined > 0 || reports.iter().any(|report| report.quarantined > 0) {
                printer.note(format!(
                    "see why: `dynalake quarantine show {}`",
                    quoted(&args.lake)
                ));
            }
        }
    }
    Ok(Exit::Ok)
}

/// A baseline of that time is there: at most its audit and the views are left to do.
async fn done(
    work: &Work<'_>,
    record: &baseline::BaselineRecord,
    printer: &mut Printer,
) -> Outcome {
    let audit = audit(work, &record.label, Baseline::Unchanged, printer).await?;
    publish(work, printer).await?;
    match work.args.format {
        Format::Json => printer.json(&Rolled {
            exports: &[],
            roll: &RollReport {
                done: true,
                unchanged: true,
                export_id: record.export_id.clone(),
                label: record.label.clone(),
                at_ms: record.at_ms,
                ..RollReport::default()
            },
            baseline: Baseline::Unchanged,
            audit: audit.as_ref(),
        })?,
        Format::Table => printer.line(Baseline::Unchanged.words(&record.label))?,
    }
    Ok(Exit::Ok)
}

async fn rolled(
    work: &Work<'_>,
    reports: &[ConvertReport],
    command_end: String,
    printer: &mut Printer,
) -> Outcome<RollReport> {
    let convert = options(work.args, work.world);
    let memory_bytes = convert.memory_mb.saturating_mul(1 << 20);
    let defaults = RollOptions::default();
    let options = RollOptions {
        memory_bytes,
        row_group_bytes: defaults.row_group_bytes.min(memory_bytes / ROW_GROUP_PART),
        object_bytes: u64::try_from(convert.object_mb)
            .unwrap_or(u64::MAX)
            .saturating_mul(1 << 20),
        spool: convert.spool,
        replace: convert.replace,
        holder: convert.holder,
        now_ms: convert.now_ms,
        command_end,
    };
    let bar = printer.is_watched().then(|| Arc::new(RollBar::new()));
    let watch: Arc<dyn Watch> = match &bar {
        Some(bar) => Arc::<RollBar>::clone(bar),
        None => Arc::new(RollLines),
    };
    let ids: Vec<String> = reports
        .iter()
        .map(|report| report.export_id.clone())
        .collect();
    let (store, catalog, secrets) = (&work.store, &work.catalog, &work.secrets);
    let outcome = roll(store, catalog, secrets, &ids, &options, watch).await;
    if let Some(bar) = bar {
        bar.clear();
    }
    outcome.map_err(failure)
}

/// The roll for people.
fn print_roll(report: &RollReport, printer: &mut Printer) -> Outcome<()> {
    let again = if report.decoded_again {
        ", decoded again with the present schemas"
    } else {
        ""
    };
    printer.line(format!(
        "baseline {}{again}, rolled forward by {} incremental exports to {}",
        report.base,
        number(u64::try_from(report.windows.len()).unwrap_or(u64::MAX)),
        report.label
    ))?;
    let mut sheet = Sheet::new([
        ("table", Align::Left),
        ("rows before", Align::Right),
        ("rows of windows", Align::Right),
        ("rows", Align::Right),
        ("objects", Align::Right),
        ("bytes", Align::Right),
    ]);
    for (table, rolled) in &report.tables {
        sheet.row([
            table.clone(),
            number(rolled.base_rows),
            number(rolled.window_rows),
            number(rolled.rows),
            number(rolled.objects),
            bytes(rolled.bytes),
        ]);
    }
    printer.table(&sheet)?;
    if report.quarantined > 0 {
        printer.warning(format!(
            "{} items of the baseline do not fit the present schemas and are in quarantine",
            number(report.quarantined)
        ));
    }
    Ok(())
}
