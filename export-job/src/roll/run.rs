//! A whole roll.

use std::sync::Arc;

use dynalake_pipeline::baseline;
use dynalake_pipeline::pipeline::{Partitioning, Pipeline, Secrets};
use dynalake_pipeline::store::Store;
use dynalake_schemas::Catalog;

use super::chain::{Chain, Window, chain};
use super::options::{RollOptions, Watch};
use super::plan::{self, Inputs, RollPlan};
use super::redecode;
use super::report::RollReport;
use super::table::{Rolling, TableRecord, table_key};
use crate::error::{ExportError, RefusalKind};
use crate::lake::Lake;
use crate::report::TableOutcome;
use crate::state::{Complete, StateKind, complete_key, fingerprint};

/// The windows of converted incremental exports.
///
/// # Errors
/// One of them is not converted whole, or is a full export.
pub async fn windows_of(lake: &Store, export_ids: &[String]) -> Result<Vec<Window>, ExportError> {
    let state = Lake::new(lake.clone(), None);
    let mut windows = Vec::new();
    for id in export_ids {
        windows.push(window(&state, lake, id).await?.0);
    }
    Ok(windows)
}

async fn window(state: &Lake, lake: &Store, id: &str) -> Result<(Window, Complete), ExportError> {
    let key = complete_key(id);
    let complete: Complete = state.read(&key).await?.ok_or_else(|| {
        ExportError::refused(
            RefusalKind::Unfinished,
            lake.address(&key),
            format!("export `{id}` is not converted whole"),
            "convert it again to finish it",
        )
    })?;
    match Window::of_complete(&complete) {
        Some(window) => Ok((window, complete)),
        None => Err(ExportError::refused(
            RefusalKind::Full,
            lake.address(&key),
            format!("export `{id}` is a full export, which is a baseline of its own"),
            "give incremental exports only",
        )),
    }
}

/// Rolls the baseline before these converted incremental exports forward to the end of the last one.
///
/// What comes out waits to be committed by [`crate::commit_export`] with the report's `export_id`, once
/// [`RollReport::done`]. Until then the same call goes on where this one stopped: at the watch's word,
/// by an error or by a crash. Needs a Tokio runtime; merging runs on its blocking threads.
///
/// # Errors
/// A refusal of [`chain`]; an export that is not converted whole, or with other schemas; a base that
/// cannot be decoded under the present schemas; or the store or the disk failed. Readers see what they
/// saw before.
pub async fn roll(
    lake: &Store,
    catalog: &Arc<Catalog>,
    secrets: &Secrets,
    export_ids: &[String],
    options: &RollOptions,
    watch: Arc<dyn Watch>,
) -> Result<RollReport, ExportError> {
    Pipeline::new(Arc::clone(catalog), secrets, Partitioning::Whole).map_err(ExportError::Setup)?;
    let state = Lake::new(lake.clone(), None);
    let fingerprint = fingerprint(catalog, secrets);
    let mut windows = Vec::new();
    let mut made_with = Vec::new();
    for id in export_ids {
        let (window, complete) = window(&state, lake, id).await?;
        windows.push(window);
        made_with.push((complete.export_id, complete.catalog));
    }
    let baselines = baseline::list(lake).await?;
    let (base, windows) = match chain(&baselines, windows, options.replace, &options.command_end)? {
        Chain::Done(record) => {
            return Ok(RollReport {
                done: true,
                unchanged: true,
                export_id: record.export_id,
                label: record.label,
                at_ms: record.at_ms,
                ..RollReport::default()
            });
        }
        Chain::Roll(base, windows) => (base, windows),
    };
    for window in &windows {
        let other =
            |(id, catalog): &(String, String)| *id == window.export_id && *catalog != fingerprint;
        if made_with.iter().any(other) {
            return Err(ExportError::refused(
                RefusalKind::OtherPlan,
                lake.address(&complete_key(&window.export_id)),
                "this export was converted with other schemas or another secret",
                "convert it again with these",
            ));
        }
    }
    let plan = plan::agree(&state, lake, (catalog, secrets), (&base, &windows), options).await?;
    state.keep_schemas(&plan.plan, catalog).await?;
    let mut report = RollReport {
        export_id: plan.plan.export_id.clone(),
        label: plan.plan.label.clone(),
        at_ms: plan.at_ms,
        base: plan.base.clone(),
        windows: windows.into_iter().map(|window| window.export_id).collect(),
        decoded_again: plan.decode_again,
        ..RollReport::default()
    };
    let mut rolling = Rolling {
        state: &state,
        lake,
        catalog,
        plan: &plan,
        base: &plan.base_objects,
        memory_bytes: options.memory_bytes,
        spool: options.spool.as_deref(),
        watch: &watch,
    };
    if let Some(complete) = state
        .read::<Complete>(&complete_key(&report.export_id))
        .await?
    {
        // Of the same plan, and not committed yet.
        tables_of(&rolling, &mut report).await?;
        report.quarantined = complete.quarantined;
        report.done = true;
        return Ok(report);
    }
    let decoded: Inputs;
    if plan.decode_again && !all_done(&rolling).await? {
        let schemas = Arc::new(plan::base_schemas(lake, &base, &plan.base_objects).await?);
        let with = (&schemas, secrets);
        match redecode::decode_again(&rolling, with, &mut report).await? {
            Some(inputs) => decoded = inputs,
            None => return Ok(report),
        }
        rolling.base = &decoded;
    }
    for (index, entity) in catalog.entities.iter().enumerate() {
        let record = rolling.table(index).await?;
        if !record.done {
            return Ok(report);
        }
        report.tables.insert(entity.table.clone(), record.outcome());
    }
    if plan.decode_again {
        redecode::clean_up(&rolling, rolling.base).await?;
    }
    plan::check_base(lake, &base, &plan).await?;
    state.put_complete(&complete(&plan, &report)).await?;
    report.done = true;
    Ok(report)
}

