//! What came of a conversion: counts and names, never values.

use std::collections::BTreeMap;

use dynalake_pipeline::report::{Report, TableReport};
use serde::{Deserialize, Serialize};

use crate::state::StateKind;

/// Outcome of a conversion. A run that goes on after another one counts what that one did too:
/// but for `files.resumed` and `warnings` the report of an export is always the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvertReport {
    /// What was converted.
    pub kind: StateKind,
    /// The export's id.
    pub export_id: String,
    /// The export's ARN.
    pub export_arn: String,
    /// The source table's ARN.
    pub table_arn: String,
    /// Begin of an incremental export's window, milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_time: Option<i64>,
    /// The export's time, or the end of its window, milliseconds since 1970-01-01 UTC.
    pub export_time: i64,
    /// Value of the partition `export=…` that the rows are in.
    pub label: String,
    /// Data files.
    pub files: FileCounts,
    /// Items read; equal to the items that the manifests promise.
    pub items: u64,
    /// Compressed bytes read.
    pub bytes_in: u64,
    /// Bytes of Parquet written.
    pub bytes_out: u64,
    /// Per lake table, those without rows left out.
    pub tables: BTreeMap<String, TableOutcome>,
    /// Items that went to quarantine.
    pub quarantined: u64,
    /// The same by reason code.
    pub quarantine_reasons: BTreeMap<String, u64>,
    /// Of these, the ones of an incremental export whose keys cannot be read: a row that the tables
    /// have of such an item stays as it was.
    pub without_keys: u64,
    /// Keys of the quarantine objects.
    pub quarantine_objects: Vec<String>,
    /// What was not as it should be, but no reason to stop.
    pub warnings: Vec<String>,
}

/// Data files of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCounts {
    /// In the manifest.
    pub total: u64,
    /// Converted by this run.
    pub converted: u64,
    /// Converted by an earlier run, and whole.
    pub resumed: u64,
}

/// What one lake table got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableOutcome {
    /// Objects.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Rows and what is to be said of their values.
    #[serde(flatten)]
    pub counts: TableReport,
}

impl ConvertReport {
    /// Items in rows or in quarantine; must be [`Self::items`].
    pub fn accounted(&self) -> u64 {
        let rows = self
            .tables
            .values()
            .map(|table| own_rows(&table.counts))
            .sum::<u64>();
        rows + self.quarantined
    }

    /// Adds the counts of one data file.
    pub(crate) fn add(&mut self, report: &Report) {
        self.items += report.records;
        self.quarantined += report.quarantined;
        let mut sum = Report {
            quarantine_reasons: std::mem::take(&mut self.quarantine_reasons),
            ..Report::default()
        };
        for (table, outcome) in &mut self.tables {
            sum.tables
                .insert(table.clone(), std::mem::take(&mut outcome.counts));
        }
        sum.merge(report);
        self.quarantine_reasons = sum.quarantine_reasons;
        for (table, counts) in sum.tables {
            self.tables.entry(table).or_default().counts = counts;
        }
    }

    /// Adds an object of a table.
    pub(crate) fn add_object(&mut self, table: &str, bytes: u64) {
        let outcome = self.tables.entry(table.to_owned()).or_default();
        outcome.objects += 1;
        outcome.bytes += bytes;
        self.bytes_out += bytes;
    }
}

/// Items of a pipeline report in rows or in quarantine.
pub(crate) fn accounted(report: &Report) -> u64 {
    report.tables.values().map(own_rows).sum::<u64>() + report.quarantined
}

fn own_rows(counts: &TableReport) -> u64 {
    counts.rows.saturating_sub(counts.extra_tombstones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up() {
        let mut part = Report {
            records: 5,
            quarantined: 1,
            ..Report::default()
        };
        part.quarantine_reasons.insert("bad_key".to_owned(), 1);
        let orders = TableReport {
            rows: 5,
            extra_tombstones: 1,
            ..TableReport::default()
        };
        part.tables.insert("orders".to_owned(), orders);
        let mut report = ConvertReport::default();
        report.add(&part);
        report.add_object("orders", 100);
        report.add(&part);
        assert_eq!(accounted(&part), 5);
        assert_eq!((report.items, report.accounted()), (10, 10));
        assert_eq!(report.quarantine_reasons["bad_key"], 2);
        let orders = &report.tables["orders"];
        assert_eq!(
            (orders.counts.rows, orders.objects, orders.bytes),
            (10, 1, 100)
        );
    }
}
