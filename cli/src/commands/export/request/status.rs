//! `dynalake export status LAKE [REQUEST]`: the requests of a lake, and how far DynamoDB is.

use std::collections::HashMap;

use dynalake_export_job::request::{
    ExportStatus, RequestRecord, Stage, TableArn, store as requests, usual_duration_ms,
};
use dynalake_pipeline::shell::quoted;
use serde::Serialize;

use super::watch::sentence;
use super::{table_arn, words};
use crate::World;
use crate::args::{ExportStatusArgs, Format};
use crate::cell;
use crate::cloud::Exports;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, bytes, number};

#[derive(Debug, Serialize)]
struct Status {
    lake: String,
    /// Newest first.
    requests: Vec<One>,
}

#[derive(Debug, Serialize)]
struct One {
    stage: Stage,
    #[serde(flatten)]
    record: RequestRecord,
}

pub(in crate::commands) async fn run(
    args: &ExportStatusArgs,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    let mut records = requests::list(&store).await?;
    let earlier = records.clone();
    if let Some(id) = &args.request {
        records.retain(|record| record.id == *id);
        if records.is_empty() {
            return Err(
                Failure::usage(format!("the lake has no request `{id}`")).hint(format!(
                    "`dynalake export status {}` lists them",
                    quoted(&args.lake)
                )),
            );
        }
    }
    records.reverse();
    refresh(&mut records, printer).await?;
    let status = Status {
        lake: args.lake.clone(),
        requests: records
            .into_iter()
            .map(|record| One {
                stage: record.stage(),
                record,
            })
            .collect(),
    };
    match args.format {
        Format::Json => printer.json(&status)?,
        Format::Table => print(&status, &earlier, world, printer)?,
    }
    Ok(Exit::Ok)
}

/// Asks DynamoDB about what ran when it was last looked at. The records in the lake stay as they are.
async fn refresh(records: &mut [RequestRecord], printer: &mut Printer) -> Outcome<()> {
    let mut regions: HashMap<String, Exports> = HashMap::new();
    for record in records {
        let table: TableArn = table_arn(&record.target.table_arn)?;
        for index in 0..record.exports.len() {
            let running = record.exports.get(index).and_then(|export| {
                let runs = export.status == ExportStatus::InProgress;
                export.export_arn.clone().filter(|_| runs)
            });
            let Some(arn) = running else { continue };
            if !regions.contains_key(table.region()) {
                let exports = Exports::open(&table).await?;
                regions.insert(table.region().to_owned(), exports);
            }
            let Some(exports) = regions.get(table.region()) else {
                continue;
            };
            match exports.look(&arn).await {
                Ok(seen) => drop(record.saw(index, seen)),
                Err(refused) => printer.warning(format!(
                    "request {}: {} failed: {}; shown is what was known before",
                    record.id, refused.doing, refused.message
                )),
            }
        }
    }
    Ok(())
}

fn print(
    status: &Status,
    earlier: &[RequestRecord],
    world: &World,
    printer: &mut Printer,
) -> Outcome<()> {
    if status.requests.is_empty() {
        printer.note(format!(
            "no export was asked for from `{}`; `dynalake export run` does",
            status.lake
        ));
        return Ok(());
    }
    let mut sheet = Sheet::new([
        ("request", Align::Left),
        ("export", Align::Left),
        ("state", Align::Left),
        ("items", Align::Right),
        ("billed", Align::Right),
        ("id", Align::Left),
    ]);
    for One { stage, record } in &status.requests {
        for export in &record.exports {
            let state = match export.status {
                ExportStatus::Requested => "requested",
                ExportStatus::InProgress => "in progress",
                ExportStatus::Failed => "failed",
                ExportStatus::Completed => match stage {
                    Stage::Committed => "committed",
                    Stage::Converted => "converted",
                    _ => "exported",
                },
            };
            sheet.row([
                record.id.clone(),
                words(&export.wanted),
                state.to_owned(),
                export.items.map(number).unwrap_or_default(),
                export.billed_bytes.map(bytes).unwrap_or_default(),
                export.export_id().unwrap_or_default().to_owned(),
            ]);
        }
    }
    printer.table(&sheet)?;
    for One { stage, record } in &status.requests {
        let usual = record
            .exports
            .first()
            .and_then(|one| usual_duration_ms(earlier, &record.target.table_arn, &one.wanted));
        let resume = format!(
            "`dynalake export resume {} {}",
            quoted(&status.lake),
            record.id
        );
        match stage {
            Stage::Committed => {}
            Stage::Exporting => printer.note(format!(
                "{}: {}; {resume} …` waits for it",
                record.id,
                sentence(record, usual, world.now)
            )),
            Stage::Failed => {
                for failure in record.exports.iter().filter_map(|one| one.failure.as_ref()) {
                    printer.warning(format!(
                        "{}: {} ({}), asked for at {}",
                        record.id,
                        failure.message,
                        failure.code,
                        cell::instant(record.requested_at_ms)
                    ));
                }
                printer.note(format!("{}: {resume} …` asks for it again", record.id));
            }
            _ => printer.note(format!("{}: {resume} …` goes on with it", record.id)),
        }
    }
    Ok(())
}
