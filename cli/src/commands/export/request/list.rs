//! `dynalake export list`: the exports of a table that DynamoDB remembers.

use std::collections::HashMap;

use dynalake_export_job::request::{ExportStatus, Wanted};
use dynalake_export_job::state::complete_key;
use dynalake_pipeline::baseline;
use serde::Serialize;

use super::{table_arn, words};
use crate::args::{ExportListArgs, Format};
use crate::cell;
use crate::cloud::{Call, Exports, Listed};
use crate::exit::{Exit, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, bytes, number};

#[derive(Debug, Serialize)]
struct Listing {
    table_arn: String,
    /// Newest first.
    exports: Vec<One>,
    /// There are older ones.
    more: bool,
}

#[derive(Debug, Serialize)]
struct One {
    export_arn: String,
    status: ExportStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<Wanted>,
    /// The export's folder, as `export convert` takes it.
    source: String,
    started_at_ms: Option<i64>,
    ended_at_ms: Option<i64>,
    items: Option<u64>,
    billed_bytes: Option<u64>,
    /// Holds only part of the items: no baseline can be made of it.
    filtered: bool,
    /// What a lake has of it: `baseline`, `converted`, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    lake: Option<&'static str>,
}

pub(in crate::commands) async fn run(args: &ExportListArgs, printer: &mut Printer) -> Outcome {
    let table = table_arn(&args.table_arn)?;
    let exports = Exports::open(&table).await?;
    let limit = if args.limit == 0 {
        usize::MAX
    } else {
        args.limit
    };
    let call = Call {
        table_arn: table.as_str(),
        bucket: "(any)",
    };
    let listed = exports.list(table.as_str(), limit).await;
    let (listed, more) = listed.map_err(|refused| refused.failure(call))?;
    let mut listing = Listing {
        table_arn: table.as_str().to_owned(),
        exports: listed.into_iter().map(one).collect(),
        more,
    };
    if let Some(lake) = &args.lake {
        look_in(lake, args, &mut listing.exports).await?;
    }
    match args.format {
        Format::Json => printer.json(&listing)?,
        Format::Table => print(&listing, printer)?,
    }
    Ok(Exit::Ok)
}

fn one(listed: Listed) -> One {
    let Listed {
        seen,
        wanted,
        place,
        filtered,
    } = listed;
    let id = seen.export_arn.rsplit('/').next().unwrap_or_default();
    One {
        source: format!("{place}/AWSDynamoDB/{id}/"),
        export_arn: seen.export_arn,
        status: seen.status,
        wanted,
        started_at_ms: seen.start_ms,
        ended_at_ms: seen.end_ms,
        items: seen.items,
        billed_bytes: seen.billed_bytes,
        filtered,
        lake: None,
    }
}

/// Looks which of them a lake has.
async fn look_in(lake: &str, args: &ExportListArgs, exports: &mut [One]) -> Outcome<()> {
    let store = lake::existing(lake, &args.s3).await?;
    let mut states: HashMap<String, &'static str> = store
        .list("state/exports/")
        .await?
        .into_iter()
        .filter_map(|meta| {
            let id = meta.key.split('/').nth(2)?.to_owned();
            (meta.key == complete_key(&id)).then_some((id, "converted"))
        })
        .collect();
    for record in baseline::list(&store).await? {
        states.insert(record.export_id, "baseline");
    }
    for export in exports {
        let id = export.export_arn.rsplit('/').next().unwrap_or_default();
        export.lake = states.get(id).copied();
    }
    Ok(())
}

fn print(listing: &Listing, printer: &mut Printer) -> Outcome<()> {
    if listing.exports.is_empty() {
        printer.note("DynamoDB remembers no export of this table");
        return Ok(());
    }
    let mut sheet = Sheet::new([
        ("started", Align::Left),
        ("export", Align::Left),
        ("state", Align::Left),
        ("items", Align::Right),
        ("billed", Align::Right),
        ("lake", Align::Left),
        ("source", Align::Left),
    ]);
    for export in &listing.exports {
        let state = match export.status {
            ExportStatus::Requested | ExportStatus::InProgress => "in progress",
            ExportStatus::Completed => "completed",
            ExportStatus::Failed => "failed",
        };
        let what = export.wanted.as_ref().map_or("export".to_owned(), words);
        sheet.row([
            export.started_at_ms.map(cell::instant).unwrap_or_default(),
            if export.filtered {
                format!("{what}, filtered")
            } else {
                what
            },
            state.to_owned(),
            export.items.map(number).unwrap_or_default(),
            export.billed_bytes.map(bytes).unwrap_or_default(),
            export.lake.unwrap_or_default().to_owned(),
            export.source.clone(),
        ]);
    }
    printer.table(&sheet)?;
    if listing.more {
        printer.note("there are older ones: `--limit 0` shows all");
    }
    Ok(())
}
