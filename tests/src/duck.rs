//! DuckDB as the judge of what was written: an engine that shares no code with ours.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

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
    serde_json::from_slice(&python("duck.py", sql.as_bytes())).expect("rows as JSON")
}

/// Runs Athena's views of a local lake on DuckDB, and gives the rows of each query by its name; values
/// as of [`duckdb`].
///
/// Each view must be Trino's SQL by its own grammar, and name one `export` literally wherever it reads
/// a snapshot table, as Athena wants of an injected partition. Tables have the columns, types and
/// places that the DDL gives them. `ddl` is for the lake at `s3://lake`.
pub fn athena_on_duckdb(
    ddl: &str,
    lake: &Path,
    views: &[String],
    queries: &[(&str, &str)],
) -> BTreeMap<String, Vec<Value>> {
    let queries: BTreeMap<&str, &str> = queries.iter().copied().collect();
    let input = json!({"ddl": ddl, "lake": lake, "views": views, "queries": queries});
    let output = python("athena.py", &serde_json::to_vec(&input).unwrap());
    serde_json::from_slice(&output).expect("rows as JSON")
}

/// Runs a script of `tests/py`.
fn python(script: &str, input: &[u8]) -> Vec<u8> {
    let python = crate::python().expect("DuckDB is there: ask duckdb_available first");
    let mut child = Command::new(python)
        .arg(crate::repository().join("tests/py").join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python runs");
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{script} refused:\n{}\n{}",
        String::from_utf8_lossy(input),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}
