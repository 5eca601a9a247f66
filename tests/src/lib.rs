//! The harness of the end-to-end tests: real parts around the real binaries.
//!
//! ```text
//! test ─ RuntimeApi ─ `stream` binary ─ FaultProxy ─ SeaweedFS (checks signatures)
//!   └──── Store ──────────────────────────────────────┘
//!   └──── DuckDB on what came out
//!   └──── MiniStack: a table and its stream; its exports
//!   └──── ScriptedDynamo: exports that take their time, fail, or are refused
//! ```
//!
//! Parts that are not on the machine are skipped with a message; with `DYNALAKE_TEST_REQUIRE=1`
//! (which `tests/run` sets) they are a failure. Nothing here reaches the internet.

mod corpus;
mod duck;
mod dynamo_script;
mod http1;
mod lambda;
mod ministack;
pub mod oracle;
mod paths;
mod proxy;
mod random;
mod seaweed;
mod stack;

pub use corpus::{corpus, corpus_files};
pub use duck::{athena_on_duckdb, duckdb, duckdb_available};
pub use dynamo_script::{Called, Said, ScriptedDynamo};
pub use lambda::{InitError, Invocation, LambdaError, LambdaProcess};
pub use ministack::{DynamoClient, DynamoError, DynamoTable, MiniStack, ministack};
pub use paths::{binary, python, repository, weed};
pub use proxy::{Action, FaultProxy, ProxiedRequest};
pub use random::Random;
pub use seaweed::{S3Place, Seaweed, seaweed};
pub use stack::{glue_tables, judge_template, unnoticed_mistakes};

/// Says that a part is missing: a failure where parts are required, else a message.
fn missing(part: &str, remedy: &str) {
    let required = std::env::var_os("DYNALAKE_TEST_REQUIRE").is_some_and(|value| value == "1");
    assert!(
        !required,
        "{part} is required (DYNALAKE_TEST_REQUIRE=1) but missing: {remedy}"
    );
    eprintln!("skipped: {part} is missing; {remedy}");
}
