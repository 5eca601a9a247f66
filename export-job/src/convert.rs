//! The conversion of a whole export: what lies ahead, the data files, the totals.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dynalake_pipeline::pipeline::{Partitioning, Pipeline, Secrets};
use dynalake_pipeline::store::Store;
use dynalake_schemas::Catalog;
use futures::StreamExt;

use crate::error::{ExportError, RefusalKind};
use crate::file::{FileOutcome, convert_file};
use crate::lake::{Claim, Lake, Replacer};
use crate::locate::{self, Export, Located};
use crate::manifest::ExportKind;
use crate::options::{ConvertOptions, Progress};
use crate::report::ConvertReport;
use crate::source::Source;
use crate::state::{Complete, FileRecord, Plan, Sizes};
use crate::threads::Threads;
use crate::worker::Job;

const MEGABYTE: u64 = 1024 * 1024;
/// Least bytes of decoded rows for a worker; less makes uselessly small row groups.
const MIN_ROW_GROUP: u64 = MEGABYTE;
/// Most; more makes readers hold uselessly much at a time.
const MAX_ROW_GROUP: u64 = 256 * MEGABYTE;

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
    let begun = begin(source, lake, &catalog, secrets, options).await?;
    begun.tell(&*progress);
    // The plan of an earlier run, on a larger machine, may need more memory per worker.
    let affordable = megabytes(options.memory_mb) / begun.plan.row_group_bytes.max(1);
    let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
    let workers = workers(options, begun.export.files.len())
        .min(affordable)
        .max(1);
    let job = Arc::new(Job {
        catalog,
        secrets: secrets.clone(),
        plan: begun.plan.clone(),
        summary: begun.export.summary.clone(),
        spool: options.spool.clone(),
        progress,
        stop: Arc::new(AtomicBool::new(false)),
    });
    let todo: Vec<Located> = begun.todo().cloned().collect();
    let converted = run(source, &begun.lake, &job, todo, workers).await?;
    let resumed = count(begun.finished.len());
    let mut records = begun.finished;
    records.extend(converted);
    let mut report = finish_counts(begun.export, &records)?;
    report.files.converted -= resumed;
    report.files.resumed = resumed;
    begun
        .lake
        .put_complete(&complete(&report, &begun.plan))
        .await?;
    Ok(report)
}

/// A conversion of which everything is known that lies ahead.
pub(crate) struct Begun {
    pub(crate) export: Export,
    pub(crate) lake: Arc<Lake>,
    pub(crate) plan: Plan,
    /// Data files that are whole in the lake already.
    pub(crate) finished: BTreeMap<String, FileRecord>,
}

impl Begun {
    /// Data files that are not whole in the lake, in the order of their names.
    pub(crate) fn todo(&self) -> impl Iterator<Item = &Located> {
        let is_open = |file: &&Located| !self.finished.contains_key(&file.file.name);
        self.export.files.iter().filter(is_open)
    }

    fn tell(&self, progress: &dyn Progress) {
        let bytes = self.export.files.iter().map(|file| file.size).sum();
        let items = self.export.summary.item_count;
        progress.planned(count(self.export.files.len()), items, bytes);
        for record in self.finished.values() {
            progress.advanced(record.report.records, record.bytes_in);
            progress.file_done(&record.data_file, true);
        }
    }
}

/// Reads and verifies the manifests, finds the data files, claims the export's place in the lake, and
/// agrees with earlier runs on a plan.
pub(crate) async fn begin(
    source: &Source,
    lake: &Store,
    catalog: &Arc<Catalog>,
    secrets: &Secrets,
    options: &ConvertOptions,
) -> Result<Begun, ExportError> {
    // A missing secret is better told before anything is read.
    Pipeline::new(Arc::clone(catalog), secrets, Partitioning::Whole).map_err(ExportError::Setup)?;
    let export = locate::open(source, options.source_table(catalog)).await?;
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
    let workers = count(workers(options, export.files.len()));
    let sizes = Sizes {
        row_group: (megabytes(options.memory_mb) / workers).clamp(MIN_ROW_GROUP, MAX_ROW_GROUP),
        object: megabytes(options.object_mb).max(MEGABYTE),
        part: options.part_bytes,
    };
    let plan = Plan::new(&export.summary, catalog, secrets, sizes);
    let plan = lake.agree(plan, replacer.as_ref()).await?;
    lake.keep_schemas(&plan, catalog).await?;
    let finished = lake.finished(&plan, &export).await?;
    Ok(Begun {
        export,
        lake,
        plan,
        finished,
    })
}

/// Converts data files, so many at once. After a failure no more are begun, and the first failure is
/// given once those under way have stopped.
async fn run(
    source: &Source,
    lake: &Arc<Lake>,
    job: &Arc<Job>,
    files: Vec<Located>,
    workers: usize,
) -> Result<BTreeMap<String, FileRecord>, ExportError> {
    let _stop = StopOnDrop(Arc::clone(&job.stop));
    let threads = Threads::start(workers).map_err(|source| ExportError::Spool {
        path: "(threads)".into(),
        source,
    })?;
    let mut outcomes = futures::stream::iter(files)
        .map(|file| Box::pin(one_file(source.store(), lake, job, file, &threads)))
        .buffer_unordered(workers);
    let mut records = BTreeMap::new();
    let mut failure = None;
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Ok(record) => {
                records.insert(record.data_file.clone(), record);
            }
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
    source: &Store,
    lake: &Arc<Lake>,
    job: &Arc<Job>,
    file: Located,
    threads: &Threads,
) -> Result<FileRecord, ExportError> {
    match convert_file(source, lake, job, file, threads, Arc::new(|| true)).await? {
        FileOutcome::Whole(record) => Ok(*record),
        FileOutcome::Paused => Err(ExportError::Stopped),
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Adds everything up and checks it against the summary. `records` are those of the data files, by name.
pub(crate) fn finish_counts(
    export: Export,
    records: &BTreeMap<String, FileRecord>,
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
    report.files.converted = count(records.len());
    for record in records.values() {
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
    if report.items != summary.item_count || report.files.converted != report.files.total {
        return Err(ExportError::refused(
            RefusalKind::CountMismatch,
            report.export_arn,
            format!(
                "{} items in {} data files were converted, the manifests say {} in {}",
                report.items, report.files.converted, summary.item_count, report.files.total
            ),
            "copy the export again",
        ));
    }
    Ok(report)
}

pub(crate) fn complete(report: &ConvertReport, plan: &Plan) -> Complete {
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
