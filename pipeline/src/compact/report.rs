//! What a compaction did: counts and names, never values.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a compaction did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CompactReport {
    /// Days before this one were looked at.
    pub before: String,
    /// Nothing was written.
    pub dry_run: bool,
    /// Per table, days on which objects were merged.
    pub tables: BTreeMap<String, Vec<DayReport>>,
    /// Live objects of all closed days before the compaction.
    pub objects_before: ObjectCounts,
    /// The same afterwards; of a dry run equal to those before.
    pub objects_after: ObjectCounts,
    /// Inputs of earlier compactions that were deleted, their grace time being over.
    pub deleted: ObjectCounts,
    /// Inputs that are still there, for queries that may read them.
    pub in_grace: ObjectCounts,
    /// Days that were left as they are, and why.
    pub problems: Vec<String>,
    /// It was stopped before all was done.
    pub unfinished: bool,
}

/// What happened to one day of a table. Objects are live ones; superseded ones do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DayReport {
    /// `YYYY-MM-DD`.
    pub day: String,
    /// Objects that were merged.
    pub merged: u64,
    /// All objects of the day before.
    pub before: ObjectCounts,
    /// All objects of the day afterwards; unknown in a dry run.
    pub after: ObjectCounts,
    /// Rows of the outputs.
    pub rows: u64,
    /// Rows that were the same change as another one.
    pub duplicates: u64,
}

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ObjectCounts {
    /// Objects.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
}

impl ObjectCounts {
    /// Counts objects by their sizes.
    pub fn of(sizes: impl IntoIterator<Item = u64>) -> Self {
        let mut counts = Self::default();
        for size in sizes {
            counts.objects += 1;
            counts.bytes += size;
        }
        counts
    }

    pub(super) fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

impl CompactReport {
    /// Objects that were merged.
    pub fn merged(&self) -> u64 {
        self.days().map(|day| day.merged).sum()
    }

    /// Rows that were left out as duplicates.
    pub fn duplicates(&self) -> u64 {
        self.days().map(|day| day.duplicates).sum()
    }

    fn days(&self) -> impl Iterator<Item = &DayReport> {
        self.tables.values().flatten()
    }
}
