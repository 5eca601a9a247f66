//! `dynalake quarantine show LAKE`: why records are in quarantine, and with `--payload` the records.

use dynalake_pipeline::quarantine::QuarantineEntry;
use serde_json::Value;

use super::{entries, objects};
use crate::args::{Format, QuarantineShowArgs};
use crate::cell;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet};

/// Members of an entry that hold the record itself.
const PAYLOAD: [&str; 2] = ["payload", "payload_base64"];

/// An entry and where it lies.
struct Found {
    object: String,
    line: usize,
    entry: QuarantineEntry,
}

pub(super) async fn run(args: &QuarantineShowArgs, printer: &mut Printer) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    let limit = if args.limit == 0 {
        usize::MAX
    } else {
        args.limit
    };
    let (mut found, mut more) = (Vec::new(), false);
    'objects: for object in objects(&store, &args.objects).await? {
        for (index, entry) in entries(&store, &object.key).await?.into_iter().enumerate() {
            if args
                .reason
                .as_deref()
                .is_some_and(|reason| reason != entry.reason.as_str())
            {
                continue;
            }
            if found.len() == limit {
                more = true;
                break 'objects;
            }
            found.push(Found {
                object: object.key.clone(),
                line: index + 1,
                entry,
            });
        }
    }
    match args.format {
        Format::Json => {
            let entries: Vec<Value> = found
                .iter()
                .map(|one| json(one, args.payload))
                .collect::<serde_json::Result<_>>()
                .map_err(Failure::findings)?;
            printer.json(&entries)?;
        }
        Format::Table if found.is_empty() => printer.note("nothing of that kind is in quarantine"),
        Format::Table if args.payload => {
            for one in &found {
                block(one, printer)?;
            }
        }
        Format::Table => printer.rows(&sheet(&found))?,
    }
    if more {
        printer.note(format!(
            "the newest {} records; `--limit 0` prints all",
            found.len()
        ));
    }
    if args.format == Format::Table && !args.payload && !found.is_empty() {
        printer.note("`--payload` prints the records, too: they hold customers' data in clear");
    }
    Ok(Exit::Ok)
}

/// The entry as it stands in its object, and where that is.
fn json(found: &Found, payload: bool) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(&found.entry)?;
    if let Value::Object(members) = &mut value {
        if !payload {
            for name in PAYLOAD {
                members.remove(name);
            }
        }
        members.insert("object".to_owned(), found.object.clone().into());
        members.insert("line".to_owned(), found.line.into());
    }
    Ok(value)
}

fn sheet(found: &[Found]) -> Sheet {
    let mut sheet = Sheet::new([
        ("at", Align::Left),
        ("reason", Align::Left),
        ("entity", Align::Left),
        ("path", Align::Left),
        ("why", Align::Left),
        ("from", Align::Left),
    ]);
    for one in found {
        let entry = &one.entry;
        sheet.row([
            cell::instant(entry.at),
            entry.reason.as_str().to_owned(),
            entry.entity.clone().unwrap_or_default(),
            entry.path.clone().unwrap_or_default(),
            entry.message.clone(),
            entry.origin.to_string(),
        ]);
    }
    sheet
}

fn block(found: &Found, printer: &mut Printer) -> Outcome<()> {
    let entry = &found.entry;
    printer.line(format!("{} line {}", found.object, found.line))?;
    let path = entry
        .path
        .as_deref()
        .map(|path| format!(" at `{path}`"))
        .unwrap_or_default();
    printer.line(format!(
        "  {}: {}{path}",
        entry.reason.as_str(),
        entry.message
    ))?;
    if let Some(entity) = &entry.entity {
        printer.line(format!("  entity {entity}"))?;
    }
    printer.line(format!(
        "  from {} at {}",
        entry.origin,
        cell::instant(entry.at)
    ))?;
    printer.line(format!("  {}", String::from_utf8_lossy(&entry.payload)))?;
    Ok(())
}
