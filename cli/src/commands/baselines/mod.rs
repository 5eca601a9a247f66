//! `dynalake baselines …`: the complete states that a lake's tables are read from.

mod list;
mod remove;

use dynalake_pipeline::baseline;

use crate::World;
use crate::args::{BaselinesCommand, BaselinesUnlockArgs};
use crate::cell;
use crate::exit::{Exit, Outcome};
use crate::lake;
use crate::output::Printer;

pub(super) async fn run(
    command: &BaselinesCommand,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    match command {
        BaselinesCommand::List(args) => list::run(args, printer).await,
        BaselinesCommand::Drop(args) => remove::drop(args, world, printer).await,
        BaselinesCommand::Retain(args) => remove::retain(args, world, printer).await,
        BaselinesCommand::Unlock(args) => unlock(args, printer).await,
    }
}

async fn unlock(args: &BaselinesUnlockArgs, printer: &mut Printer) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    match baseline::unlock(&store).await? {
        Some(lock) => printer.line(format!(
            "removed the lock of {} ({}), held since {}",
            lock.holder,
            lock.purpose,
            cell::instant(lock.since_ms)
        ))?,
        None => printer.note("the lake is not locked"),
    }
    Ok(Exit::Ok)
}
