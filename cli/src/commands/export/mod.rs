//! `dynalake export convert SOURCE`: a full export becomes snapshot tables and a baseline.

mod progress;
#[cfg(feature = "cloud")]
pub(super) mod request;

use std::path::Path;
use std::sync::Arc;

use dynalake_export_job::{
    ConvertOptions, ConvertReport, ExportError, Progress, RefusalKind, Source, commit_export,
    convert,
};
use dynalake_pipeline::audit::{AuditReport, Verdict, report_key};
use dynalake_pipeline::baseline::{self, CommitOutcome};
use dynalake_pipeline::publish;
use dynalake_pipeline::store::{LakeUri, Store};
use dynalake_schemas::Catalog;
use serde::Serialize;

use self::progress::{Bar, Lines};
use super::audit::{SAMPLES, audited};
use super::report::{quarantine_lines, value_counts};
use crate::World;
use crate::args::{ConvertArgs, Format};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::holder::holder;
use crate::lake;
use crate::output::{Align, Printer, Sheet, bytes, number};

/// The report for programs.
#[derive(Debug, Serialize)]
struct Converted<'a> {
    #[serde(flatten)]
    report: &'a ConvertReport,
    baseline: Baseline,
    /// How the lake compared with it, where it was committed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<&'a AuditReport>,
}

/// What became of the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Baseline {
    /// Committed by this run.
    Committed,
    /// Committed by an earlier run.
    Unchanged,
    /// Not committed, as asked.
    NotCommitted,
}

pub(super) async fn run(args: &ConvertArgs, world: &World, printer: &mut Printer) -> Outcome {
    let catalog = catalog::load(&args.schemas)?;
    let secrets = catalog::secrets(world)?;
    let source = source(args).await?;
    let store = lake::writable(&args.lake, &args.s3).await?;
    let bar = printer.is_watched().then(|| Arc::new(Bar::new()));
    let progress: Arc<dyn Progress> = match &bar {
        Some(bar) => Arc::<Bar>::clone(bar),
        None => Arc::new(Lines::default()),
    };
    let outcome = convert(
        &source,
        &store,
        Arc::clone(&catalog),
        &secrets,
        &options(args, world),
        progress,
    )
    .await;
    if let Some(bar) = bar {
        bar.clear();
    }
    let report = outcome.map_err(failure)?;
    for warning in &report.warnings {
        printer.warning(warning);
    }
    let baseline = commit(args, world, &store, &report, printer).await?;
    let audit = audit(
        args,
        world,
        &store,
        &catalog,
        &report.label,
        baseline,
        printer,
    )
    .await?;
    if !args.no_commit {
        let location = super::duckdb::location(&args.lake, &args.s3, world)?;
        if publish::refresh_lake_sql(&store, &catalog, &location).await? {
            printer.note(format!("{} written anew", store.address(publish::LAKE_SQL)));
        }
    }
    match args.format {
        Format::Json => printer.json(&Converted {
            report: &report,
            baseline,
            audit: audit.as_ref(),
        })?,
        Format::Table => {
            print(&report, printer)?;
            printer.line(match baseline {
                Baseline::Committed => format!("committed as baseline {}", report.label),
                Baseline::Unchanged => format!("is baseline {} already", report.label),
                Baseline::NotCommitted => {
                    "not committed: readers take it once this is run without `--no-commit`"
                        .to_owned()
                }
            })?;
            if report.quarantined > 0 {
                printer.note(format!("see why: `dynalake quarantine show {}`", args.lake));
            }
        }
    }
    Ok(Exit::Ok)
}

/// Commits the export, unless told not to, and says which baseline readers take.
async fn commit(
    args: &ConvertArgs,
    world: &World,
    store: &Store,
    report: &ConvertReport,
    printer: &mut Printer,
) -> Outcome<Baseline> {
    if args.no_commit {
        return Ok(Baseline::NotCommitted);
    }
    let committed = commit_export(store, &report.export_id, &holder(world), world.now).await;
    let (record, outcome) = committed.map_err(failure)?;
    let current = baseline::current(store, None).await?;
    if let Some(newer) = current.filter(|current| current.label != record.label) {
        printer.note(format!(
            "readers keep baseline {}, which is newer than this one",
            newer.label
        ));
    }
    Ok(match outcome {
        CommitOutcome::Committed | CommitOutcome::Replaced => Baseline::Committed,
        CommitOutcome::Unchanged => Baseline::Unchanged,
    })
}

