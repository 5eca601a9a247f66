//! What the caller may choose, and how it is told of progress.

use std::path::PathBuf;

/// Settings of a roll.
#[derive(Debug, Clone)]
pub struct RollOptions {
    /// Memory for the runs that are merged, bytes; at least those of four open runs are used. A row
    /// group is held in addition, about three times while it is encoded.
    pub memory_bytes: usize,
    /// Bytes of decoded rows in a row group.
    pub row_group_bytes: usize,
    /// Bytes at which an object is closed and the table's next one begun. What is not in a closed
    /// object when a roll stops is done again.
    pub object_bytes: u64,
    /// Folder on a local disk for copies of remote objects, spilled runs and objects under
    /// construction; they go into a temporary folder within. `None`: the system's temporary folder.
    pub spool: Option<PathBuf>,
    /// Roll again although a baseline of that time is committed: it is none any more, and its objects
    /// are deleted first.
    pub replace: bool,
    /// Who rolls, for the lock of a lake's state.
    pub holder: String,
    /// When it was begun, milliseconds since 1970-01-01 UTC; goes into the lock only.
    pub now_ms: i64,
    /// End of the commands that refusals tell to run: which lake, which schemas.
    pub command_end: String,
}

impl Default for RollOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            row_group_bytes: 64 << 20,
            object_bytes: 256 << 20,
            spool: None,
            replace: false,
            holder: "dynalake".to_owned(),
            now_ms: 0,
            command_end: "--lake LAKE --schemas DIR".to_owned(),
        }
    }
}

/// Watches a roll. Called from several threads.
pub trait Watch: Send + Sync {
    /// A table is about to be merged: rows of the baseline and of all windows.
    fn table(&self, table: &str, base_rows: u64, window_rows: u64) {
        let _ = (table, base_rows, window_rows);
    }

    /// So many more rows were read.
    fn advanced(&self, rows: u64) {
        let _ = rows;
    }

    /// Whether to stop; the next call goes on after the last object that was closed.
    fn stop(&self) -> bool {
        false
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}
