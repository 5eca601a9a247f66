//! The conversion in steps that run anywhere, one data file at a time: for a workflow of functions.
//!
//! ```text
//! plan ─ one WorkItem per data file that is not whole ─► work, in any order, again and again
//! all items done ─► complete (counts against the manifests) ─► commit_export
//! ```
//! Steps share nothing but the lake: each finds the plan there that [`plan`] agreed on, and every one
//! may be repeated, or run twice at once. [`crate::convert`] may begin what steps finish, and the other
//! way round: the plan says how, so the bytes are the same.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::store::Store;
use dynalake_schemas::Catalog;
use serde::{Deserialize, Serialize};

use crate::convert::{begin, complete as complete_record, finish_counts};
use crate::error::{ExportError, RefusalKind};
use crate::file::{FileOutcome, convert_file};
use crate::format::DataFormat;
use crate::lake::Lake;
use crate::locate::{self, Located};
use crate::manifest::{DataFile, md5_text};
use crate::options::{ConvertOptions, Progress};
use crate::report::ConvertReport;
use crate::source::Source;
use crate::state::{Plan, fingerprint, plan_key};
use crate::threads::Threads;
use crate::worker::Job;

/// A lake, and how exports are converted into it.
#[derive(Clone, Copy)]
pub struct Steps<'a> {
    /// The lake.
    pub lake: &'a Store,
    /// The schemas.
    pub catalog: &'a Arc<Catalog>,
    /// Secrets of transforms.
    pub secrets: &'a Secrets,
    /// Settings.
    pub options: &'a ConvertOptions,
}

/// What lies ahead of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkPlan {
    /// The export's id.
    pub export_id: String,
    /// Value of the partition `export=…` that the rows go into.
    pub label: String,
    /// Data files, those that are whole already included.
    pub files: u64,
    /// Items that the manifests promise.
    pub items: u64,
    /// Compressed bytes of all data files.
    pub bytes: u64,
    /// Data files that are not whole in the lake, in the order of their names.
    pub todo: Vec<WorkItem>,
    /// What was not as it should be, but no reason to stop.
    pub warnings: Vec<String>,
}

/// A data file to be converted: a line of the work list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkItem {
    /// The export's folder, or its `manifest-summary.json`, as whoever makes [`Source`]s knows it.
    pub export: String,
    /// Name of the data file.
    pub file: String,
    /// Its key in the source's store.
    pub key: String,
    /// Compressed bytes.
    pub bytes: u64,
    /// Items that the manifest promises.
    pub items: u64,
    /// Base64 text of the MD5 that the manifest gives.
    pub md5: String,
}

/// What became of a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worked {
    /// The data file is whole in the lake.
    Whole {
        /// Items read.
        items: u64,
    },
    /// A part of it is; the same call goes on with the next part.
    Part,
}

/// Limits of a worker.
pub struct Limits {
    /// Asked after each part: whether there is time for another one.
    pub go_on: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Set by whoever wants the worker to stop in the middle of a part; it then fails with
    /// [`ExportError::Stopped`].
    pub stop: Arc<AtomicBool>,
}

