//! Which baselines are kept.

use super::drop::{DropReport, remove};
use super::error::BaselineError;
use super::lock::Lock;
use super::record::{BaselineRecord, list};
use crate::store::Store;
use crate::time::DAY_MS;

/// How long a baseline stays after a newer one took its place, whatever the retention: a query that
/// was begun before may still read it. Longer than any query runs.
pub const RETAIN_GRACE_MS: i64 = DAY_MS;

/// How many baselines are kept. The current one is, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// The newest ones, so many.
    Newest(usize),
    /// Those of the last so many days, and the one that was current at their beginning: with the
    /// changes since, every instant of these days can be asked for.
    Days(u32),
}

/// The baselines that are to go, oldest first. `records` are sorted by time, oldest first.
pub fn retention_plan(
    records: &[BaselineRecord],
    retention: Retention,
    now_ms: i64,
) -> Vec<&BaselineRecord> {
    let kept_from = match retention {
        Retention::Newest(count) => records.len().saturating_sub(count.max(1)),
        Retention::Days(days) => {
            let begin = now_ms.saturating_sub(i64::from(days).saturating_mul(DAY_MS));
            let later = records
                .iter()
                .position(|record| record.at_ms > begin)
                .unwrap_or(records.len());
            later.saturating_sub(1)
        }
    };
    let superseded = |index: usize| {
        records
            .iter()
            .skip(index + 1)
            .any(|newer| newer.committed_at_ms.saturating_add(RETAIN_GRACE_MS) <= now_ms)
    };
    records
        .iter()
        .enumerate()
        .filter(|(index, _)| *index < kept_from && superseded(*index))
        .map(|(_, record)| record)
        .collect()
}

/// Removes the baselines that are not to be kept, and what earlier removals left.
///
/// # Errors
/// The lock is taken, or the store failed. After a failure the same call does what is left to do.
pub async fn retain(
    store: &Store,
    retention: Retention,
    holder: &str,
    now_ms: i64,
) -> Result<DropReport, BaselineError> {
    let lock = Lock::acquire(store, holder, "retention of baselines", now_ms).await?;
    let outcome = locked(store, retention, now_ms, &lock).await;
    lock.release(outcome).await
}

async fn locked(
    store: &Store,
    retention: Retention,
    now_ms: i64,
    lock: &Lock,
) -> Result<DropReport, BaselineError> {
    let records = list(store).await?;
    let labels: Vec<String> = retention_plan(&records, retention, now_ms)
        .into_iter()
        .map(|record| record.label.clone())
        .collect();
    remove(store, &labels, lock).await
}
