//! The rows of a table as it is now, or was.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use dynalake_schemas::Catalog;

use super::error::CurrentError;
use super::merge::merge;
use super::rule::first_day;
use super::runs::{Run, runs_of};
use super::state::state;
use crate::baseline::{self, BaselineRecord};
use crate::layout::day_text;
use crate::store::Store;

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

/// Gives the rows of a table's state to `sink`, in batches of the table's schema
/// ([`dynalake_schemas::Entity::arrow_schema`]), sorted by (`_pk`, `_sk`).
///
/// # Errors
/// The lake cannot be read, the spool cannot be written, or `sink` failed ([`CurrentError::Sink`]).
pub async fn current_rows(
    store: &Store,
    catalog: &Catalog,
    entity: usize,
    as_of: AsOf,
    options: &MergeOptions,
    sink: &mut (dyn FnMut(RecordBatch) -> Result<(), CurrentError> + Send),
) -> Result<CurrentReport, CurrentError> {
    let until = match as_of {
        AsOf::Now => None,
        AsOf::Time(at) => Some(at),
    };
    let record = baseline::current(store, until).await?;
    let entity = catalog
        .entities
        .get(entity)
        .ok_or(CurrentError::NoEntity(entity))?;
    let changes = change_runs(store, &entity.table, record.as_ref(), options).await?;
    let base = match &record {
        Some(record) => baseline_runs(store, &entity.table, &record.label, options).await?,
        None => Vec::new(),
    };
    // Both streams are open at the same time.
    let memory = options.memory_bytes / 2;
    let changes = merge(entity, changes, memory, &options.spool.join("changes"))?;
    let base = merge(entity, base, memory, &options.spool.join("baseline"))?;
    let counts = state(
        changes,
        base,
        record.as_ref().map(|record| record.at_ms),
        until,
        sink,
    )?;
    Ok(CurrentReport {
        rows: counts.rows,
        baseline: record.map(|record| record.label),
        changes: counts.changes,
        baseline_rows: counts.baseline,
    })
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
    let objects = store.list(&prefix).await?;
    let keys = objects.into_iter().map(|object| object.key).filter(|key| {
        is_object(key)
            && first
                .as_ref()
                .is_none_or(|first| key.as_str() >= first.as_str())
    });
    runs(store, keys.collect(), options.spool.join("changes")).await
}

/// Runs of a baseline's rows of a table.
async fn baseline_runs(
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
    runs(store, keys.collect(), options.spool.join("baseline")).await
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
