//! What came of a roll: counts and names, never values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Outcome of a roll.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollReport {
    /// Whether everything is merged; if not, the same call again goes on.
    pub done: bool,
    /// A baseline of that time was committed before; nothing was done.
    pub unchanged: bool,
    /// Id of the roll, for [`crate::commit_export`]; of the baseline's export where `unchanged`.
    pub export_id: String,
    /// Label of the new baseline.
    pub label: String,
    /// Its time, milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Label of the baseline that was rolled forward.
    pub base: String,
    /// Ids of the incremental exports, in order.
    pub windows: Vec<String>,
    /// Whether the base was made with other schemas and decoded again.
    pub decoded_again: bool,
    /// Per lake table of the schemas; while not `done`, those that are.
    pub tables: BTreeMap<String, RolledTable>,
    /// Items of the base that went to quarantine when they were decoded again.
    pub quarantined: u64,
    /// The same by reason code.
    pub quarantine_reasons: BTreeMap<String, u64>,
    /// Keys of the quarantine objects.
    pub quarantine_objects: Vec<String>,
}

/// What became of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolledTable {
    /// Rows of the base.
    pub base_rows: u64,
    /// Rows of all windows, tombstones included.
    pub window_rows: u64,
    /// Rows of the new baseline.
    pub rows: u64,
    /// Its objects.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
}
