//! The template under test, and what the binaries say of themselves.

use std::fs;
use std::process::Command;
use std::time::Duration;

use dynalake_pipeline::audit::AuditReport;
use dynalake_pipeline::compact::CompactReport;
use dynalake_pipeline::lambda::config;
use dynalake_pipeline::stream::Summary;
use dynalake_tests::{binary, python, repository};
use serde_json::{Value, json};

/// The command, in the repository.
pub(crate) fn dynalake(arguments: &[&str]) -> String {
    let output = Command::new(binary("dynalake"))
        .args(arguments)
        .current_dir(repository())
        .output()
        .expect("dynalake runs");
    assert!(
        output.status.success(),
        "dynalake {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The example's template.
pub(crate) fn template() -> String {
    dynalake(&["template", "schemas/ecommerce"])
}

/// A file of `infra/`.
pub(crate) fn infra(name: &str) -> String {
    fs::read_to_string(repository().join("infra").join(name)).unwrap()
}

/// Whether the judges can be asked; says so when not.
pub(crate) fn judges() -> bool {
    let found = python().is_some();
    assert!(
        found || std::env::var_os("DYNALAKE_TEST_REQUIRE").is_none(),
        "Python with cfn-lint is required: run tests/run"
    );
    found
}

/// What the binaries emit, read and know.
pub(crate) fn facts() -> Value {
    let summary = Summary {
        lag_ms: Some(0),
        decode: Duration::ZERO,
        ..Summary::default()
    };
    let audit = AuditReport {
        version: 1,
        database: String::new(),
        label: String::new(),
        at_ms: 0,
        older: None,
        tables: std::collections::BTreeMap::new(),
    };
    let compaction =
        dynalake_pipeline::compact::lambda::metric_line(&CompactReport::default(), "", 0);
    let lines = [summary.metric_line(None), audit.metric_line(0), compaction];
    let metrics: Vec<String> = lines.iter().flat_map(|line| declared(line)).collect();
    let stream = config::VARIABLES.to_vec();
    let mut export_job = stream.clone();
    export_job.extend(dynalake_export_job::function::VARIABLES);
    json!({
        "metrics": metrics,
        "handlers": ["stream", "plan", "convert", "commit", "audit", "roll", "requests", "compact", "publish"],
        "variables": {"stream": stream, "export-job": export_job},
    })
}

/// Names of the metrics that a line in the embedded metric format declares.
fn declared(line: &str) -> Vec<String> {
    let line: Value = serde_json::from_str(line).unwrap();
    let directive = &line["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(directive["Namespace"], "dynalake");
    assert_eq!(directive["Dimensions"], json!([["database"]]));
    let metrics = directive["Metrics"].as_array().unwrap();
    metrics
        .iter()
        .map(|metric| metric["Name"].as_str().unwrap().to_owned())
        .collect()
}
