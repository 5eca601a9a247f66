//! DuckDB as the judge of what was written: an engine that shares no code with ours.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Whether DuckDB can be asked; says so when not (see `missing`).
pub fn duckdb_available() -> bool {
    let found = crate::python().is_some();
    if !found {
        crate::missing(
            "DuckDB",
            "run tests/run, or set DYNALAKE_PYTHON to a Python that has it",
        );
    }
    found
}

/// Runs one SQL statement in DuckDB and gives its rows as JSON objects.
///
/// Numbers that JSON cannot hold exactly (decimals, integers beyond 2^53), times and binary values
/// come as text: decimals in plain form, times in ISO 8601 (UTC), binary in hexadecimal. Maps come as
/// arrays of `[key, value]`.
pub fn duckdb(sql: &str) -> Vec<Value> {
    let python = crate::python().expect("DuckDB is there: ask duckdb_available first");
    let mut child = Command::new(python)
        .arg(crate::repository().join("tests/py/duck.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python runs");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(sql.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "DuckDB refused:\n{sql}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("rows as JSON")
}
