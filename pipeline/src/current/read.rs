//! The rows of a table as it is now, or was.

use std::collections::HashSet;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dynalake_schemas::{Catalog, row_columns};

use super::error::CurrentError;
use super::merge::merge_as;
use super::rows::{KeyHash, Rows, key_hash};
use super::rule::first_day;
use super::runs::{Run, runs_of};
use super::schema::unite;
use super::state::state;
use crate::baseline::{self, BaselineRecord};
use crate::compact;
use crate::encode::ObjectMetadata;
use crate::layout::day_text;
use crate::store::Store;

/// Folders of the spool.
const CHANGES: &str = "changes";
const BASELINE: &str = "baseline";
const WINDOW: &str = "window";

/// Bounds of a merge.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// Memory for open runs, in bytes.
    pub memory_bytes: usize,
    /// Folder on a local disk for copies of remote objects and for spilled runs; the caller removes it.
    pub spool: PathBuf,
}

/// The instant whose state is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// Everything that has arrived.
    Now,
    /// Milliseconds since 1970-01-01 UTC: the newest baseline at or before it, and changes up to it.
    Time(i64),
}

/// What was read, and found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentReport {
    /// Rows of the state.
    pub rows: u64,
    /// The baseline's label; `None` where there is none (yet).
    pub baseline: Option<String>,
    /// Change rows read.
    pub changes: u64,
    /// Baseline rows read.
    pub baseline_rows: u64,
}

/// A table's state, ready to be read: what is there has been listed.
#[derive(Debug)]
pub struct TableState {
    metadata: ObjectMetadata,
    schema: SchemaRef,
    record: Option<BaselineRecord>,
    changes: Vec<Run>,
    baseline: Vec<Run>,
    until: Option<i64>,
    options: MergeOptions,
}

impl TableState {
    /// Finds the baseline and the objects that matter. `schema` is what rows are to be read as;
    /// without it, that of the table's files together. `None` if there is no object of the table and
    /// no `schema`.
    ///
    /// # Errors
    /// The lake cannot be read, or the files of the table do not go together.
    pub async fn open(
        store: &Store,
        metadata: ObjectMetadata,
        schema: Option<SchemaRef>,
        as_of: AsOf,
        options: &MergeOptions,
    ) -> Result<Option<Self>, CurrentError> {
        let until = match as_of {
            AsOf::Now => None,
            AsOf::Time(at) => Some(at),
        };
        let record = baseline::current(store, until).await?;
        Self::open_from(store, metadata, schema, record, until, options).await
    }

    /// [`TableState::open`] from this baseline (or none), whatever others there are.
    ///
    /// # Errors
    /// As [`TableState::open`].
    pub async fn open_from(
        store: &Store,
        metadata: ObjectMetadata,
        schema: Option<SchemaRef>,
        record: Option<BaselineRecord>,
        until: Option<i64>,
        options: &MergeOptions,
    ) -> Result<Option<Self>, CurrentError> {
        let table = metadata.table.as_str();
        let changes = change_runs(store, table, record.as_ref(), options).await?;
        let baseline = match &record {
            Some(record) => baseline_runs(store, table, &record.label, options).await?,
            None => Vec::new(),
        };
        let schema = match schema {
            Some(schema) => Some(schema),
            None => unite(changes.iter().chain(&baseline).map(Run::schema)).map_err(|column| {
                CurrentError::Types {
                    table: table.to_owned(),
                    column,
                }
            })?,
        };
        Ok(schema.map(|schema| Self {
            metadata,
            schema,
            record,
            changes,
            baseline,
            until,
            options: options.clone(),
        }))
    }

    /// With the columns, members and wider types that only files of the table have, behind the
    /// others. Where they do not go together with the schema, it stays as it is.
    #[must_use]
    pub fn with_columns_of_files(mut self) -> Self {
        let files = self.changes.iter().chain(&self.baseline).map(Run::schema);
        if let Ok(Some(united)) = unite(std::iter::once(&self.schema).chain(files)) {
            self.schema = united;
        }
        self
    }

    /// Keys with a change in a stretch of time (milliseconds, both ends included).
    pub(crate) fn keys_changed(
        &self,
        from: i64,
        to: i64,
    ) -> Result<HashSet<KeyHash>, CurrentError> {
        let mut keys = HashSet::new();
        let spool = self.options.spool.join(WINDOW);
        std::fs::create_dir_all(&spool).map_err(|source| CurrentError::Spool {
            path: spool.clone(),
            source,
        })?;
        let (changes, memory) = (self.changes.clone(), self.options.memory_bytes / 2);
        let merge = merge_as(&self.schema, &self.metadata, changes, memory, &spool)?;
        let mut rows = Rows::new(merge)?;
        while let Some(row) = rows.take()? {
            if (from..=to).contains(&row.at()) {
                let (pk, sk) = (row.text(row_columns::PK), row.text(row_columns::SK));
                keys.extend(pk.map(|pk| key_hash(pk, sk)));
            }
        }
        Ok(keys)
    }

