//! What an audit found: counts, names and hashes, never values or keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

/// Key of the report of an export.
pub fn report_key(label: &str) -> String {
    format!("state/audits/{label}.json")
}

/// What an audit says as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The lake said the same as the export.
    Equal,
    /// It did not.
    Different,
    /// There is no older baseline, so the lake cannot be complete: nothing to compare.
    First,
}

/// The report of one audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// Form of this report.
    pub version: u32,
    /// The lake's database.
    pub database: String,
    /// The export's label.
    pub label: String,
    /// Its time, milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// The baseline that the lake stood on before.
    pub older: Option<String>,
    /// Per lake table.
    pub tables: BTreeMap<String, TableAudit>,
}

/// What was found in one table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableAudit {
    /// Items that are the same in the lake and in the export.
    pub equal: u64,
    /// Items of the export that the lake did not have.
    pub missing: u64,
    /// Items that the lake had and the export does not.
    pub extra: u64,
    /// Items that both have, with other attributes.
    pub different: u64,
    /// Items that are not the same, but changed within the margin of the export's time.
    pub unsure: u64,
    /// Of the different items: how many differ in an attribute, by name.
    pub attributes: BTreeMap<String, u64>,
    /// Some of what is not equal.
    pub samples: Vec<Sample>,
}

/// An item that is not equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// `missing`, `extra` or `different`.
    pub kind: String,
    /// First half of SHA-256 over the partition key, and, after a byte 0xff, the sort key; hex.
    pub key_hash: String,
    /// Names of the attributes that differ.
    pub attributes: Vec<String>,
}

impl TableAudit {
    /// Items that are not equal, without those that cannot be judged.
    pub fn differences(&self) -> u64 {
        self.missing + self.extra + self.different
    }
}

impl AuditReport {
    pub(super) fn new(database: &str, label: &str, at_ms: i64) -> Self {
        Self {
            version: 1,
            database: database.to_owned(),
            label: label.to_owned(),
            at_ms,
            older: None,
            tables: BTreeMap::new(),
        }
    }

    /// Items of all tables that are not equal.
    pub fn differences(&self) -> u64 {
        self.tables.values().map(TableAudit::differences).sum()
    }

    /// What the audit says as a whole.
    pub fn verdict(&self) -> Verdict {
        match (&self.older, self.differences()) {
            (None, _) => Verdict::First,
            (Some(_), 0) => Verdict::Equal,
            (Some(_), _) => Verdict::Different,
        }
    }

    /// One line in CloudWatch's embedded metric format. `now_ms` is the line's time.
    pub fn metric_line(&self, now_ms: i64) -> String {
        let sum = |of: fn(&TableAudit) -> u64| self.tables.values().map(of).sum::<u64>();
        let first = self.verdict() == Verdict::First;
        // A first baseline has nothing to differ from: it must not ring an alarm.
        let judged = |count: u64| if first { 0 } else { count };
        json!({
            "_aws": {
                "Timestamp": now_ms,
                "CloudWatchMetrics": [{
                    "Namespace": "dynalake",
                    "Dimensions": [["database"]],
                    "Metrics": [
                        {"Name": "audit_equal", "Unit": "Count"},
                        {"Name": "audit_missing", "Unit": "Count"},
                        {"Name": "audit_extra", "Unit": "Count"},
                        {"Name": "audit_different", "Unit": "Count"},
                        {"Name": "audit_unsure", "Unit": "Count"},
                    ],
                }],
            },
            "database": self.database,
            "audit": self.label,
            "verdict": self.verdict(),
            "audit_equal": sum(|table| table.equal),
            "audit_missing": judged(sum(|table| table.missing)),
            "audit_extra": judged(sum(|table| table.extra)),
            "audit_different": judged(sum(|table| table.different)),
            "audit_unsure": judged(sum(|table| table.unsure)),
        })
        .to_string()
    }
}
