//! One file per command.

mod export;
mod inspect;
mod quarantine;
mod schemas;
mod show;
mod tables;

use crate::World;
use crate::args::{Command, ExportCommand};
use crate::exit::Outcome;
use crate::output::Printer;

/// Runs what was asked for.
pub(crate) async fn run(command: Command, world: &World, printer: &mut Printer) -> Outcome {
    match command {
        Command::Schemas(command) => schemas::run(&command, printer),
        Command::Export(ExportCommand::Convert(args)) => export::run(&args, world, printer).await,
        Command::Tables(args) => tables::run(&args, printer).await,
        Command::Show(args) => show::run(&args, printer).await,
        Command::Inspect(args) => inspect::run(&args, printer).await,
        Command::Quarantine(command) => quarantine::run(&command, printer).await,
    }
}
