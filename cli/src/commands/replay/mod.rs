//! `dynalake replay`: stream events through the code of the Lambda; from files, or those that the event
//! source mapping gave up.

mod failed;
pub(super) mod parked;

use std::path::Path;

use dynalake_pipeline::record::Origin;
use dynalake_pipeline::report::Report;
use dynalake_pipeline::shell::quoted;
use dynalake_pipeline::store::Store;
use dynalake_pipeline::stream::{Context, StreamError, Summary, handle};
use serde::Serialize;
use tokio::io::AsyncReadExt;

use super::report::{counts_sheet, quarantine_lines};
use crate::World;
use crate::args::{Format, ReplayArgs};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, bytes, number};

#[derive(Debug, Serialize)]
struct EventReport {
    event: String,
    #[serde(flatten)]
    summary: Summary,
}

pub(super) async fn run(args: &ReplayArgs, world: &World, printer: &mut Printer) -> Outcome {
    if let Some(place) = &args.failed {
        return failed::run(args, place.as_deref(), world, printer).await;
    }
    let lake = args.lake.as_deref().ok_or_else(no_lake)?;
    let store = lake::writable(lake, &args.s3).await?;
    let context = context(&args.schemas, store, world)?;
    let mut events = Vec::new();
    for path in &args.events {
        let name = path.display().to_string();
        let event = read(path).await?;
        let summary = handle(&event, world.now, &context, Origin::Replay)
            .await
            .map_err(|error| failure(&name, &error))?;
        events.push(EventReport {
            event: name,
            summary,
        });
    }
    match args.format {
        Format::Json => printer.json(&events)?,
        Format::Table => {
            print(&events, printer)?;
            if events
                .iter()
                .any(|event| event.summary.report.quarantined > 0)
            {
                printer.note(format!(
                    "see why: `dynalake quarantine show {}`",
                    quoted(lake)
                ));
            }
        }
    }
    Ok(Exit::Ok)
}

fn no_lake() -> Failure {
    Failure::usage("no lake is given").hint("give `--lake URI`")
}

/// What the handler needs, as the Lambda would have it.
pub(super) fn context(schemas: &Path, store: Store, world: &World) -> Outcome<Context> {
    let catalog = catalog::load(schemas)?;
    let secrets = catalog::secrets(world)?;
    let context =
        Context::new(catalog, secrets, store).map_err(|error| Failure::usage(error.chain()))?;
    Ok(
        match (world.environment)(dynalake_pipeline::lambda::config::SOURCE_TABLE) {
            Some(table) if !table.is_empty() => context.with_source_table(table),
            _ => context,
        },
    )
}

async fn read(path: &Path) -> Outcome<Vec<u8>> {
    let mut event = Vec::new();
    let outcome = if path == Path::new("-") {
        tokio::io::stdin()
            .read_to_end(&mut event)
            .await
            .map(|_bytes| ())
    } else {
        std::fs::read(path).map(|read| event = read)
    };
    outcome
        .map(|()| event)
        .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", path.display())))
}

/// What a failed event means for the operator.
pub(super) fn failure(event: &str, error: &StreamError) -> Failure {
    let message = format!("`{event}`: {}", error.chain());
    match error {
        StreamError::Config(_) | StreamError::SourceTable { .. } => Failure::usage(message),
        StreamError::Event(_) | StreamError::ViewType { .. } | StreamError::Encode(_) => {
            Failure::findings(message)
        }
        _ => Failure::remote(message).hint("the same command writes the same objects again"),
    }
}

fn print(events: &[EventReport], printer: &mut Printer) -> Outcome<()> {
    let mut sheet = Sheet::new([
        ("event", Align::Left),
        ("records", Align::Right),
        ("rows", Align::Right),
        ("quarantined", Align::Right),
        ("objects", Align::Right),
        ("bytes", Align::Right),
    ]);
    let mut total = Report::default();
    for EventReport { event, summary } in events {
        total.merge(&summary.report);
        sheet.row([
            event.clone(),
            number(summary.report.records),
            number(summary.rows()),
            number(summary.report.quarantined),
            summary.objects.len().to_string(),
            bytes(summary.bytes()),
        ]);
    }
    printer.table(&sheet)?;
    printer.line("")?;
    let tables = total
        .tables
        .iter()
        .map(|(table, counts)| (table.as_str(), counts));
    printer.table(&counts_sheet(tables))?;
    quarantine_lines(&total.quarantine_reasons, printer)?;
    Ok(())
}
