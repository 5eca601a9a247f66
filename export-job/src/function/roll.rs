//! `roll`: converted incremental exports roll the baseline before them forward.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Call;
use super::error::StepError;
use super::plan::{COMMAND_END, Export, Exports, exports, windows};
use crate::roll::{RollOptions, RollReport, Watch, roll};
use crate::steps::Steps;

/// Part of the memory that a row group may take, which is held about three times.
const ROW_GROUP_PART: usize = 4;

pub(super) async fn roll_step(call: &Call<'_>) -> Result<Value, StepError> {
    let Exports::Incremental(exports) = exports(call).await? else {
        return Err(StepError::Event(
            "a full export is a baseline of its own: there is nothing to roll".to_owned(),
        ));
    };
    let before = kept(call).await?;
    let report = rolled(call, exports, Arc::new(call.deadline)).await?;
    if !report.done && kept(call).await? == before {
        return Err(StepError::Deadline(format!(
            "the function's time does not do for one object of baseline {}: give the function more \
             memory, or a smaller {} before the next roll, or finish this one by `dynalake export \
             convert`",
            report.label,
            super::OBJECT_MB
        )));
    }
    Ok(json!({
        "done": report.done,
        "unchanged": report.unchanged,
        "export_id": report.export_id,
        "label": report.label,
        "base": report.base,
        "tables": report.tables.len(),
    }))
}

/// What rolls have kept of their work so far.
async fn kept(call: &Call<'_>) -> Result<Vec<(String, u64)>, StepError> {
    let listed = call.context.store.list("state/exports/rolled-").await?;
    let sizes = listed.into_iter().map(|meta| (meta.key, meta.size));
    Ok(sizes.collect())
}

/// Rolls as far as the watch allows.
pub(super) async fn rolled(
    call: &Call<'_>,
    exports: Vec<Export>,
    watch: Arc<dyn Watch>,
) -> Result<RollReport, StepError> {
    let context = call.context;
    let convert = context.options(call);
    let steps = Steps {
        lake: &context.store,
        catalog: &context.catalog,
        secrets: &context.secrets,
        options: &convert,
    };
    let all: Vec<String> = exports
        .iter()
        .map(|export| export.summary.export_id.clone())
        .collect();
    let windows = windows(call, exports).await?;
    for window in &windows {
        steps.complete(&window.source).await?;
    }
    let ids: Vec<String> = if windows.is_empty() {
        all
    } else {
        windows
            .into_iter()
            .map(|window| window.summary.export_id)
            .collect()
    };
    let memory_bytes = context.memory_mb << 20;
    let options = RollOptions {
        memory_bytes,
        row_group_bytes: RollOptions::default()
            .row_group_bytes
            .min(memory_bytes / ROW_GROUP_PART),
        object_bytes: u64::try_from(context.object_mb).unwrap_or(u64::MAX) << 20,
        spool: convert.spool.clone(),
        replace: convert.replace,
        holder: convert.holder.clone(),
        now_ms: convert.now_ms,
        command_end: COMMAND_END.to_owned(),
    };
    let (store, catalog, secrets) = (&context.store, &context.catalog, &context.secrets);
    Ok(roll(store, catalog, secrets, &ids, &options, watch).await?)
}
