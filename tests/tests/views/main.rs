//! The views of a lake, executed: Athena's on DuckDB after Trino's grammar has taken them, DuckDB's by
//! `lake.sql`. Both must give what the rule gives in a few independent lines (`world.rs`) and what
//! `current_rows` gives, row for row and column for column; and every trap of the rule that a broken
//! view falls into must be in the lake.

mod evolution;
mod flat;
mod mutants;
mod schemas;
mod traps;
mod world;

use dynalake_tests::duckdb;
use serde_json::Value;
use world::{State, World, state};

/// No rows.
const NONE: [Value; 0] = [];

/// Of a table of this kind.
fn query(kind: &str) -> String {
    format!("SELECT _pk, _sk, v FROM {kind}s")
}

/// Rows that only one of two queries gives.
fn differences(table: &str, columns: &str, other: &str) -> String {
    format!(
        "FROM ((SELECT {columns} FROM {table} EXCEPT ALL SELECT {columns} FROM \
         {other}) UNION ALL (SELECT {columns} FROM {other} EXCEPT ALL SELECT {columns} FROM {table}))"
    )
}

/// Both engines' views, the rule in Rust and the rule in the test agree on both tables.
async fn assert_agreement(world: &World) {
    let script = world.script().await;
    for kind in ["thing", "other"] {
        let table = format!("{kind}s");
        let expected = world.expected(kind);
        let current = world.current(&table).await;
        let current = format!("read_parquet('{}')", current.display());
        let schema = world.entity(&table).1.arrow_schema();
        let columns: Vec<String> = schema
            .fields()
            .iter()
            .map(|f| format!("\"{}\"", f.name()))
            .collect();
        let columns = columns.join(", ");

        let rows = duckdb(&format!("{script}\n{}", query(kind)));
        assert_eq!(state(&rows), expected, "DuckDB, {table}");
        let different = duckdb(&format!(
            "{script}\n{}",
            differences(&table, &columns, &current)
        ));
        assert_eq!(different, NONE, "DuckDB and Rust, {table}");

        let mut answers = world
            .athena(&[
                ("state", &format!("SELECT _pk, _sk, v FROM lake.{table}")),
                (
                    "different",
                    &differences(&format!("lake.{table}"), &columns, &current),
                ),
            ])
            .await;
        assert_eq!(
            state(&answers.remove("state").unwrap()),
            expected,
            "Athena, {table}"
        );
        assert_eq!(answers["different"], NONE, "Athena and Rust, {table}");
    }
}

/// What DuckDB says the table of things is, by this script.
fn things(script: &str) -> State {
    // A broken view may give a key twice, which is broken enough.
    let rows = duckdb(&format!("{script}\n{}", query("thing")));
    let twice = |rows: &[Value]| {
        let mut keys: Vec<String> = rows
            .iter()
            .map(|r| format!("{}{}", r["_pk"], r["_sk"]))
            .collect();
        keys.sort_unstable();
        keys.windows(2).any(|pair| pair[0] == pair[1])
    };
    if twice(&rows) {
        return State::from([(("a key comes twice".to_owned(), None), String::new())]);
    }
    state(&rows)
}
