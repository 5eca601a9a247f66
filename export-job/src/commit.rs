//! Commits a converted export as a baseline.

use std::collections::HashMap;

use dynalake_pipeline::baseline::{
    self, BaselineKind, BaselineRecord, CommitOutcome, TableCounts, VERSION, objects_prefix,
};
use dynalake_pipeline::store::Store;
use serde::Deserialize;

use crate::error::{ExportError, RefusalKind};
use crate::lake::Lake;
use crate::state::{Complete, ObjectRecord, Plan, StateKind, complete_key, folder, plan_key};

/// Makes a converted export a baseline: readers take it from now on, if it is the newest.
///
/// Every object that the conversion recorded must be in the lake, whole. The same call again is a
/// no-op. `holder` says who commits (for the lock), `now_ms` when, in milliseconds since 1970-01-01
/// UTC.
///
/// # Errors
/// The export is not complete, objects are missing, somebody else holds the lock, or the store
/// failed. Readers see what they saw before, and the same call does what is left to do.
pub async fn commit_export(
    lake: &Store,
    export_id: &str,
    holder: &str,
    now_ms: i64,
) -> Result<(BaselineRecord, CommitOutcome), ExportError> {
    let state = Lake::new(lake.clone(), None);
    let (complete_key, plan_key) = (complete_key(export_id), plan_key(export_id));
    let unfinished = |key: &str| {
        ExportError::refused(
            RefusalKind::Unfinished,
            lake.address(key),
            format!("export `{export_id}` is not converted whole"),
            "convert it again to finish it",
        )
    };
    let complete: Complete = state
        .read(&complete_key)
        .await?
        .ok_or_else(|| unfinished(&complete_key))?;
    let plan: Plan = state
        .read(&plan_key)
        .await?
        .ok_or_else(|| unfinished(&plan_key))?;
    if complete.kind == StateKind::Incremental {
        return Err(ExportError::refused(
            RefusalKind::Incremental,
            lake.address(&complete_key),
            format!("export `{export_id}` is incremental, which is no baseline by itself"),
            "roll the baseline before it forward, and commit that",
        ));
    }
    let record = record(&complete, &plan, now_ms);
    verify(&state, lake, &record, complete.files).await?;
    let outcome = baseline::commit(lake, &record, holder).await?;
    Ok((record, outcome))
}

fn record(complete: &Complete, plan: &Plan, now_ms: i64) -> BaselineRecord {
    let counts = |table: &String| {
        complete
            .tables
            .get(table)
            .map_or_else(TableCounts::default, |outcome| TableCounts {
                rows: outcome.counts.rows,
                objects: outcome.objects,
                bytes: outcome.bytes,
            })
    };
    BaselineRecord {
        version: VERSION,
        label: complete.label.clone(),
        at_ms: complete.export_time,
        kind: match complete.kind {
            StateKind::Rolled => BaselineKind::Rolled,
            _ => BaselineKind::FullExport,
        },
        export_id: complete.export_id.clone(),
        table_arn: complete.table_arn.clone(),
        schema_fingerprint: Some(complete.catalog.clone()),
        tables: plan
            .tables
            .iter()
            .map(|table| (table.clone(), counts(table)))
            .collect(),
        committed_at_ms: now_ms,
    }
}

/// What a record of a data file, or of a rolled table, says of objects.
#[derive(Deserialize)]
struct Objects {
    objects: Vec<ObjectRecord>,
}

/// Looks for every object that the data files' records name. The commit itself counts only.
async fn verify(
    state: &Lake,
    lake: &Store,
    record: &BaselineRecord,
    data_files: u64,
) -> Result<(), ExportError> {
    let mut there = HashMap::new();
    for table in record.tables.keys() {
        for meta in lake.list(&objects_prefix(table, &record.label)).await? {
            there.insert(meta.key, meta.size);
        }
    }
    let missing = |key: &str, problem: &str| {
        ExportError::refused(
            RefusalKind::Unfinished,
            lake.address(key),
            problem,
            "convert the export again: what is missing is made anew",
        )
    };
    let (complete, plan) = (complete_key(&record.export_id), plan_key(&record.export_id));
    let folder = folder(&record.export_id);
    let mut recorded = 0;
    for meta in lake.list(&folder).await? {
        let name = meta.key.strip_prefix(&folder).unwrap_or_default();
        // Folders hold parts, which are told again in the record of their data file, and what a roll
        // decoded again, which is not what it gave.
        if meta.key == complete || meta.key == plan || name.contains('/') {
            continue;
        }
        let Some(file) = state.read::<Objects>(&meta.key).await? else {
            return Err(missing(
                &meta.key,
                "this record of a data file is not readable",
            ));
        };
        recorded += 1;
        let lost = file
            .objects
            .iter()
            .filter(|object| !object.table.is_empty())
            .find(|object| there.get(&object.key) != Some(&object.bytes));
        if let Some(object) = lost {
            return Err(missing(
                &object.key,
                "the object is not in the lake as it was written",
            ));
        }
    }
    if recorded != data_files {
        return Err(missing(&complete, "not every data file has a record"));
    }
    Ok(())
}
