//! The merge of one table, object by object.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use dynalake_pipeline::current::merge::merge;
use dynalake_pipeline::current::runs::{Run, runs_of};
use dynalake_pipeline::layout;
use dynalake_pipeline::store::Store;
use dynalake_schemas::{Catalog, Entity};
use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::newest::{Key, Newest};
use super::options::Watch;
use super::parts::{Part, Parts};
use super::plan::{Input, Inputs, ROLLED, RollPlan};
use super::report::RolledTable;
use crate::error::{ExportError, RefusalKind};
use crate::lake::Lake;
use crate::state::{ObjectRecord, folder};

/// Objects fetched at once.
const FETCHES: usize = 8;

/// `<table>.table.json`: which objects of a table are whole in the lake.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableRecord {
    pub(super) table: String,
    pub(super) objects: Vec<ObjectRecord>,
    /// Rows of base and windows.
    pub(super) base_rows: u64,
    pub(super) window_rows: u64,
    /// Whether these are all objects.
    pub(super) done: bool,
}

impl TableRecord {
    pub(super) fn outcome(&self) -> RolledTable {
        RolledTable {
            base_rows: self.base_rows,
            window_rows: self.window_rows,
            rows: self.objects.iter().map(|object| object.rows).sum(),
            objects: u64::try_from(self.objects.len()).unwrap_or(u64::MAX),
            bytes: self.objects.iter().map(|object| object.bytes).sum(),
        }
    }
}

/// Key of a table's record.
pub(super) fn table_key(export_id: &str, table: &str) -> String {
    format!("{}{table}.table.json", folder(export_id))
}

/// What the merges of all tables share.
pub(super) struct Rolling<'a> {
    pub(super) state: &'a Lake,
    pub(super) lake: &'a Store,
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) plan: &'a RollPlan,
    /// Objects of the base, or what its rows are now that they are decoded again.
    pub(super) base: &'a Inputs,
    pub(super) memory_bytes: usize,
    pub(super) spool: Option<&'a Path>,
    pub(super) watch: &'a Arc<dyn Watch>,
}

impl Rolling<'_> {
    /// Merges a table, from after the last object of an earlier run, until it is done or the watch
    /// says stop ([`TableRecord::done`]).
    pub(super) async fn table(&self, index: usize) -> Result<TableRecord, ExportError> {
        let Some(entity) = self.catalog.entities.get(index) else {
            return Err(ExportError::Setup("no such entity".to_owned()));
        };
        let key = table_key(&self.plan.plan.export_id, &entity.table);
        let mut record = self.started(&key, &entity.table).await?;
        if record.done {
            return Ok(record);
        }
        let spool = spool(self.spool)?;
        let (base, windows) = self.runs(entity, spool.path()).await?;
        record.base_rows = base.iter().map(Run::rows).sum();
        record.window_rows = windows.iter().map(Run::rows).sum();
        self.watch
            .table(&entity.table, record.base_rows, record.window_rows);
        let runs: Vec<Run> = base.into_iter().chain(windows).collect();
        let (parts, merging) = self.merge(index, &record, runs, spool.path()).await?;
        let stored = self.store(entity, &mut record, &key, parts).await;
        // What failed first is what matters; the merge fails when nobody takes its objects.
        let merged = merging
            .await
            .map_err(|error| ExportError::Worker {
                file: entity.table.clone(),
                message: error.to_string(),
            })
            .and_then(|merged| merged);
        stored?;
        if merged? {
            record.done = true;
            self.state.put_json(&key, &record).await?;
        }
        Ok(record)
    }

    /// The record of an earlier run, if its objects are there.
    async fn started(&self, key: &str, table: &str) -> Result<TableRecord, ExportError> {
        let new = TableRecord {
            table: table.to_owned(),
            ..TableRecord::default()
        };
        let Some(record) = self.state.read::<TableRecord>(key).await? else {
            return Ok(new);
        };
        for object in &record.objects {
            let meta = self.lake.head(&object.key).await?;
            if meta.is_none_or(|meta| meta.size != object.bytes) {
                return Ok(new);
            }
        }
        Ok(record)
    }

    /// Runs of the base and of the windows, oldest first.
    async fn runs(
        &self,
        entity: &Entity,
        spool: &Path,
    ) -> Result<(Vec<Run>, Vec<Run>), ExportError> {
        let objects = |inputs: &Inputs| inputs.get(&entity.table).cloned().unwrap_or_default();
        let (rolled, others): (Vec<Input>, Vec<Input>) = objects(self.base)
            .into_iter()
            .partition(|input| self.plan.base_in_order && is_part(&input.key));
        // Objects of an earlier roll follow each other: together they are one run.
        let mut base: Vec<Run> = Run::chain(self.fetch(entity, rolled, spool).await?)
            .into_iter()
            .collect();
        base.extend(self.fetch(entity, others, spool).await?);
        let mut windows = Vec::new();
        for window in &self.plan.windows {
            let inputs = objects(&window.objects);
            windows.extend(self.fetch(entity, inputs, spool).await?);
        }
        Ok((base, windows))
    }

    /// The runs of these objects, in their order.
    async fn fetch(
        &self,
        entity: &Entity,
        inputs: Vec<Input>,
        spool: &Path,
    ) -> Result<Vec<Run>, ExportError> {
        let fetches: Vec<_> = inputs
            .iter()
            .map(|input| runs_of(self.lake, &input.key, spool))
            .collect();
        let runs: Vec<Vec<Run>> = futures::stream::iter(fetches)
            .buffered(FETCHES)
            .try_collect()
            .await?;
        let runs: Vec<Run> = runs.into_iter().flatten().collect();
        let schema = entity.arrow_schema();
        for run in &runs {
            if let Some(column) = run.column_beyond(&schema) {
                return Err(ExportError::refused(
                    RefusalKind::OtherSchemas,
                    self.lake.address(run.key()),
                    format!("column `{column}` has a form that the schemas do not know"),
                    "give the newest schemas; after an incompatible change, take a full export",
                ));
            }
        }
        Ok(runs)
    }

    /// Begins the merge on a thread of its own.
    async fn merge(
        &self,
        index: usize,
        record: &TableRecord,
        runs: Vec<Run>,
        spool: &Path,
    ) -> Result<(Receiver<Part>, Merging), ExportError> {
        let after = self.last_key(record, spool).await?;
        let (sender, receiver) = channel(1);
        let job = Job {
            catalog: Arc::clone(self.catalog),
            index,
            runs,
            after,
            at_ms: self.plan.at_ms,
            row_group_bytes: usize::try_from(self.plan.plan.row_group_bytes).unwrap_or(usize::MAX),
            object_bytes: self.plan.plan.object_bytes,
            memory_bytes: self.memory_bytes,
            folder: spool.to_owned(),
            watch: Arc::clone(self.watch),
        };
        let task = tokio::task::spawn_blocking(move || job.run(&sender));
        Ok((receiver, task))
    }

    async fn last_key(
        &self,
        record: &TableRecord,
        spool: &Path,
    ) -> Result<Option<Key>, ExportError> {
        let Some(last) = record.objects.last() else {
            return Ok(None);
        };
        let runs = runs_of(self.lake, &last.key, spool).await?;
        Ok(match runs.last() {
            Some(run) => run.last_key()?,
            None => None,
        })
    }

    /// Puts objects as they are finished: first the object, then the record that names it.
    async fn store(
        &self,
        entity: &Entity,
        record: &mut TableRecord,
        key: &str,
        mut parts: Receiver<Part>,
    ) -> Result<(), ExportError> {
        let plan = &self.plan.plan;
        while let Some(part) = parts.recv().await {
            let number = u32::try_from(record.objects.len()).unwrap_or(u32::MAX);
            let object = layout::snapshot_key(&entity.table, &plan.label, &plan.export_id, number);
            self.state.put_file(&object, &part.path).await?;
            record.objects.push(ObjectRecord {
                table: entity.table.clone(),
                key: object,
                rows: part.rows,
                bytes: part.bytes,
            });
            self.state.put_json(key, record).await?;
            // A file that stays is harmless: the spool folder goes as a whole.
            std::fs::remove_file(&part.path).ok();
        }
        Ok(())
    }
}

