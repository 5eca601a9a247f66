//! `dynalake`: the operator's command. Thin: everything that matters is in the libraries.

mod args;
mod bundle;
mod catalog;
mod cell;
#[cfg(feature = "cloud")]
mod cloud;
mod commands;
mod estimate;
mod exit;
mod exports;
mod holder;
mod lake;
mod object;
mod output;
mod place;
mod sanitize;
mod suggest;
mod template;
#[cfg(feature = "cloud")]
mod waiting;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;

use crate::args::Cli;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Printer;

/// The system's allocator keeps what a thread has freed for that thread: with one thread after the other
/// converting data files, the memory of a conversion would grow with their number.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What commands take from the world around them; read once, here.
pub(crate) struct World {
    /// Milliseconds since 1970-01-01 UTC at which the command was started.
    pub(crate) now: i64,
    /// How the command was called.
    pub(crate) program: String,
    /// Environment variables, by name.
    pub(crate) environment: fn(&str) -> Option<String>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads clock and environment"
)]
fn world() -> World {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    World {
        now: i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX),
        program: std::env::args()
            .next()
            .unwrap_or_else(|| "dynalake".to_owned()),
        environment: |name| std::env::var(name).ok(),
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let world = world();
    let plain = (world.environment)("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut printer = Printer::new(plain);
    let exit = match run(cli, &world, &mut printer) {
        Ok(exit) => exit,
        Err(failure) => {
            if !failure.message.is_empty() {
                printer.failure(&failure);
            }
            failure.exit
        }
    };
    exit.into()
}

fn run(cli: Cli, world: &World, printer: &mut Printer) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::remote(format!("cannot start the async runtime: {error}")))?;
    let exit = runtime.block_on(async {
        tokio::select! {
            exit = Box::pin(commands::run(cli.command, world, printer)) => exit,
            Ok(()) = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
        }
    });
    // Work on other threads is not waited for: what is half done is done again by the next run.
    runtime.shutdown_background();
    printer.flush()?;
    exit
}
