//! The worker Lambda: a step of an export's way into the lake, the views, compaction.

use std::process::ExitCode;

use dynalake_export_job::function::{Context, invoke};
use dynalake_pipeline::lambda::process::{clock, run};

fn main() -> ExitCode {
    run(
        "to convert an export by hand, use `dynalake export convert`",
        |vars| Context::from_vars(vars, clock).map_err(|error| error.diagnostic()),
        &invoke,
    )
}
