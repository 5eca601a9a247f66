//! Commits a baseline: from then on readers take it, if it is the newest.

use super::drop::forget_drop;
use super::error::BaselineError;
use super::lock::{Lock, release_left};
use super::record::{
    BaselineRecord, TableCounts, VERSION, find, objects_prefix, put_json, record_key,
};
use crate::layout;
use crate::store::Store;

/// What came of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The baseline is new.
    Committed,
    /// The same baseline was committed already; nothing was written.
    Unchanged,
    /// The same export was committed with other rows (converted again with other schemas).
    Replaced,
}

/// Commits a baseline whose objects are all in the lake: one put, under the lock.
///
/// The same record again is a no-op, also when two do it at once; only `committed_at_ms` may differ.
/// `holder` says who commits; the time of the lock is the record's `committed_at_ms`. Interrupted
/// anywhere, the same call by the same holder does the rest.
///
/// # Errors
/// The lock is taken, objects are missing, another export of the same second is committed, or the
/// store failed. Readers see what they saw before.
pub async fn commit(
    store: &Store,
    record: &BaselineRecord,
    holder: &str,
) -> Result<CommitOutcome, BaselineError> {
    validate(record)?;
    let purpose = purpose(&record.label);
    if is_committed(store, record).await? {
        // A run that died between its last two steps left the lock.
        release_left(store, holder, &purpose).await?;
        return Ok(CommitOutcome::Unchanged);
    }
    let lock = Lock::acquire(store, holder, &purpose, record.committed_at_ms).await?;
    let outcome = locked(store, record, &lock).await;
    lock.release(outcome).await
}

async fn locked(
    store: &Store,
    record: &BaselineRecord,
    lock: &Lock,
) -> Result<CommitOutcome, BaselineError> {
    let outcome = match find(store, &record.label).await? {
        None => CommitOutcome::Committed,
        // The winner of a race was faster.
        Some(there) if there.same_baseline(record) => return Ok(CommitOutcome::Unchanged),
        Some(there) if there.export_id == record.export_id => CommitOutcome::Replaced,
        Some(there) => {
            return Err(BaselineError::SameSecond {
                label: there.label,
                committed: there.export_id,
                wanted: record.export_id.clone(),
            });
        }
    };
    for (table, counts) in &record.tables {
        verify(store, &record.label, table, counts).await?;
    }
    forget_drop(store, &record.label).await?;
    lock.check().await?;
    put_json(store, &record_key(&record.label), record).await?;
    Ok(outcome)
}

/// Takes an export's baseline out of readers' sight before its objects are replaced. Nothing happens
/// where the label is not committed, or by another export.
///
/// # Errors
/// The lock is taken, or the store failed.
pub async fn uncommit(
    store: &Store,
    label: &str,
    export_id: &str,
    holder: &str,
    now_ms: i64,
) -> Result<(), BaselineError> {
    let is_of = |record: BaselineRecord| record.export_id == export_id;
    if !find(store, label).await?.is_some_and(is_of) {
        return Ok(());
    }
    let lock = Lock::acquire(store, holder, &purpose(label), now_ms).await?;
    let outcome = match find(store, label).await {
        Ok(Some(record)) if record.export_id == export_id => store
            .delete(&record_key(label))
            .await
            .map_err(BaselineError::from),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    lock.release(outcome).await
}

fn purpose(label: &str) -> String {
    format!("commit of baseline {label}")
}

async fn is_committed(store: &Store, record: &BaselineRecord) -> Result<bool, BaselineError> {
    let there = find(store, &record.label).await?;
    Ok(there.is_some_and(|there| there.same_baseline(record)))
}

fn validate(record: &BaselineRecord) -> Result<(), BaselineError> {
    let problem = if record.version != VERSION {
        format!("a baseline record of form {}", record.version)
    } else if layout::export_label(record.at_ms).as_ref() != Some(&record.label) {
        format!(
            "the label {} of a baseline is not that of its time, {} ms",
            record.label, record.at_ms
        )
    } else {
        return Ok(());
    };
    Err(BaselineError::Invalid { problem })
}

/// Makes sure that a table's objects are in the lake. There may be more: items that came back from
/// quarantine since.
async fn verify(
    store: &Store,
    label: &str,
    table: &str,
    counts: &TableCounts,
) -> Result<(), BaselineError> {
    let mut found = TableCounts::default();
    for meta in store.list(&objects_prefix(table, label)).await? {
        found.objects += 1;
        found.bytes += meta.size;
    }
    if found.objects >= counts.objects && found.bytes >= counts.bytes {
        return Ok(());
    }
    Err(BaselineError::ObjectsMissing {
        label: label.to_owned(),
        table: table.to_owned(),
        objects: counts.objects,
        bytes: counts.bytes,
        found_objects: found.objects,
        found_bytes: found.bytes,
    })
}