impl Default for Limits {
    /// None.
    fn default() -> Self {
        Self {
            go_on: Arc::new(|| true),
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}

impl Steps<'_> {
    /// Verifies the manifests, claims the export's place in the lake, agrees on a plan, and lists what is to be
    /// done. `export` is what the items will call the source.
    ///
    /// # Errors
    /// As of [`crate::convert`].
    pub async fn plan(&self, source: &Source, export: &str) -> Result<WorkPlan, ExportError> {
        let begun = begin(source, self.lake, self.catalog, self.secrets, self.options).await?;
        let todo = begun.todo().map(|file| WorkItem::new(export, file));
        let todo = todo.collect();
        Ok(WorkPlan {
            export_id: begun.plan.export_id,
            label: begun.plan.label,
            files: u64::try_from(begun.export.files.len()).unwrap_or(u64::MAX),
            items: begun.export.summary.item_count,
            bytes: begun.export.files.iter().map(|file| file.size).sum(),
            todo,
            warnings: begun.export.warnings,
        })
    }

    /// Converts a data file, or as much of it as the limits allow.
    ///
    /// One thread works on it; memory is about three times `options.memory_mb`, and the spool holds the
    /// objects of one part. Of a file that is whole already nothing is done.
    ///
    /// # Errors
    /// As of [`crate::convert`]; also where the lake holds no plan of this export, another one, or one whose
    /// row groups need more memory than `options` allow.
    pub async fn work(
        &self,
        source: &Source,
        item: &WorkItem,
        limits: Limits,
        progress: Arc<dyn Progress>,
    ) -> Result<Worked, ExportError> {
        let summary = locate::read_summary(source, self.options.source_table(self.catalog)).await?;
        let file = item.located(source)?;
        let lake = Arc::new(self.lake());
        let plan = self.agreed(&lake, &summary.export_id).await?;
        affordable(&plan, self.options)?;
        if let Some(record) = lake.finished_one(&plan, &file).await? {
            progress.file_done(&record.data_file, true);
            return Ok(Worked::Whole {
                items: record.report.records,
            });
        }
        let threads = Threads::start(1).map_err(|source| ExportError::Spool {
            path: "(threads)".into(),
            source,
        })?;
        let job = Arc::new(Job {
            catalog: Arc::clone(self.catalog),
            secrets: self.secrets.clone(),
            plan,
            summary,
            spool: self.options.spool.clone(),
            progress,
            stop: limits.stop,
        });
        let outcome = convert_file(source.store(), &lake, &job, file, &threads, limits.go_on);
        Ok(match outcome.await? {
            FileOutcome::Whole(record) => Worked::Whole {
                items: record.report.records,
            },
            FileOutcome::Paused => Worked::Part,
        })
    }

    /// Makes sure that every data file of the manifests is whole in the lake, adds everything up, and records
    /// that the export is whole. Converts nothing; the same call again writes the same record.
    ///
    /// # Errors
    /// Data files are not converted yet, counts are wrong, or as of [`crate::convert`].
    pub async fn complete(&self, source: &Source) -> Result<ConvertReport, ExportError> {
        let export = locate::open(source, self.options.source_table(self.catalog)).await?;
        let lake = self.lake();
        let plan = self.agreed(&lake, &export.summary.export_id).await?;
        let finished = lake.finished(&plan, &export).await?;
        let open = export.files.len().saturating_sub(finished.len());
        if open > 0 {
            let first = export
                .files
                .iter()
                .find(|file| !finished.contains_key(&file.file.name))
                .map_or_else(String::new, |file| file.address.clone());
            return Err(ExportError::refused(
                RefusalKind::Unfinished,
                first,
                format!(
                    "{open} of {} data files are not whole in the lake, this is the first",
                    export.files.len()
                ),
                "convert what is left, then commit again",
            ));
        }
        let report = finish_counts(export, &finished)?;
        lake.put_complete(&complete_record(&report, &plan)).await?;
        Ok(report)
    }

    /// The plan of an export, if it is one that these schemas and secrets agree with.
    async fn agreed(&self, lake: &Lake, export_id: &str) -> Result<Plan, ExportError> {
        let key = plan_key(export_id);
        let plan: Option<Plan> = lake.read(&key).await?;
        let plan = plan.ok_or_else(|| {
            ExportError::refused(
                RefusalKind::Unfinished,
                lake.address(&key),
                "there is no plan for this export",
                "plan it first; a conversion with `replace` may have taken it away",
            )
        })?;
        lake.same_conversion(&plan, &fingerprint(self.catalog, self.secrets))?;
        Ok(plan)
    }

    fn lake(&self) -> Lake {
        Lake::new(self.lake.clone(), self.options.stop_after_puts)
    }
}

/// A plan of a larger machine may have row groups that do not fit here.
fn affordable(plan: &Plan, options: &ConvertOptions) -> Result<(), ExportError> {
    let megabytes = |bytes: u64| bytes.div_ceil(1024 * 1024);
    let allowed = u64::try_from(options.memory_mb).unwrap_or(u64::MAX).max(1);
    if megabytes(plan.row_group_bytes) <= allowed {
        return Ok(());
    }
    Err(ExportError::Setup(format!(
        "the conversion of export `{}` was begun with row groups of {} MB, here is memory for {allowed} \
         MB: give the worker about three times as much memory, or finish it where it was begun",
        plan.export_id,
        megabytes(plan.row_group_bytes)
    )))
}

impl WorkItem {
    fn new(export: &str, file: &Located) -> Self {
        Self {
            export: export.to_owned(),
            file: file.file.name.clone(),
            key: file.key.clone(),
            bytes: file.size,
            items: file.file.item_count,
            md5: md5_text(&file.file.md5),
        }
    }

    fn located(&self, source: &Source) -> Result<Located, ExportError> {
        let problem = |problem: &str| {
            ExportError::Setup(format!(
                "the work item of data file `{}` {problem}; make the work list anew",
                self.file
            ))
        };
        let md5 = STANDARD.decode(&self.md5).ok();
        let md5 = md5.and_then(|md5| <[u8; 16]>::try_from(md5).ok());
        let md5 = md5.ok_or_else(|| problem("has no MD5 in base64"))?;
        let format = DataFormat::of_file(&self.file);
        let format = format.ok_or_else(|| problem("is in no format that is known"))?;
        Ok(Located {
            file: DataFile {
                key: self.key.clone(),
                name: self.file.clone(),
                format,
                item_count: self.items,
                md5,
            },
            key: self.key.clone(),
            size: self.bytes,
            address: source.address(&self.key),
        })
    }
}
