//! Baselines: complete states of the source table, and which of them readers take.
//!
//! ```text
//! state/baselines/<label>.json     a committed baseline; its rows: snapshot/<table>/export=<label>/
//! state/drops/<label>.json         a baseline that is being removed
//! state/lock.json                  who changes any of this at the moment
//! ```
//! A baseline is committed by one put of its record, after all its objects: a reader sees it whole
//! or not at all. The current baseline is the committed one of the greatest time, not the one that
//! was committed last, so that a late backfill of an older export never wins. It is dropped in the
//! other order: the record first, then what it names.
//!
//! Whatever changes baselines holds the lock. Every step may be the last one before a crash: the
//! same call again finds what was done and does the rest. No clock is read; the caller says what
//! time it is and who it is.

mod commit;
mod drop;
mod error;
mod lock;
mod record;
mod retain;

pub use commit::{CommitOutcome, commit, uncommit};
pub use drop::{DropReport, drop};
pub use error::BaselineError;
pub use lock::{Lock, LockRecord, lock_holder, unlock};
pub use record::{
    BaselineKind, BaselineRecord, TableCounts, VERSION, current, list, objects_prefix, record_key,
};
pub use retain::{RETAIN_GRACE_MS, Retention, retain, retention_plan};

#[cfg(test)]
mod tests;