    /// The schema of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Gives the rows of the state to `sink`, in batches sorted by (`_pk`, `_sk`).
    ///
    /// # Errors
    /// An object cannot be read, the spool cannot be written, or `sink` failed
    /// ([`CurrentError::Sink`]).
    pub fn read(
        self,
        sink: &mut dyn FnMut(RecordBatch) -> Result<(), CurrentError>,
    ) -> Result<CurrentReport, CurrentError> {
        // Both streams are open at the same time.
        let memory = self.options.memory_bytes / 2;
        let spool = &self.options.spool;
        let merge = |runs, folder: &str| {
            merge_as(
                &self.schema,
                &self.metadata,
                runs,
                memory,
                &spool.join(folder),
            )
        };
        let changes = merge(self.changes, CHANGES)?;
        let baseline = merge(self.baseline, BASELINE)?;
        let baseline_at = self.record.as_ref().map(|record| record.at_ms);
        let counts = state(changes, baseline, baseline_at, self.until, sink)?;
        Ok(CurrentReport {
            rows: counts.rows,
            baseline: self.record.map(|record| record.label),
            changes: counts.changes,
            baseline_rows: counts.baseline,
        })
    }
}

/// Gives the rows of an entity's table to `sink`, in batches of the table's schema
/// ([`dynalake_schemas::Entity::arrow_schema`]), sorted by (`_pk`, `_sk`).
///
/// # Errors
/// As [`TableState::open`] and [`TableState::read`].
pub async fn current_rows(
    store: &Store,
    catalog: &Catalog,
    entity: usize,
    as_of: AsOf,
    options: &MergeOptions,
    sink: &mut (dyn FnMut(RecordBatch) -> Result<(), CurrentError> + Send),
) -> Result<CurrentReport, CurrentError> {
    let entity = catalog
        .entities
        .get(entity)
        .ok_or(CurrentError::NoEntity(entity))?;
    let (metadata, schema) = (ObjectMetadata::from(entity), entity.arrow_schema());
    match TableState::open(store, metadata, Some(schema), as_of, options).await? {
        Some(state) => state.read(sink),
        None => Err(CurrentError::Merge(
            "a schema was given and is gone".to_owned(),
        )),
    }
}

/// Runs of a table's change rows that can matter beside the baseline.
async fn change_runs(
    store: &Store,
    table: &str,
    baseline: Option<&BaselineRecord>,
    options: &MergeOptions,
) -> Result<Vec<Run>, CurrentError> {
    let prefix = format!("changes/{table}/");
    let first = baseline.map(|record| format!("{prefix}dt={}", day_text(first_day(record.at_ms))));
    // What a compaction stands for is left unread: its objects may be deleted soon.
    let objects = store.list(&prefix).await?;
    let compactions = compact::records(store, table).await?;
    let objects = compact::live(objects, &compactions).live;
    let keys = objects.into_iter().map(|object| object.key).filter(|key| {
        is_object(key)
            && first
                .as_ref()
                .is_none_or(|first| key.as_str() >= first.as_str())
    });
    runs(store, keys.collect(), options.spool.join(CHANGES)).await
}

/// Runs of a baseline's rows of a table.
pub(crate) async fn baseline_runs(
    store: &Store,
    table: &str,
    label: &str,
    options: &MergeOptions,
) -> Result<Vec<Run>, CurrentError> {
    let objects = store
        .list(&format!("snapshot/{table}/export={label}/"))
        .await?;
    let keys = objects
        .into_iter()
        .map(|object| object.key)
        .filter(|key| is_object(key));
    runs(store, keys.collect(), options.spool.join(BASELINE)).await
}

fn is_object(key: &str) -> bool {
    std::path::Path::new(key)
        .extension()
        .is_some_and(|extension| extension == "parquet")
}

async fn runs(store: &Store, keys: Vec<String>, spool: PathBuf) -> Result<Vec<Run>, CurrentError> {
    std::fs::create_dir_all(&spool).map_err(|source| CurrentError::Spool {
        path: spool.clone(),
        source,
    })?;
    let mut found = Vec::new();
    for key in keys {
        found.extend(runs_of(store, &key, &spool).await?);
    }
    Ok(found)
}
