//! The conversion of a whole export.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dynalake_pipeline::pipeline::{Partitioning, Pipeline, Secrets};
use dynalake_pipeline::store::{ObjectReader, Store};
use dynalake_schemas::Catalog;
use futures::StreamExt;
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;

use crate::error::{ExportError, RefusalKind};
use crate::lake::{Claim, Lake, Replacer};
use crate::locate::{self, Export, Located};
use crate::manifest::ExportKind;
use crate::options::{ConvertOptions, Progress};
use crate::report::ConvertReport;
use crate::source::Source;
use crate::state::{Complete, FileRecord, Plan};
use crate::threads::Threads;
use crate::worker::{Job, convert_data_file};

const MEGABYTE: u64 = 1024 * 1024;
/// Least bytes of decoded rows for a worker; less makes uselessly small row groups.
const MIN_ROW_GROUP: u64 = MEGABYTE;

/// Converts a full export into snapshot objects of a lake, and gives what came of it.
///
/// Data files that an earlier run finished are not touched again; `complete.json` is written last.
/// Two conversions of one export at once do the work twice and write the same bytes. Needs a Tokio
/// runtime; data files are converted on its blocking threads. Dropping the future stops them.
///
/// # Errors
/// A refusal names the file at fault, and nothing of the export counts as published. Other errors
/// (store, disk) leave what is whole in the lake for the next run to go on with.
pub async fn convert(
    source: &Source,
    lake: &Store,
    catalog: Arc<Catalog>,
    secrets: &Secrets,
    options: &ConvertOptions,
    progress: Arc<dyn Progress>,
) -> Result<ConvertReport, ExportError> {
    // A missing secret is better told before anything is read.
    Pipeline::new(Arc::clone(&catalog), secrets, Partitioning::Whole)
        .map_err(ExportError::Setup)?;
    let export = locate::open(source, catalog.source.table.as_deref()).await?;
    let lake = Arc::new(Lake::new(lake.clone(), options.stop_after_puts));
    let incremental = matches!(export.summary.kind, ExportKind::Incremental { .. });
    // No reader looks at the rows of an incremental export: they may be replaced at any time.
    let replacer = (options.replace || incremental).then_some(Replacer {
        holder: &options.holder,
        now_ms: options.now_ms,
    });
    if !incremental {
        let claim = Claim {
            export_id: export.summary.export_id.clone(),
            export_arn: export.summary.export_arn.clone(),
        };
        lake.claim_second(&claim, &export.summary.label, replacer.as_ref())
            .await?;
    }

    let memory = megabytes(options.memory_mb);
    let workers = workers(options, export.files.len());
    let row_group_bytes = (memory / count(workers)).max(MIN_ROW_GROUP);
    let object_bytes = megabytes(options.object_mb).max(MEGABYTE);
    let plan = Plan::new(
        &export.summary,
        &catalog,
        secrets,
        row_group_bytes,
        object_bytes,
    );
    let plan = lake.agree(plan, replacer.as_ref()).await?;
    lake.keep_schemas(&plan, &catalog).await?;
    // The plan of an earlier run, on a larger machine, may need more memory per worker.
    let affordable = usize::try_from(memory / plan.row_group_bytes.max(1)).unwrap_or(usize::MAX);
    let workers = workers.min(affordable).max(1);

    let finished = lake.finished(&plan, &export).await?;
    let bytes = export.files.iter().map(|file| file.size).sum();
    progress.planned(count(export.files.len()), export.summary.item_count, bytes);
    for record in finished.values() {
        progress.advanced(record.report.records, record.bytes_in);
        progress.file_done(&record.data_file, true);
    }
    let job = Arc::new(Job {
        catalog,
        secrets: secrets.clone(),
        plan,
        summary: export.summary.clone(),
        spool: options.spool.clone(),
        progress,
        stop: Arc::new(AtomicBool::new(false)),
    });
    let todo: Vec<Located> = export
        .files
        .iter()
        .filter(|file| !finished.contains_key(&file.file.name))
        .cloned()
        .collect();
    let converted = run(source, &lake, &job, todo, workers).await?;
    let report = total(export, &finished, &converted)?;
    lake.put_complete(&complete(&report, &job.plan)).await?;
    Ok(report)
}