async fn records(rolling: &Rolling<'_>) -> Result<Vec<TableRecord>, ExportError> {
    let mut records = Vec::new();
    for entity in &rolling.catalog.entities {
        let key = table_key(&rolling.plan.plan.export_id, &entity.table);
        records.extend(rolling.state.read::<TableRecord>(&key).await?);
    }
    Ok(records)
}

async fn all_done(rolling: &Rolling<'_>) -> Result<bool, ExportError> {
    let records = records(rolling).await?;
    Ok(records.len() == rolling.catalog.entities.len() && records.iter().all(|record| record.done))
}

async fn tables_of(rolling: &Rolling<'_>, report: &mut RollReport) -> Result<(), ExportError> {
    for record in records(rolling).await? {
        report.tables.insert(record.table.clone(), record.outcome());
    }
    Ok(())
}

fn complete(plan: &RollPlan, report: &RollReport) -> Complete {
    let outcome = |rolled: &super::report::RolledTable| {
        let mut outcome = TableOutcome {
            objects: rolled.objects,
            bytes: rolled.bytes,
            ..TableOutcome::default()
        };
        outcome.counts.rows = rolled.rows;
        outcome
    };
    Complete {
        format: plan.plan.format,
        kind: StateKind::Rolled,
        export_id: plan.plan.export_id.clone(),
        export_arn: plan.plan.export_arn.clone(),
        table_arn: plan.table_arn.clone(),
        from_time: None,
        export_time: plan.at_ms,
        label: plan.plan.label.clone(),
        catalog: plan.plan.catalog.clone(),
        items: report.tables.values().map(|table| table.rows).sum(),
        quarantined: report.quarantined,
        files: u64::try_from(report.tables.len()).unwrap_or(u64::MAX),
        tables: report
            .tables
            .iter()
            .map(|(table, rolled)| (table.clone(), outcome(rolled)))
            .collect(),
    }
}
