//! The proof in production that the lake equals the table.
//!
//! At a new baseline, what the lake would have said without it (the older baseline and the changes up
//! to its time) is compared with it, key by key and attribute by attribute. Keys that changed within
//! the margin of the baseline's time cannot be judged: their difference may be that of two clocks.

mod compare;
mod report;

use dynalake_schemas::Catalog;

pub use report::{AuditReport, Sample, TableAudit, Verdict, report_key};

use crate::baseline;
use crate::current::merge::merge_as;
use crate::current::read::baseline_runs;
use crate::current::rows::Rows;
use crate::current::rule::MARGIN_MS;
use crate::current::{CurrentError, MergeOptions, TableState};
use crate::encode::ObjectMetadata;
use crate::store::Store;

/// Compares every table of the lake, as of the export's time and without it, with the export.
///
/// `label` is the partition `export=…` of a converted export, committed or not; `at_ms` its time.
///
/// # Errors
/// The lake cannot be read, or the spool cannot be written.
pub async fn audit(
    store: &Store,
    catalog: &Catalog,
    label: &str,
    at_ms: i64,
    samples: usize,
    options: &MergeOptions,
) -> Result<AuditReport, CurrentError> {
    let mut older = baseline::list(store).await?;
    older.retain(|record| record.at_ms < at_ms);
    let older = older.pop();
    let mut report = AuditReport::new(&catalog.database, label, at_ms);
    report.older = older.as_ref().map(|record| record.label.clone());
    for (index, entity) in catalog.entities.iter().enumerate() {
        let (metadata, schema) = (ObjectMetadata::from(entity), entity.arrow_schema());
        let state = TableState::open_from(
            store,
            metadata.clone(),
            Some(schema.clone()),
            older.clone(),
            Some(at_ms),
            options,
        );
        let Some(state) = state.await? else { continue };
        let runs = baseline_runs(store, &entity.table, label, options).await?;
        let spool = options.spool.join("export");
        std::fs::create_dir_all(&spool).map_err(|source| CurrentError::Spool {
            path: spool.clone(),
            source,
        })?;
        let export = merge_as(&schema, &metadata, runs, options.memory_bytes / 2, &spool)?;
        let unsure = state.keys_changed(
            at_ms.saturating_sub(MARGIN_MS),
            at_ms.saturating_add(MARGIN_MS),
        )?;
        let table = compare::compare(catalog, index, state, Rows::new(export)?, &unsure, samples)?;
        report.tables.insert(entity.table.clone(), table);
    }
    Ok(report)
}

/// Keeps a report in the lake, at [`report_key`].
///
/// # Errors
/// The store failed.
pub async fn store_report(store: &Store, report: &AuditReport) -> Result<(), CurrentError> {
    let body = serde_json::to_vec_pretty(report)
        .map_err(|error| CurrentError::Merge(error.to_string()))?;
    store.put(&report_key(&report.label), body.into()).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
