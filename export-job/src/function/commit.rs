//! `commit`: counts against the manifests, the baseline, the views, and the audit as far as time allows.

use std::sync::Arc;

use dynalake_pipeline::baseline::CommitOutcome;
use serde_json::{Value, json};

use super::audit::audited;
use super::error::StepError;
use super::plan::{Exports, exports};
use super::roll::rolled;
use super::{Call, Log};
use crate::commit_export;
use crate::error::{ExportError, RefusalKind};
use crate::glue;
use crate::roll::Watch;
use crate::steps::Steps;

pub(super) async fn commit(call: &Call<'_>, log: &mut Log) -> Result<Value, StepError> {
    let context = call.context;
    let (export_id, unchanged) = converted(call).await?;
    let (label, rows, outcome) = if let Some(label) = unchanged {
        (label, None, "unchanged")
    } else {
        let holder = call.holder();
        let (record, outcome) =
            commit_export(&context.store, &export_id, &holder, call.now_ms).await?;
        let rows: u64 = record.tables.values().map(|counts| counts.rows).sum();
        let outcome = match outcome {
            CommitOutcome::Committed => "committed",
            CommitOutcome::Replaced => "replaced",
            CommitOutcome::Unchanged => "unchanged",
        };
        (record.label, Some(rows), outcome)
    };
    // Readers first: the audit may take its time.
    let views = match context.lake.s3_settings() {
        Some(_) => {
            let client = context.glue()?;
            Some(glue::publish(&client, &context.store, &context.catalog).await?)
        }
        None => None,
    };
    let audit = audited(call, &label, log).await?;
    Ok(json!({
        "label": label,
        "export_id": export_id,
        "outcome": outcome,
        "rows": rows,
        "views": views,
        "audit": audit.answer,
        "audit_done": audit.done,
    }))
}

/// Makes sure that everything is converted. Gives the id to commit, and the label where a baseline of that
/// time is there already.
async fn converted(call: &Call<'_>) -> Result<(String, Option<String>), StepError> {
    match exports(call).await? {
        Exports::Full(export) => {
            let options = call.context.options(call);
            let steps = Steps {
                lake: &call.context.store,
                catalog: &call.context.catalog,
                secrets: &call.context.secrets,
                options: &options,
            };
            let report = steps.complete(&export.source).await?;
            Ok((report.export_id, None))
        }
        Exports::Incremental(exports) => {
            let report = rolled(call, exports, Arc::new(Stopped)).await?;
            if !report.done {
                return Err(StepError::Export(ExportError::refused(
                    RefusalKind::Unfinished,
                    report.export_id,
                    "the windows are not rolled into a baseline yet",
                    "call the step `roll` until it is done, then commit again",
                )));
            }
            let unchanged = report.unchanged.then_some(report.label);
            Ok((report.export_id, unchanged))
        }
    }
}

/// Merges nothing: what is rolled was rolled before.
struct Stopped;

impl Watch for Stopped {
    fn stop(&self) -> bool {
        true
    }
}
