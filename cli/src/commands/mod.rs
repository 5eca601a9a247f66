//! One file per command.

mod audit;
mod baselines;
mod bundle;
mod compact;
mod current;
mod demo;
mod duckdb;
mod estimate;
mod export;
mod infer;
mod inspect;
mod quarantine;
mod replay;
mod report;
mod rows;
mod schemas;
mod show;
mod sql;
#[cfg(feature = "cloud")]
mod stack;
mod tables;
mod template;

use crate::World;
use crate::args::{Command, ExportCommand};
use crate::exit::Outcome;
use crate::output::Printer;

/// Runs what was asked for.
pub(crate) async fn run(command: Command, world: &World, printer: &mut Printer) -> Outcome {
    match command {
        Command::Demo(args) => demo::run(&args, world, printer).await,
        Command::Infer(args) => infer::run(&args, printer).await,
        Command::Schemas(command) => schemas::run(&command, printer),
        Command::Export(command) => export_command(command, world, printer).await,
        Command::Audit(args) => audit::run(&args, world, printer).await,
        Command::Baselines(command) => baselines::run(&command, world, printer).await,
        Command::Compact(args) => compact::run(&args, world, printer).await,
        Command::Replay(args) => replay::run(&args, world, printer).await,
        Command::Tables(args) => tables::run(&args, printer).await,
        Command::Current(args) => current::run(&args, printer).await,
        Command::Show(args) => show::run(&args, printer).await,
        Command::Sql(args) => sql::run(&args, world, printer).await,
        Command::Duckdb(args) => duckdb::run(&args, world, printer).await,
        Command::Inspect(args) => inspect::run(&args, printer).await,
        Command::Template(args) => template::run(&args, printer),
        Command::Bundle(args) => bundle::run(&args, printer),
        Command::Estimate(args) => estimate::run(&args, printer),
        Command::Quarantine(command) => quarantine::run(&command, world, printer).await,
        #[cfg(feature = "cloud")]
        Command::Status(args) => stack::status(&args, world, printer).await,
        #[cfg(feature = "cloud")]
        Command::Backfill(args) => stack::backfill(&args, world, printer).await,
        #[cfg(feature = "cloud")]
        Command::Publish(args) => stack::publish(&args, printer).await,
    }
}

async fn export_command(command: ExportCommand, world: &World, printer: &mut Printer) -> Outcome {
    match command {
        ExportCommand::Convert(args) => export::run(&args, world, printer).await,
        #[cfg(feature = "cloud")]
        ExportCommand::Run(args) => export::request::run(&args, world, printer).await,
        #[cfg(feature = "cloud")]
        ExportCommand::Status(args) => export::request::status(&args, world, printer).await,
        #[cfg(feature = "cloud")]
        ExportCommand::Resume(args) => export::request::resume(&args, world, printer).await,
        #[cfg(feature = "cloud")]
        ExportCommand::List(args) => export::request::list(&args, printer).await,
    }
}
