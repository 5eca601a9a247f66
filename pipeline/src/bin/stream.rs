//! The stream Lambda: one event of a DynamoDB stream in, objects in the lake out.

use std::process::ExitCode;

use dynalake_pipeline::lambda::process::{clock, run};
use dynalake_pipeline::stream::Context;
use dynalake_pipeline::stream::lambda::{diagnostic, invoke};

fn main() -> ExitCode {
    run(
        "to try an event by hand, use `dynalake replay EVENT.json --lake URI --schemas DIR`",
        |vars| {
            let context = Context::from_vars(vars).map_err(|error| diagnostic(&error))?;
            Ok(context.with_clock(clock))
        },
        &invoke,
    )
}
