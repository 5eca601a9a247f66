//! The compaction as a Lambda function, called on a schedule.
//!
//! ```json
//! {"before": "2026-05-01", "target_mb": 256, "grace_hours": 24}
//! ```
//! Every member may be left out, others are ignored: the event of a schedule will do.

use std::path::PathBuf;

use dynalake_schemas::Catalog;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::CompactError;
use super::options::{CompactOptions, Watch};
use super::report::CompactReport;
use super::run::compact;
use crate::store::Store;
use crate::stream::summary::NAMESPACE;
use crate::time::{DAY_MS, parse_iso_date};

/// What the function is called with.
#[derive(Debug, Default, Deserialize)]
struct Event {
    before: Option<String>,
    target_mb: Option<u64>,
    grace_hours: Option<i64>,
}

/// What an invocation needs, besides the event.
pub struct Context<'a> {
    /// The lake.
    pub store: &'a Store,
    /// The schemas.
    pub catalog: &'a Catalog,
    /// Folder for temporary files (`/tmp`).
    pub spool: PathBuf,
    /// Memory for open runs, in bytes.
    pub memory_bytes: usize,
}

/// What an invocation gives.
#[derive(Debug)]
pub struct Outcome {
    /// One line of JSON for the log, in CloudWatch's embedded metric format.
    pub log_line: String,
    /// What was done; `unfinished` where `watch` said that time was up.
    pub report: CompactReport,
}

/// Compacts a lake. `now_ms` is the time in milliseconds since 1970-01-01 UTC; `watch` stops the work
/// before the function's time is over.
///
/// # Errors
/// The event cannot be used, or as of [`compact`].
pub async fn lambda(
    event: &[u8],
    now_ms: i64,
    context: &Context<'_>,
    watch: &dyn Watch,
) -> Result<Outcome, CompactError> {
    let options = options(event, now_ms, context)?;
    let report = compact(context.store, context.catalog, &options, watch).await?;
    Ok(Outcome {
        log_line: metric_line(&report, &context.catalog.database, now_ms),
        report,
    })
}

fn options(
    event: &[u8],
    now_ms: i64,
    context: &Context<'_>,
) -> Result<CompactOptions, CompactError> {
    let problem = |text: String| CompactError::Event(text);
    let event: Option<Event> =
        serde_json::from_slice(event).map_err(|error| problem(error.to_string()))?;
    let event = event.unwrap_or_default();
    let mut options = CompactOptions {
        memory_bytes: context.memory_bytes,
        spool: Some(context.spool.clone()),
        ..CompactOptions::at(now_ms)
    };
    if let Some(text) = event.before {
        options.before = parse_iso_date(&text)
            .ok_or_else(|| problem("`before` must be a day, `YYYY-MM-DD`".to_owned()))?;
    }
    if let Some(target) = event.target_mb {
        options.target_bytes = match target {
            1..=4096 => target << 20,
            _ => return Err(problem("`target_mb` must be 1 to 4096".to_owned())),
        };
    }
    if let Some(hours) = event.grace_hours {
        options.grace_ms = match hours {
            0..=8760 => hours * (DAY_MS / 24),
            _ => return Err(problem("`grace_hours` must be 0 to 8760".to_owned())),
        };
    }
    Ok(options)
}

/// The report as one line in CloudWatch's embedded metric format (Amazon CloudWatch user guide,
/// "Embedded metric format specification").
pub fn metric_line(report: &CompactReport, database: &str, now_ms: i64) -> String {
    let problems = u64::try_from(report.problems.len()).unwrap_or(u64::MAX);
    let metrics = [
        ("compact_merged", "Count", report.merged()),
        (
            "compact_objects_before",
            "Count",
            report.objects_before.objects,
        ),
        (
            "compact_objects_after",
            "Count",
            report.objects_after.objects,
        ),
        ("compact_bytes_before", "Bytes", report.objects_before.bytes),
        ("compact_bytes_after", "Bytes", report.objects_after.bytes),
        ("compact_duplicates", "Count", report.duplicates()),
        ("compact_deleted", "Count", report.deleted.objects),
        ("compact_problems", "Count", problems),
    ];
    let mut line = Map::new();
    for (name, _, value) in metrics {
        line.insert(name.to_owned(), value.into());
    }
    line.insert("database".to_owned(), database.into());
    line.insert("unfinished".to_owned(), report.unfinished.into());
    line.insert("problems".to_owned(), json!(report.problems));
    let declared: Vec<Value> = metrics
        .iter()
        .map(|(name, unit, _)| json!({"Name": name, "Unit": unit}))
        .collect();
    let directive = json!({
        "Timestamp": now_ms,
        "CloudWatchMetrics": [{
            "Namespace": NAMESPACE,
            "Dimensions": [["database"]],
            "Metrics": declared,
        }],
    });
    line.insert("_aws".to_owned(), directive);
    Value::Object(line).to_string()
}
