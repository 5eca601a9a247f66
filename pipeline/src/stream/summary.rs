//! What an invocation did: counts, sizes and times, never values.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::report::Report;

/// CloudWatch namespace of the metrics.
pub const NAMESPACE: &str = "dynalake";

/// What an invocation did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Name of the lake database.
    pub database: String,
    /// Lake table of items that no entity matched.
    pub unmatched_table: String,
    /// Counts of records and rows.
    pub report: Report,
    /// Objects stored, in the order of their keys.
    pub objects: Vec<StoredObject>,
    /// Time of receipt: milliseconds since 1970-01-01 UTC.
    pub received_at_ms: i64,
    /// Time of receipt minus the newest creation time of the batch: how far the lake is behind, in
    /// milliseconds. `None` when no record says when it was made.
    pub lag_ms: Option<i64>,
    /// Time to read and decode the event.
    pub decode: Duration,
    /// Time to write Parquet and JSON Lines.
    pub encode: Duration,
    /// Time to store all objects.
    pub put: Duration,
}

/// An object that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredObject {
    /// Key in the lake.
    pub key: String,
    /// Lake table; `None` for quarantined records.
    pub table: Option<String>,
    /// Rows, or quarantined records.
    pub rows: u64,
    /// Size in bytes.
    pub bytes: u64,
}

impl Summary {
    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.report.tables.values().map(|table| table.rows).sum()
    }

    /// Bytes of all objects.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }

    /// One line of JSON in CloudWatch's embedded metric format: the numbers are metrics with the
    /// dimension `database`, the counts per table and column are members for Logs Insights.
    ///
    /// Format: "Embedded metric format specification" in the Amazon CloudWatch user guide.
    pub fn metric_line(&self, request_id: Option<&str>) -> String {
        let tables = &self.report.tables;
        let unmatched = tables
            .get(&self.unmatched_table)
            .map_or(0, |table| table.rows);
        let metrics: Vec<(&str, &str, Option<u64>)> = vec![
            ("records", "Count", Some(self.report.records)),
            ("rows", "Count", Some(self.rows())),
            ("quarantined", "Count", Some(self.report.quarantined)),
            (
                "mismatches",
                "Count",
                Some(self.sum(|table| table.mismatches.values().sum())),
            ),
            (
                "inexact",
                "Count",
                Some(self.sum(|table| table.inexact.values().sum())),
            ),
            (
                "undeclared",
                "Count",
                Some(self.sum(|table| table.undeclared.values().sum())),
            ),
            ("unmatched", "Count", Some(unmatched)),
            ("objects", "Count", u64::try_from(self.objects.len()).ok()),
            ("bytes", "Bytes", Some(self.bytes())),
            // A clock that is behind DynamoDB's is no negative lag.
            (
                "lag_ms",
                "Milliseconds",
                self.lag_ms.map(|lag| u64::try_from(lag).unwrap_or(0)),
            ),
            ("decode_ms", "Milliseconds", millis(self.decode)),
            ("encode_ms", "Milliseconds", millis(self.encode)),
            ("put_ms", "Milliseconds", millis(self.put)),
        ];
        let mut line = Map::new();
        let mut declared = Vec::new();
        for (name, unit, value) in metrics {
            if let Some(value) = value {
                declared.push(json!({"Name": name, "Unit": unit}));
                line.insert(name.to_owned(), Value::from(value));
            }
        }
        line.insert("database".to_owned(), Value::from(self.database.as_str()));
        if let Some(request_id) = request_id {
            line.insert("request_id".to_owned(), Value::from(request_id));
        }
        let per_table: Map<String, Value> = tables
            .iter()
            .map(|(name, table)| {
                // Names of undeclared attributes may be data, and are without number: a sum only.
                let undeclared: u64 = table.undeclared.values().sum();
                let counts = json!({
                    "rows": table.rows,
                    "extra_tombstones": table.extra_tombstones,
                    "mismatches": table.mismatches,
                    "inexact": table.inexact,
                    "undeclared": undeclared,
                });
                (name.clone(), counts)
            })
            .collect();
        line.insert("tables".to_owned(), Value::from(per_table));
        line.insert(
            "quarantine_reasons".to_owned(),
            json!(self.report.quarantine_reasons),
        );
        line.insert(
            "_aws".to_owned(),
            json!({
                "Timestamp": self.received_at_ms,
                "CloudWatchMetrics": [{
                    "Namespace": NAMESPACE,
                    "Dimensions": [["database"]],
                    "Metrics": declared,
                }],
            }),
        );
        Value::Object(line).to_string()
    }

    fn sum(&self, count: impl Fn(&crate::report::TableReport) -> u64) -> u64 {
        self.report.tables.values().map(count).sum()
    }
}

