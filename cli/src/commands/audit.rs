//! `dynalake audit LAKE --against EXPORT`: does the lake say what the export says?

use std::path::Path;

use dynalake_pipeline::audit::{self, AuditReport, Verdict};
use dynalake_pipeline::baseline;
use dynalake_pipeline::current::{CurrentError, MergeOptions};
use dynalake_pipeline::store::Store;
use dynalake_pipeline::time;
use dynalake_schemas::Catalog;

use crate::World;
use crate::args::{AuditArgs, Format};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, number};

/// Samples of what is not equal that a report keeps per table.
pub(super) const SAMPLES: usize = 10;
/// Memory for merging, in bytes.
const MEMORY_BYTES: usize = 256 << 20;

pub(super) async fn run(args: &AuditArgs, world: &World, printer: &mut Printer) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    let label = match &args.against {
        Some(label) => label.clone(),
        None => match baseline::current(&store, None).await? {
            Some(record) => record.label,
            None => {
                return Err(Failure::usage("the lake has no committed baseline")
                    .hint("name a converted export: `--against YYYYMMDDTHHMMSSZ`"));
            }
        },
    };
    if args.against.is_some() {
        check_export(&store, &label).await?;
    }
    let catalog = catalog::of_export(args.schemas.as_deref(), &store, &label, printer).await?;
    let report = audited(
        &store,
        &catalog,
        &label,
        args.samples,
        args.spool.as_deref(),
    )
    .await?;
    match args.format {
        Format::Json => {
            printer.json(&report)?;
            // For whoever collects the log.
            printer.note(report.metric_line(world.now));
        }
        Format::Table => print(&report, printer)?,
    }
    Ok(if report.verdict() == Verdict::Different {
        Exit::Findings
    } else {
        Exit::Ok
    })
}

/// An export that was not converted is not an empty one.
async fn check_export(store: &Store, label: &str) -> Outcome<()> {
    if baseline::list(store)
        .await?
        .iter()
        .any(|record| record.label == label)
    {
        return Ok(());
    }
    let part = format!("/export={label}/");
    if store
        .list("snapshot/")
        .await?
        .iter()
        .any(|object| object.key.contains(&part))
    {
        return Ok(());
    }
    Err(
        Failure::usage(format!("the lake has no rows of an export `{label}`")).hint(
            "labels look like 20260501T000000Z; `dynalake tables LAKE` lists the exports it has",
        ),
    )
}

/// Audits and keeps the report in the lake.
pub(super) async fn audited(
    store: &Store,
    catalog: &Catalog,
    label: &str,
    samples: usize,
    spool: Option<&Path>,
) -> Outcome<AuditReport> {
    let Some((at_ms, true)) = time::parse_pattern(label, "%Y%m%dT%H%M%SZ") else {
        return Err(
            Failure::usage(format!("`{label}` is not the label of an export"))
                .hint("labels look like 20260501T000000Z; `dynalake tables LAKE` lists them"),
        );
    };
    let spool = match spool {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let spool = spool
        .map_err(|error| Failure::usage(format!("no temporary folder can be made: {error}")))?;
    let options = MergeOptions {
        memory_bytes: MEMORY_BYTES,
        spool: spool.path().to_owned(),
    };
    let report = audit::audit(store, catalog, label, at_ms, samples, &options).await;
    let report = report.map_err(failure)?;
    audit::store_report(store, &report).await.map_err(failure)?;
    Ok(report)
}

fn failure(error: CurrentError) -> Failure {
    match error {
        CurrentError::Store(error) => Failure::from(error),
        error => Failure::remote(error),
    }
}

/// The report for people.
pub(super) fn print(report: &AuditReport, printer: &mut Printer) -> Outcome<()> {
    let Some(older) = &report.older else {
        printer.line(format!(
            "export {} is the first baseline: there is nothing to compare it with",
            report.label
        ))?;
        return Ok(());
    };
    let right = Align::Right;
    let mut sheet = Sheet::new([
        ("table", Align::Left),
        ("equal", right),
        ("missing", right),
        ("extra", right),
        ("different", right),
        ("too near to say", right),
        ("attributes that differ", Align::Left),
    ]);
    for (table, counts) in &report.tables {
        let attributes: Vec<String> = counts
            .attributes
            .iter()
            .map(|(name, count)| format!("{name} ({count})"))
            .collect();
        sheet.row([
            table.clone(),
            number(counts.equal),
            number(counts.missing),
            number(counts.extra),
            number(counts.different),
            number(counts.unsure),
            attributes.join(", "),
        ]);
    }
    printer.table(&sheet)?;
    let said = if report.verdict() == Verdict::Equal {
        format!(
            "the lake on baseline {older} says what export {} says",
            report.label
        )
    } else {
        format!(
            "the lake on baseline {older} differs from export {} in {} items; missing are those it \
             lost, extra are those it kept; the new baseline repairs them",
            report.label,
            number(report.differences())
        )
    };
    printer.line(said)?;
    Ok(())
}
