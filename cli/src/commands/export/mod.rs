//! `dynalake export convert SOURCE...`: a full export becomes snapshot tables and a baseline, or
//! incremental ones roll the baseline before them forward.

mod incremental;
mod progress;
#[cfg(feature = "cloud")]
pub(super) mod request;

use std::path::Path;
use std::sync::Arc;

use dynalake_export_job::manifest::{ExportKind, Summary};
use dynalake_export_job::report::TableOutcome;
use dynalake_export_job::state::StateKind;
use dynalake_export_job::{
    ConvertOptions, ConvertReport, ExportError, Progress, RefusalKind, Source, commit_export,
    convert, read_summary,
};
use dynalake_pipeline::audit::{AuditReport, Verdict, report_key};
use dynalake_pipeline::baseline::{self, CommitOutcome};
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::publish;
use dynalake_pipeline::shell::quoted;
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

/// What every step of a conversion needs.
struct Work<'a> {
    args: &'a ConvertArgs,
    world: &'a World,
    catalog: Arc<Catalog>,
    secrets: Secrets,
    store: Store,
}

impl Baseline {
    /// What became of the baseline of this label.
    fn words(self, label: &str) -> String {
        match self {
            Self::Committed => format!("committed as baseline {label}"),
            Self::Unchanged => format!("is baseline {label} already"),
            Self::NotCommitted => {
                "not committed: readers take it once this is run without `--no-commit`".to_owned()
            }
        }
    }
}

pub(super) async fn run(args: &ConvertArgs, world: &World, printer: &mut Printer) -> Outcome {
    let catalog = catalog::load(&args.schemas)?;
    let secrets = catalog::secrets(world)?;
    let mut exports = Vec::new();
    for text in &args.sources {
        let source = source(args, text).await?;
        let summary = read_summary(&source, catalog.source.table.as_deref()).await;
        exports.push((source, summary.map_err(failure)?));
    }
    let store = lake::writable(&args.lake, &args.s3).await?;
    let work = Work {
        args,
        world,
        catalog,
        secrets,
        store,
    };
    let is_full = |summary: &Summary| matches!(summary.kind, ExportKind::Full { .. });
    match exports.as_slice() {
        [(source, summary)] if is_full(summary) => full(&work, source, printer).await,
        several if several.iter().any(|(_, summary)| is_full(summary)) => Err(Failure::usage(
            "a full export is a baseline of its own, and is converted alone",
        )
        .hint("convert full exports one by one; incremental ones may be given together")),
        windows => incremental::run(&work, windows, printer).await,
    }
}

/// Converts one export, of whatever kind, with its progress shown.
async fn converted(
    work: &Work<'_>,
    source: &Source,
    printer: &mut Printer,
) -> Outcome<ConvertReport> {
    let bar = printer.is_watched().then(|| Arc::new(Bar::new()));
    let progress: Arc<dyn Progress> = match &bar {
        Some(bar) => Arc::<Bar>::clone(bar),
        None => Arc::new(Lines::default()),
    };
    let outcome = convert(
        source,
        &work.store,
        Arc::clone(&work.catalog),
        &work.secrets,
        &options(work.args, work.world),
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
    Ok(report)
}

async fn full(work: &Work<'_>, source: &Source, printer: &mut Printer) -> Outcome {
    let args = work.args;
    let report = converted(work, source, printer).await?;
    let baseline = commit(work, &report.export_id, printer).await?;
    let audit = audit(work, &report.label, baseline, printer).await?;
    publish(work, printer).await?;
    match args.format {
        Format::Json => printer.json(&Converted {
            report: &report,
            baseline,
            audit: audit.as_ref(),
        })?,
        Format::Table => {
            print(&report, printer)?;
            printer.line(baseline.words(&report.label))?;
            if report.quarantined > 0 {
                printer.note(format!(
                    "see why: `dynalake quarantine show {}`",
                    quoted(&args.lake)
                ));
            }
        }
    }
    Ok(Exit::Ok)
}

/// Commits the export, unless told not to, and says which baseline readers take.
async fn commit(work: &Work<'_>, export_id: &str, printer: &mut Printer) -> Outcome<Baseline> {
    if work.args.no_commit {
        return Ok(Baseline::NotCommitted);
    }
    let (store, world) = (&work.store, work.world);
    let committed = commit_export(store, export_id, &holder(world), world.now).await;
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
    work: &Work<'_>,
    label: &str,
    baseline: Baseline,
    printer: &mut Printer,
) -> Outcome<Option<AuditReport>> {
    let Work {
        args,
        world,
        catalog,
        store,
        ..
    } = work;
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
            quoted(&args.lake)
        ));
    }
    if report.verdict() != Verdict::First && args.format == Format::Json {
        printer.note(report.metric_line(world.now));
    }
    Ok(Some(report))
}

/// Writes the local views anew, where the lake has them.
async fn publish(work: &Work<'_>, printer: &mut Printer) -> Outcome<()> {
    if work.args.no_commit {
        return Ok(());
    }
    let location = super::duckdb::location(&work.args.lake, &work.args.s3, work.world)?;
    if publish::refresh_lake_sql(&work.store, &work.catalog, &location).await? {
        let script = work.store.address(publish::LAKE_SQL);
        printer.note(format!("{script} written anew"));
    }
    Ok(())
}

async fn source(args: &ConvertArgs, text: &str) -> Outcome<Source> {
    match lake::parse(text)? {
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
    let sum = |of: fn(&TableOutcome) -> u64| report.tables.values().map(of).sum::<u64>();
    let tombstones = sum(|outcome| outcome.counts.extra_tombstones);
    let rows = sum(|outcome| outcome.counts.rows) - tombstones;
    let (items, in_quarantine) = (number(report.items), number(report.quarantined));
    let rows = number(rows);
    match report.kind {
        StateKind::Incremental => printer.line(format!(
            "{items} changes = {rows} rows + {in_quarantine} in quarantine, and {} tombstones in \
             tables that items may have left",
            number(tombstones)
        ))?,
        _ => printer.line(format!(
            "{items} items = {rows} rows + {in_quarantine} in quarantine"
        ))?,
    }
    quarantine_lines(&report.quarantine_reasons, printer)
}
