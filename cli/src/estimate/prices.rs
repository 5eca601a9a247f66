//! The price list: a dated file that anybody can edit.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Outcome};

/// The list that comes with the command.
const DEFAULT: &str = include_str!("../../../infra/prices.toml");

/// Prices and what is taken for granted beside them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceList {
    /// Month of the prices, `YYYY-MM`.
    pub(crate) as_of: String,
    /// AWS region.
    pub(crate) region: String,
    /// ISO 4217 code.
    pub(crate) currency: String,
    /// Prices in that currency.
    pub(crate) prices: Prices,
    /// Quantities that do not follow from the load.
    pub(crate) assumptions: Assumptions,
}

/// Prices; a month is 730 hours.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prices {
    /// A second of one GB of a function on arm64.
    pub(crate) lambda_gb_second_arm64: f64,
    /// A million invocations.
    pub(crate) lambda_million_requests: f64,
    /// A thousand PUT and LIST requests.
    pub(crate) s3_thousand_puts: f64,
    /// A thousand GET requests.
    pub(crate) s3_thousand_gets: f64,
    /// A GB in standard storage for a month.
    pub(crate) s3_gb_month: f64,
    /// A GB of the table in a full export.
    pub(crate) dynamodb_full_export_gb: f64,
    /// A GB of changes in an incremental export.
    pub(crate) dynamodb_incremental_export_gb: f64,
    /// Point-in-time recovery of a GB of the table for a month.
    pub(crate) dynamodb_recovery_gb_month: f64,
    /// A thousand state transitions of a standard workflow.
    pub(crate) step_functions_thousand_transitions: f64,
    /// A key for a month.
    pub(crate) kms_key_month: f64,
    /// A secret for a month.
    pub(crate) secret_month: f64,
    /// A metric of our own for a month.
    pub(crate) cloudwatch_metric_month: f64,
    /// A metric that an alarm looks at, for a month.
    pub(crate) cloudwatch_alarm_metric_month: f64,
    /// A dashboard for a month.
    pub(crate) cloudwatch_dashboard_month: f64,
    /// A GB of log that is taken in.
    pub(crate) cloudwatch_log_gb: f64,
    /// A TB that queries read.
    pub(crate) athena_tb_scanned: f64,
}

/// What is taken for granted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assumptions {
    /// Seconds that a batch is waited for.
    pub(crate) batch_window_seconds: f64,
    /// Records of a batch at most.
    pub(crate) batch_records: f64,
    /// Memory of the stream function.
    pub(crate) stream_memory_gb: f64,
    /// Memory of the functions that convert and compact.
    pub(crate) worker_memory_gb: f64,
    /// Size of a batch at most, in MB.
    pub(crate) batch_megabytes: f64,
    /// Bytes of a record in an event, without images.
    pub(crate) event_bytes_per_record: f64,
    /// Bytes of an image in an event per byte of the item.
    pub(crate) event_bytes_per_item_byte: f64,
    /// Size of a partition at most.
    pub(crate) shard_gb: f64,
    /// Changes a second of a partition at most.
    pub(crate) shard_changes_per_second: f64,
    /// Seconds of an invocation whatever its size.
    pub(crate) stream_seconds_per_batch: f64,
    /// Seconds for a million records.
    pub(crate) stream_seconds_per_million_records: f64,
    /// Bytes of Parquet per byte of items.
    pub(crate) parquet_share: f64,
    /// Bytes of an export's files per byte of the table.
    pub(crate) export_share: f64,
    /// Days that the files of an export are kept.
    pub(crate) export_days: f64,
    /// Complete snapshots that are kept.
    pub(crate) baselines_kept: f64,
    /// Seconds of a worker per GB of the table.
    pub(crate) conversion_seconds_per_gb: f64,
    /// GB of the table that one invocation converts.
    pub(crate) part_gb: f64,
    /// State transitions for that.
    pub(crate) transitions_per_part: f64,
    /// Other state transitions of an export.
    pub(crate) transitions_per_export: f64,
    /// Bytes of log of an invocation.
    pub(crate) log_bytes_per_batch: f64,
    /// Metrics of our own.
    pub(crate) custom_metrics: f64,
    /// Metrics that alarms look at.
    pub(crate) alarm_metrics: f64,
}

impl PriceList {
    /// The list in a file, or the one that comes with the command.
    pub(crate) fn load(path: Option<&Path>) -> Outcome<Self> {
        let (name, text) = match path {
            None => ("the price list".to_owned(), DEFAULT.to_owned()),
            Some(path) => {
                let name = format!("`{}`", path.display());
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
                (name, text)
            }
        };
        let list: Self = toml::from_str(&text).map_err(|error| {
            Failure::usage(format!("{name} is not a price list: {error}")).hint(
                "begin with a copy of infra/prices.toml: all names must be there, and no others",
            )
        })?;
        match list.not_positive() {
            None => Ok(list),
            Some(what) => Err(Failure::usage(format!(
                "{name}: `{what}` must be greater than 0"
            ))),
        }
    }

    /// A quantity that is divided by and is not greater than zero.
    fn not_positive(&self) -> Option<&'static str> {
        let a = &self.assumptions;
        [
            ("batch_window_seconds", a.batch_window_seconds),
            ("batch_records", a.batch_records),
            ("batch_megabytes", a.batch_megabytes),
            ("event_bytes_per_record", a.event_bytes_per_record),
            ("shard_gb", a.shard_gb),
            ("shard_changes_per_second", a.shard_changes_per_second),
            ("part_gb", a.part_gb),
        ]
        .into_iter()
        .find(|(_, value)| !value.is_finite() || *value <= 0.0)
        .map(|(name, _)| name)
    }
}