fn millis(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::TableReport;

    fn counts(name: &str, count: u64) -> BTreeMap<String, u64> {
        BTreeMap::from([(name.to_owned(), count)])
    }

    fn summary() -> Summary {
        let orders = TableReport {
            rows: 5,
            extra_tombstones: 1,
            mismatches: counts("total", 2),
            inexact: counts("lines[].qty", 3),
            undeclared: counts("SECRETNAME", 4),
        };
        let unmatched = TableReport {
            rows: 2,
            ..TableReport::default()
        };
        let object = |key: &str, bytes| StoredObject {
            key: key.to_owned(),
            table: None,
            rows: 1,
            bytes,
        };
        Summary {
            database: "shop".to_owned(),
            unmatched_table: "unmatched".to_owned(),
            report: Report {
                records: 8,
                quarantined: 2,
                quarantine_reasons: counts("bad_key", 2),
                tables: BTreeMap::from([
                    ("orders".to_owned(), orders),
                    ("unmatched".to_owned(), unmatched),
                ]),
            },
            objects: vec![object("a", 100), object("b", 20)],
            received_at_ms: 1_795_003_600_000,
            lag_ms: Some(1_500),
            decode: Duration::from_micros(7_900),
            encode: Duration::from_millis(3),
            put: Duration::from_millis(40),
        }
    }

    #[test]
    fn the_line_is_one_object_whose_metrics_are_all_there() {
        let text = summary().metric_line(Some("r1"));
        assert!(!text.contains('\n'));
        let line: Value = serde_json::from_str(&text).unwrap();
        for (name, value) in [
            ("records", 8),
            ("rows", 7),
            ("quarantined", 2),
            ("mismatches", 2),
            ("inexact", 3),
            ("undeclared", 4),
            ("unmatched", 2),
            ("objects", 2),
            ("bytes", 120),
            ("lag_ms", 1_500),
            ("decode_ms", 7),
            ("encode_ms", 3),
            ("put_ms", 40),
        ] {
            assert_eq!(line[name], value, "{name}");
        }
        assert_eq!(line["request_id"], "r1");
        assert_eq!(line["_aws"]["Timestamp"], 1_795_003_600_000_i64);
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(directive["Namespace"], "dynalake");
        assert_eq!(
            line[directive["Dimensions"][0][0].as_str().unwrap()],
            "shop"
        );
        let metrics = directive["Metrics"].as_array().unwrap();
        assert_eq!(metrics.len(), 13);
        for metric in metrics {
            assert!(line[metric["Name"].as_str().unwrap()].is_u64(), "{metric}");
        }
        assert_eq!(line["tables"]["orders"]["mismatches"]["total"], 2);
        assert_eq!(line["quarantine_reasons"]["bad_key"], 2);
        assert!(!text.contains("SECRETNAME"));
    }

    #[test]
    fn an_unknown_lag_is_no_metric_and_a_negative_one_is_none() {
        let mut summary = summary();
        summary.lag_ms = None;
        assert!(!summary.metric_line(None).contains("lag_ms"));
        summary.lag_ms = Some(-5);
        let line: Value = serde_json::from_str(&summary.metric_line(None)).unwrap();
        assert_eq!(line["lag_ms"], 0);
    }
}
