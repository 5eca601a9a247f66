//! What the caller may choose, and how it is told of progress.

use std::path::PathBuf;

use crate::time::DAY_MS;

/// Settings of a compaction.
#[derive(Debug, Clone)]
pub struct CompactOptions {
    /// Days before this one are closed (days since 1970-01-01).
    pub before: i32,
    /// Bytes at which an output is closed and the next one begun. Objects of half of it and more are
    /// left as they are.
    pub target_bytes: u64,
    /// Milliseconds that inputs stay after their output was written. Longer than any query runs.
    pub grace_ms: i64,
    /// Now, in milliseconds since 1970-01-01 UTC.
    pub now_ms: i64,
    /// Memory for open runs, in bytes; a row group of [`CompactOptions::ROW_GROUP_BYTES`] is held in
    /// addition, about three times while it is encoded.
    pub memory_bytes: usize,
    /// Folder on a local disk for copies of remote objects, spilled runs and outputs. It needs room
    /// for about eight times the target. `None`: the system's temporary folder.
    pub spool: Option<PathBuf>,
    /// Say what would be done and write nothing.
    pub dry_run: bool,
}

impl CompactOptions {
    /// Size of outputs where nothing else is asked for: what query engines read best.
    pub const TARGET_BYTES: u64 = 256 << 20;
    /// Grace time where nothing else is asked for.
    pub const GRACE_MS: i64 = DAY_MS;
    /// Bytes of decoded rows in a row group.
    pub const ROW_GROUP_BYTES: usize = 64 << 20;

    /// The usual settings at this time: all days before today's.
    pub fn at(now_ms: i64) -> Self {
        Self {
            before: crate::layout::day_of(now_ms),
            target_bytes: Self::TARGET_BYTES,
            grace_ms: Self::GRACE_MS,
            now_ms,
            memory_bytes: 256 << 20,
            spool: None,
            dry_run: false,
        }
    }
}

/// Watches a compaction.
pub trait Watch: Sync {
    /// So many objects of a table's day were merged into so many.
    fn merged(&self, table: &str, day: &str, inputs: u64, outputs: u64) {
        let _ = (table, day, inputs, outputs);
    }

    /// Whether to stop before the next piece of work; the next compaction goes on from there.
    fn stop(&self) -> bool {
        false
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}