/// Whether an object is one of those that a roll puts one after the other.
fn is_part(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or(key);
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix(ROLLED)
        .and_then(|name| name.strip_suffix(".parquet"))
        .and_then(|name| name.split_once('-'))
        .is_some_and(|(_, number)| digits(number))
}

/// A cell of a text column.
pub(super) fn text(batch: &RecordBatch, column: usize, row: usize) -> Option<&str> {
    let column = batch.columns().get(column)?.as_string_opt::<i32>()?;
    column.is_valid(row).then(|| column.value(row))
}

type Merging = tokio::task::JoinHandle<Result<bool, ExportError>>;

/// A merge on its thread.
struct Job {
    catalog: Arc<Catalog>,
    index: usize,
    runs: Vec<Run>,
    after: Option<Key>,
    at_ms: i64,
    row_group_bytes: usize,
    object_bytes: u64,
    memory_bytes: usize,
    folder: PathBuf,
    watch: Arc<dyn Watch>,
}

impl Job {
    /// Whether everything was merged, or it was told to stop.
    fn run(self, sender: &Sender<Part>) -> Result<bool, ExportError> {
        let Some(entity) = self.catalog.entities.get(self.index) else {
            return Ok(true);
        };
        let runs = match &self.after {
            Some((pk, _)) => self
                .runs
                .iter()
                .filter_map(|run| run.beginning_at(pk))
                .collect(),
            None => self.runs,
        };
        let merged = merge(entity, runs, self.memory_bytes, &self.folder)?;
        let mut rows = Newest::new(merged, self.after);
        let mut parts = Parts::new(
            entity,
            &self.folder,
            self.at_ms,
            self.row_group_bytes,
            self.object_bytes,
        );
        let mut told = 0;
        loop {
            if self.watch.stop() {
                return Ok(false);
            }
            let batches = rows.next_rows()?;
            self.watch.advanced(rows.read - told);
            told = rows.read;
            if batches.is_empty() {
                break;
            }
            for batch in batches {
                for part in parts.push(batch)? {
                    if sender.blocking_send(part).is_err() {
                        return Err(ExportError::Stopped);
                    }
                }
            }
        }
        if let Some(part) = parts.finish()?
            && sender.blocking_send(part).is_err()
        {
            return Err(ExportError::Stopped);
        }
        Ok(true)
    }
}

/// A temporary folder for one table.
pub(super) fn spool(root: Option<&Path>) -> Result<tempfile::TempDir, ExportError> {
    let root = root.map_or_else(std::env::temp_dir, Path::to_path_buf);
    tempfile::Builder::new()
        .prefix("dynalake-roll-")
        .tempdir_in(&root)
        .map_err(|source| ExportError::Spool { path: root, source })
}