/// Converts data files, so many at once. After a failure no more are begun, and the first failure is
/// given once those under way have stopped.
async fn run(
    source: &Source,
    lake: &Arc<Lake>,
    job: &Arc<Job>,
    files: Vec<Located>,
    workers: usize,
) -> Result<Vec<FileRecord>, ExportError> {
    let _stop = StopOnDrop(Arc::clone(&job.stop));
    let threads = Threads::start(workers).map_err(|source| ExportError::Spool {
        path: "(threads)".into(),
        source,
    })?;
    let mut outcomes = futures::stream::iter(files)
        .map(|file| Box::pin(one_file(source, lake, job, file, &threads)))
        .buffer_unordered(workers);
    let mut records = Vec::new();
    let mut failure = None;
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Ok(record) => records.push(record),
            Err(error) => {
                job.stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(records),
    }
}

async fn one_file(
    source: &Source,
    lake: &Lake,
    job: &Arc<Job>,
    file: Located,
    threads: &Threads,
) -> Result<FileRecord, ExportError> {
    if job.stop.load(Ordering::Relaxed) {
        return Err(ExportError::Stopped);
    }
    let reader = source.store().open_read(&file.key).await?;
    let compressed = Blocking {
        reader,
        runtime: Handle::current(),
    };
    let task = {
        let (job, file) = (Arc::clone(job), file.clone());
        threads.run(move || convert_data_file(&job, &file, compressed))
    };
    let converted = task.await.ok_or_else(|| ExportError::Worker {
        file: file.address.clone(),
        message: "the worker panicked".to_owned(),
    })??;
    for object in &converted.objects {
        lake.put_object(object).await?;
    }
    let record = FileRecord::new(&job.plan, &file, converted);
    lake.put_file_record(&job.plan, &record).await?;
    job.progress.file_done(&file.file.name, false);
    Ok(record)
}

/// An object's bytes for a blocking thread.
struct Blocking {
    reader: ObjectReader,
    runtime: Handle,
}

impl io::Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.runtime.block_on(self.reader.read(buffer))
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Adds everything up and checks it against the summary.
fn total(
    export: Export,
    finished: &BTreeMap<String, FileRecord>,
    converted: &[FileRecord],
) -> Result<ConvertReport, ExportError> {
    let summary = export.summary;
    let mut report = ConvertReport {
        export_id: summary.export_id,
        export_arn: summary.export_arn,
        table_arn: summary.table_arn,
        kind: summary.kind.into(),
        from_time: match summary.kind {
            ExportKind::Full { .. } => None,
            ExportKind::Incremental { from, .. } => Some(from),
        },
        export_time: summary.kind.at_ms(),
        label: summary.label,
        warnings: export.warnings,
        ..ConvertReport::default()
    };
    report.files.total = count(export.files.len());
    report.files.converted = count(converted.len());
    report.files.resumed = count(finished.len());
    let mut records: Vec<&FileRecord> = finished.values().chain(converted).collect();
    records.sort_by(|a, b| a.data_file.cmp(&b.data_file));
    for record in records {
        report.bytes_in += record.bytes_in;
        report.add(&record.report);
        report.without_keys += record.without_keys;
        for object in &record.objects {
            if object.table.is_empty() {
                report.quarantine_objects.push(object.key.clone());
            } else {
                report.add_object(&object.table, object.bytes);
            }
        }
    }
    if report.accounted() != report.items {
        return Err(ExportError::Unaccounted {
            file: report.export_arn.clone(),
            items: report.items,
            accounted: report.accounted(),
        });
    }
    if report.items != summary.item_count
        || report.files.converted + report.files.resumed != report.files.total
    {
        return Err(ExportError::refused(
            RefusalKind::CountMismatch,
            report.export_arn,
            format!(
                "{} items in {} data files were converted, the manifests say {} in {}",
                report.items,
                report.files.converted + report.files.resumed,
                summary.item_count,
                report.files.total
            ),
            "copy the export again",
        ));
    }
    Ok(report)
}

fn complete(report: &ConvertReport, plan: &Plan) -> Complete {
    Complete {
        format: plan.format,
        kind: plan.kind,
        from_time: report.from_time,
        export_id: report.export_id.clone(),
        export_arn: report.export_arn.clone(),
        table_arn: report.table_arn.clone(),
        export_time: report.export_time,
        label: report.label.clone(),
        catalog: plan.catalog.clone(),
        items: report.items,
        quarantined: report.quarantined,
        files: report.files.total,
        tables: report.tables.clone(),
    }
}

fn workers(options: &ConvertOptions, files: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    options
        .workers
        .map_or_else(cores, NonZeroUsize::get)
        .min(files)
        .max(1)
}

fn megabytes(number: usize) -> u64 {
    count(number).saturating_mul(MEGABYTE)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