/// Compares a baseline that was just committed with what the lake said before it. A difference is no
/// failure of the conversion: the baseline repairs it. But it is said, aloud.
async fn audit(
    args: &ConvertArgs,
    world: &World,
    store: &Store,
    catalog: &Catalog,
    label: &str,
    baseline: Baseline,
    printer: &mut Printer,
) -> Outcome<Option<AuditReport>> {
    let due = match baseline {
        Baseline::Committed => true,
        // An earlier run was stopped between the commit and its audit.
        Baseline::Unchanged => store.head(&report_key(label)).await?.is_none(),
        Baseline::NotCommitted => false,
    };
    // A first baseline has nothing to differ from.
    let older = baseline::list(store)
        .await?
        .iter()
        .any(|record| record.label.as_str() < label);
    if !due || !older {
        return Ok(None);
    }
    let report = audited(store, catalog, label, SAMPLES, args.spool.as_deref()).await?;
    if report.verdict() == Verdict::Different {
        printer.warning(format!(
            "before this baseline the lake differed from the table in {} items; the baseline \
             repairs them, `dynalake audit {} --against {label}` shows them",
            number(report.differences()),
            args.lake
        ));
    }
    if report.verdict() != Verdict::First && args.format == Format::Json {
        printer.note(report.metric_line(world.now));
    }
    Ok(Some(report))
}

async fn source(args: &ConvertArgs) -> Outcome<Source> {
    match lake::parse(&args.source)? {
        LakeUri::Local(path) => Source::local(Path::new(&path)).map_err(failure),
        LakeUri::S3 { bucket, prefix } => {
            // The whole bucket: data files may lie beside the folder of the manifests.
            let bucket = lake::existing(&format!("s3://{bucket}"), &args.s3).await?;
            Ok(Source::in_store(bucket, &prefix))
        }
    }
}

fn options(args: &ConvertArgs, world: &World) -> ConvertOptions {
    let defaults = ConvertOptions::default();
    let megabytes = |asked: Option<u32>, default: usize| {
        asked
            .and_then(|value| usize::try_from(value).ok())
            .unwrap_or(default)
    };
    ConvertOptions {
        workers: args
            .workers
            .and_then(|workers| usize::from(workers).try_into().ok()),
        memory_mb: megabytes(args.memory_mb, defaults.memory_mb),
        object_mb: megabytes(args.target_mb, defaults.object_mb),
        spool: args.spool.clone(),
        replace: args.replace,
        holder: holder(world),
        now_ms: world.now,
        ..defaults
    }
}

/// What a failed conversion means for the operator.
pub(super) fn failure(error: ExportError) -> Failure {
    match error {
        ExportError::Store(error) => {
            let failure = Failure::from(error);
            failure.hint("started again, the conversion goes on where it stopped")
        }
        ExportError::Refused {
            kind,
            file,
            problem,
            remedy,
        } => {
            let message = format!("`{file}`: {problem}");
            let failure = match kind {
                RefusalKind::NoExport | RefusalKind::OtherTable | RefusalKind::OtherPlan => {
                    Failure::usage(message)
                }
                _ => Failure::findings(message),
            };
            failure.hint(remedy)
        }
        ExportError::Baseline(error) => Failure::from(error),
        ExportError::Setup(message) => Failure::usage(message),
        other => Failure::remote(other),
    }
}

/// The report for people.
fn print(report: &ConvertReport, printer: &mut Printer) -> Outcome<()> {
    let files = report.files;
    let resumed = match files.resumed {
        0 => String::new(),
        resumed => format!(", {} of them by an earlier run", number(resumed)),
    };
    printer.line(format!(
        "export {} ({}): {} data files{resumed}, {}",
        report.label,
        report.export_id,
        number(files.total),
        bytes(report.bytes_in)
    ))?;
    let mut sheet = Sheet::new([
        ("table", Align::Left),
        ("rows", Align::Right),
        ("objects", Align::Right),
        ("bytes", Align::Right),
        ("mismatches", Align::Right),
        ("inexact", Align::Right),
        ("undeclared", Align::Right),
    ]);
    for (table, outcome) in &report.tables {
        let [mismatches, inexact, undeclared] = value_counts(&outcome.counts);
        sheet.row([
            table.clone(),
            number(outcome.counts.rows),
            number(outcome.objects),
            bytes(outcome.bytes),
            mismatches,
            inexact,
            undeclared,
        ]);
    }
    printer.table(&sheet)?;
    let rows: u64 = report
        .tables
        .values()
        .map(|outcome| outcome.counts.rows)
        .sum();
    printer.line(format!(
        "{} items = {} rows + {} in quarantine",
        number(report.items),
        number(rows),
        number(report.quarantined)
    ))?;
    quarantine_lines(&report.quarantine_reasons, printer)
}
