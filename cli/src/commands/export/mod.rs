//! `dynalake export convert SOURCE`: a full export becomes snapshot tables.

mod progress;

use std::path::Path;
use std::sync::Arc;

use dynalake_export_job::{
    ConvertOptions, ConvertReport, ExportError, Progress, RefusalKind, Source, convert,
};
use dynalake_pipeline::store::LakeUri;

use self::progress::{Bar, Lines};
use super::report::{quarantine_lines, value_counts};
use crate::World;
use crate::args::{ConvertArgs, Format};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, bytes, number};

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
    let outcome = convert(&source, &store, catalog, &secrets, &options(args), progress).await;
    if let Some(bar) = bar {
        bar.clear();
    }
    let report = outcome.map_err(failure)?;
    for warning in &report.warnings {
        printer.warning(warning);
    }
    match args.format {
        Format::Json => printer.json(&report)?,
        Format::Table => {
            print(&report, printer)?;
            if report.quarantined > 0 {
                printer.note(format!("see why: `dynalake quarantine show {}`", args.lake));
            }
        }
    }
    Ok(Exit::Ok)
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

fn options(args: &ConvertArgs) -> ConvertOptions {
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
