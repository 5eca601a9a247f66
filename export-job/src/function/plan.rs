//! `plan`: manifests verified, the lake claimed, the work list written.

use bytes::Bytes;
use dynalake_pipeline::baseline;
use dynalake_pipeline::lambda::Place;
use serde_json::{Value, json};

use super::Call;
use super::error::StepError;
use crate::locate;
use crate::manifest::Summary;
use crate::roll::{Chain, Window, chain};
use crate::source::Source;
use crate::steps::{Steps, WorkItem};

/// What refusals tell to run begins with `dynalake …`; this ends it.
pub(super) const COMMAND_END: &str = "--lake LAKE --schemas DIR";

/// An export of the event.
pub(super) struct Export {
    pub(super) address: String,
    pub(super) source: Source,
    pub(super) summary: Summary,
}

/// What the event's exports are together.
pub(super) enum Exports {
    Full(Box<Export>),
    /// At least one, in the event's order.
    Incremental(Vec<Export>),
}

/// Reads the summaries of the event's exports.
pub(super) async fn exports(call: &Call<'_>) -> Result<Exports, StepError> {
    let options = call.context.options(call);
    let table = options.source_table(&call.context.catalog);
    let mut exports = Vec::new();
    for export in &call.event.exports {
        let address = export.address();
        let source = call.context.source(&address)?;
        let summary = locate::read_summary(&source, table).await?;
        exports.push(Export {
            address,
            source,
            summary,
        });
    }
    let is_window = |export: &Export| Window::of(&export.summary).is_some();
    if exports.iter().all(is_window) && !exports.is_empty() {
        return Ok(Exports::Incremental(exports));
    }
    match (exports.pop(), exports.is_empty()) {
        (Some(export), true) => Ok(Exports::Full(Box::new(export))),
        (None, _) => Err(StepError::Event(
            "the event names no export; give `exports`".to_owned(),
        )),
        (Some(_), false) => Err(StepError::Event(
            "give one full export, or one or several incremental ones".to_owned(),
        )),
    }
}

/// Those of several incremental exports that have a part in the next baseline.
pub(super) async fn windows(
    call: &Call<'_>,
    exports: Vec<Export>,
) -> Result<Vec<Export>, StepError> {
    let baselines = baseline::list(&call.context.store).await?;
    let windows = exports
        .iter()
        .filter_map(|export| Window::of(&export.summary));
    let windows = windows.collect();
    Ok(
        match chain(&baselines, windows, call.event.replace, COMMAND_END)? {
            Chain::Done(_) => Vec::new(),
            Chain::Roll(_, windows) => {
                let taken = |export: &Export| {
                    windows
                        .iter()
                        .any(|window| window.export_id == export.summary.export_id)
                };
                exports.into_iter().filter(taken).collect()
            }
        },
    )
}

pub(super) async fn plan(call: &Call<'_>) -> Result<Value, StepError> {
    let context = call.context;
    let place = context.work()?;
    let options = context.options(call);
    let steps = Steps {
        lake: &context.store,
        catalog: &context.catalog,
        secrets: &context.secrets,
        options: &options,
    };
    let (kind, exports) = match exports(call).await? {
        Exports::Full(export) => ("full", vec![*export]),
        // What is missing is better told before anything is converted.
        Exports::Incremental(exports) => ("incremental", windows(call, exports).await?),
    };
    let mut todo = Vec::new();
    let mut warnings = Vec::new();
    let (mut files, mut items, mut bytes) = (0, 0, 0);
    for export in &exports {
        let plan = steps.plan(&export.source, &export.address).await?;
        files += plan.files;
        items += plan.items;
        bytes += plan.bytes;
        todo.extend(plan.todo);
        warnings.extend(plan.warnings);
    }
    let key = format!("plans/{}.jsonl", file_name(call.run()));
    let list = lines(&todo)?;
    place.store().put(&key, list).await?;
    Ok(json!({
        "kind": kind,
        "labels": exports.iter().map(|export| &export.summary.label).collect::<Vec<_>>(),
        "files": files,
        "todo": todo.len(),
        "items": items,
        "bytes": bytes,
        "work": work(place, &key),
        "warnings": warnings,
    }))
}

/// The work list: one JSON object per line.
fn lines(items: &[WorkItem]) -> Result<Bytes, StepError> {
    let mut text = Vec::new();
    for item in items {
        serde_json::to_writer(&mut text, item)
            .map_err(|error| StepError::Event(format!("a work item cannot be written: {error}")))?;
        text.push(b'\n');
    }
    Ok(text.into())
}

/// Where the list is, as a reader of the workflow names it.
fn work(place: &Place, key: &str) -> Value {
    match place {
        Place::S3 { bucket, prefix, .. } if prefix.is_empty() => {
            json!({"bucket": bucket, "key": key})
        }
        Place::S3 { bucket, prefix, .. } => {
            json!({"bucket": bucket, "key": format!("{prefix}/{key}")})
        }
        Place::Local(folder) => json!({"path": folder.join(key)}),
    }
}

/// The name of an execution as part of a key. Executions may be named as people like.
fn file_name(run: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    run.chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(100)
        .collect()
}
