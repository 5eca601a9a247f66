//! What happened to the records: counts only, never values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts over any number of records. Reports of parts add up ([`Report::merge`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Records (stream) or items (export) taken in.
    pub records: u64,
    /// Records that went to quarantine.
    pub quarantined: u64,
    /// Quarantined records by reason code.
    pub quarantine_reasons: BTreeMap<String, u64>,
    /// Per lake table.
    pub tables: BTreeMap<String, TableReport>,
}

/// Counts of one lake table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableReport {
    /// Rows written, tombstones included.
    pub rows: u64,
    /// Of these, tombstones of items that moved to another entity or of deletes that could not be
    /// told apart by key (`rows - extra_tombstones` is the number of records).
    pub extra_tombstones: u64,
    /// Values that did not fit, by column path (`lines[].qty`): NULL in the column, kept in `_rest`.
    pub mismatches: BTreeMap<String, u64>,
    /// Values that the column holds only in part, by column path; kept in `_rest` too.
    pub inexact: BTreeMap<String, u64>,
    /// Attributes without a column (ignored plumbing not counted): kept in `_rest`.
    pub undeclared: BTreeMap<String, u64>,
}

impl Report {
    /// Adds another report's counts.
    pub fn merge(&mut self, other: &Self) {
        self.records += other.records;
        self.quarantined += other.quarantined;
        add(&mut self.quarantine_reasons, &other.quarantine_reasons);
        for (table, theirs) in &other.tables {
            let ours = self.tables.entry(table.clone()).or_default();
            ours.rows += theirs.rows;
            ours.extra_tombstones += theirs.extra_tombstones;
            add(&mut ours.mismatches, &theirs.mismatches);
            add(&mut ours.inexact, &theirs.inexact);
            add(&mut ours.undeclared, &theirs.undeclared);
        }
    }
}

fn add(to: &mut BTreeMap<String, u64>, from: &BTreeMap<String, u64>) {
    for (key, count) in from {
        *to.entry(key.clone()).or_default() += count;
    }
}
