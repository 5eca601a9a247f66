//! Why baselines could not be read or changed.

use crate::store::StoreError;
use crate::time;

/// Why baselines could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// The lake could not be read or written. The same call again does what is left to do.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else changes the lake's state at the moment, or died while doing so.
    #[error(
        "the lake is locked by `{holder}` ({purpose}) since {}, see `{address}`; try again when \
         that is done, or, when that process is dead, remove the lock with \
         `dynalake baselines unlock LAKE`",
        instant(*.since_ms)
    )]
    Locked {
        /// Who holds the lock.
        holder: String,
        /// What for.
        purpose: String,
        /// Since when, milliseconds since 1970-01-01 UTC.
        since_ms: i64,
        /// The lock's object.
        address: String,
    },
    /// The lock was taken away in the middle of the work.
    #[error("`{address}`: the lock was removed by somebody else meanwhile; run the same again")]
    LostLock {
        /// The lock's object.
        address: String,
    },
    /// Objects of the baseline are not in the lake.
    #[error(
        "baseline {label}: table `{table}` has {found_objects} objects of {found_bytes} bytes in the \
         lake, the record says {objects} of {bytes}; convert the export again"
    )]
    ObjectsMissing {
        /// The baseline.
        label: String,
        /// Lake table.
        table: String,
        /// Objects recorded.
        objects: u64,
        /// Bytes recorded.
        bytes: u64,
        /// Objects found.
        found_objects: u64,
        /// Bytes found.
        found_bytes: u64,
    },
    /// Another export's baseline of the same second is committed.
    #[error(
        "baseline {label} is export `{committed}`, not `{wanted}`; exports of one second show the \
         same state of the table: that one is enough"
    )]
    SameSecond {
        /// The baseline.
        label: String,
        /// Export that is committed.
        committed: String,
        /// Export that was to be.
        wanted: String,
    },
    /// There is no such baseline.
    #[error("there is no baseline {label}; `dynalake baselines list LAKE` shows all")]
    NotFound {
        /// The label.
        label: String,
    },
    /// Readers use this baseline.
    #[error(
        "baseline {label} is the current one: without it the tables fall back to an older one or \
         to changes alone; commit a newer one first"
    )]
    IsCurrent {
        /// The baseline.
        label: String,
    },
    /// A state record is not one that this software can read.
    #[error(
        "`{address}` is not readable: {problem}; use a newer dynalake, or remove it and convert \
         its export again"
    )]
    Unreadable {
        /// The record's object.
        address: String,
        /// What is wrong.
        problem: String,
    },
    /// The caller's record cannot be committed.
    #[error("{problem}; this is a bug")]
    Invalid {
        /// What is wrong.
        problem: String,
    },
}

/// An instant for people.
fn instant(at_ms: i64) -> String {
    time::format_iso8601(at_ms).unwrap_or_else(|| at_ms.to_string())
}
