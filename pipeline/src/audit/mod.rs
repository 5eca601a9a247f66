//! The proof in production that the lake equals the table.
//!
//! At a new baseline, what the lake would have said without it (the older baseline and the changes up
//! to its time) is compared with it, key by key and attribute by attribute. Keys that changed within
//! the margin of the baseline's time cannot be judged: their difference may be that of two clocks.

mod compare;
mod report;

use compare::Comparison;
use dynalake_schemas::Catalog;

pub use report::{AuditReport, Sample, TableAudit, Verdict, report_key};

use crate::baseline::{self, BaselineRecord};
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
    let mut audit = Audit::begin(store, catalog, label, at_ms, samples).await?;
    for table in 0..audit.tables() {
        audit.table(table, options, &|| false).await?;
    }
    Ok(audit.report)
}

/// An audit that is made table by table, for whoever may not take the time for all at once.
pub struct Audit<'a> {
    store: &'a Store,
    catalog: &'a Catalog,
    older: Option<BaselineRecord>,
    samples: usize,
    /// What was found so far.
    pub report: AuditReport,
}

impl<'a> Audit<'a> {
    /// Finds the baseline that the lake stood on before the export; compares nothing yet.
    ///
    /// # Errors
    /// The lake cannot be read.
    pub async fn begin(
        store: &'a Store,
        catalog: &'a Catalog,
        label: &str,
        at_ms: i64,
        samples: usize,
    ) -> Result<Self, CurrentError> {
        let mut older = baseline::list(store).await?;
        older.retain(|record| record.at_ms < at_ms);
        let older = older.pop();
        let mut report = AuditReport::new(&catalog.database, label, at_ms);
        report.older = older.as_ref().map(|record| record.label.clone());
        Ok(Self {
            store,
            catalog,
            older,
            samples,
            report,
        })
    }

    /// Number of tables; they are compared by index.
    pub fn tables(&self) -> usize {
        self.catalog.entities.len()
    }

    /// Compares a table and adds what was found to the report. `stop` is asked now and then.
    ///
    /// # Errors
    /// The lake cannot be read, the spool cannot be written, or [`CurrentError::Stopped`].
    pub async fn table(
        &mut self,
        index: usize,
        options: &MergeOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), CurrentError> {
        let Some(entity) = self.catalog.entities.get(index) else {
            return Ok(());
        };
        let (label, at_ms) = (&self.report.label, self.report.at_ms);
        let (metadata, schema) = (ObjectMetadata::from(entity), entity.arrow_schema());
        let state = TableState::open_from(
            self.store,
            metadata.clone(),
            Some(schema.clone()),
            self.older.clone(),
            Some(at_ms),
            options,
        );
        let Some(state) = state.await? else {
            return Ok(());
        };
        let runs = baseline_runs(self.store, &entity.table, label, options).await?;
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
        let comparison = Comparison::new(
            self.catalog,
            index,
            Rows::new(export)?,
            &unsure,
            self.samples,
        );
        let table = comparison.run(state, stop)?;
        self.report.tables.insert(entity.table.clone(), table);
        Ok(())
    }
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
