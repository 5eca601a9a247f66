//! `dynalake quarantine …`: records that could not become rows.

mod list;
mod replay;
mod show;

use dynalake_pipeline::quarantine::{self, QuarantineEntry};
use dynalake_pipeline::store::{ObjectMeta, Store};

use crate::World;
use crate::args::QuarantineCommand;
use crate::exit::{Failure, Outcome};
use crate::output::Printer;
use crate::place::Place;

pub(super) async fn run(
    command: &QuarantineCommand,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    match command {
        QuarantineCommand::List(args) => list::run(args, printer).await,
        QuarantineCommand::Show(args) => show::run(args, printer).await,
        QuarantineCommand::Replay(args) => replay::run(args, world, printer).await,
    }
}

/// Quarantine objects of a lake, newest day first; only those that one of the given keys begins
/// (none: all). Replayed ones are no longer in quarantine.
async fn objects(store: &Store, prefixes: &[String]) -> Outcome<Vec<ObjectMeta>> {
    let mut objects = store.list("quarantine/").await?;
    objects.retain(|object| Place::of(&object.key) == Place::Quarantine);
    for prefix in prefixes {
        if !objects.iter().any(|object| object.key.starts_with(prefix)) {
            return Err(
                Failure::usage(format!("no quarantine object begins with `{prefix}`"))
                    .hint("`dynalake quarantine list` shows their keys"),
            );
        }
    }
    objects.retain(|object| {
        prefixes.is_empty() || prefixes.iter().any(|prefix| object.key.starts_with(prefix))
    });
    objects.reverse();
    Ok(objects)
}

/// The records of a quarantine object; none when it is gone by now.
async fn entries(store: &Store, key: &str) -> Outcome<Vec<QuarantineEntry>> {
    let Some(text) = store.get(key).await? else {
        return Ok(Vec::new());
    };
    quarantine::from_jsonl(&text).map_err(|error| {
        Failure::findings(format!("`{}`: {error}", store.address(key)))
            .hint("the object was not written by dynalake, or was cut short: look at it by hand")
    })
}

/// All records of a lake's quarantine, oldest day first.
pub(super) async fn all_entries(store: &Store) -> Outcome<Vec<QuarantineEntry>> {
    let mut all = Vec::new();
    for object in objects(store, &[]).await?.iter().rev() {
        all.extend(entries(store, &object.key).await?);
    }
    Ok(all)
}
