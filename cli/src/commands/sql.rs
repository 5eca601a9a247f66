//! `dynalake sql`: the views of a lake as SQL text.

use std::sync::Arc;

use dynalake_pipeline::publish;
use dynalake_schemas::views::{self, duckdb};

use super::duckdb::location;
use crate::World;
use crate::args::{Engine, SqlArgs};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::Printer;

pub(super) async fn run(args: &SqlArgs, world: &World, printer: &mut Printer) -> Outcome {
    let (mut catalog, baseline) = match (&args.lake, &args.schemas) {
        (Some(lake), schemas) => {
            let store = lake::existing(lake, &args.s3).await?;
            let catalog = catalog::of_lake(schemas.as_deref(), &store, printer).await?;
            let baseline = publish::current_baseline(&store).await?;
            if baseline.is_none() {
                printer.note("the lake has no baseline yet: tables hold what changes tell");
            }
            (catalog, baseline)
        }
        (None, Some(schemas)) => (catalog::load(schemas)?, None),
        (None, None) => {
            return Err(Failure::usage("neither a lake nor schemas are given")
                .hint("`dynalake sql LAKE --engine athena`"));
        }
    };
    if let Some(database) = &args.database {
        Arc::make_mut(&mut catalog).database.clone_from(database);
    }
    let text = match (args.engine, &args.lake) {
        (Engine::Athena, lake) => {
            if lake.is_none() {
                printer.note("no lake is given, so the views read no baseline");
            }
            views::athena_script(&catalog, baseline.as_ref())
        }
        (Engine::Duckdb, Some(lake)) => duckdb::script(
            &catalog,
            baseline.as_ref(),
            &location(lake, &args.s3, world)?,
        ),
        (Engine::Duckdb, None) => {
            return Err(Failure::usage(
                "views for DuckDB read a lake's files, and no lake is given",
            )
            .hint("`dynalake sql LAKE --engine duckdb`"));
        }
    };
    printer.raw(&text)?;
    Ok(Exit::Ok)
}
