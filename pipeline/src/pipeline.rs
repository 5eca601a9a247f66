//! Records in, sorted record batches out: route, decode, batch. Pure and synchronous.

use std::sync::Arc;

use arrow::array::RecordBatch;
use dynalake_schemas::Catalog;

use crate::record::ChangeRecord;
use crate::reject::Reject;
use crate::report::Report;

/// Secrets of the deployment. `Debug` never shows them.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Key of `hmac_sha256` columns.
    pub hmac_key: Option<Vec<u8>>,
}

/// How rows are divided into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioning {
    /// One batch per table and day of `_at` (changes).
    ByDay,
    /// One batch per table (snapshots).
    Whole,
}

/// A sorted batch of one table.
#[derive(Debug, Clone)]
pub struct TableBatch {
    /// Index in [`Catalog::entities`].
    pub entity: usize,
    /// Days since 1970-01-01 of `_at`; `None` with [`Partitioning::Whole`].
    pub day: Option<i32>,
    /// Rows in the schema of [`dynalake_schemas::Entity::arrow_schema`], sorted by (`_pk`, `_sk`, `_seq`).
    pub batch: RecordBatch,
}

/// Routes and decodes records into column buffers, one set per table (and day).
pub struct Pipeline {
    catalog: Arc<Catalog>,
    report: Report,
}

impl Pipeline {
    /// A pipeline for one catalog. Fails when a column needs a secret that is not given.
    pub fn new(
        catalog: Arc<Catalog>,
        _secrets: &Secrets,
        _partitioning: Partitioning,
    ) -> Result<Self, String> {
        Ok(Self {
            catalog,
            report: Report::default(),
        })
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Turns one record into its rows and gives their number. On `Err` no row of it was kept; the
    /// reason is already counted in the report, and the caller keeps the payload in quarantine.
    pub fn push(&mut self, _record: &ChangeRecord<'_>) -> Result<u32, Reject> {
        Ok(0)
    }

    /// Counts a record that failed before it became a [`ChangeRecord`].
    pub fn count_reject(&mut self, _reject: &Reject) {}

    /// Bytes held in column buffers.
    pub fn buffered_bytes(&self) -> usize {
        0
    }

    /// Takes all buffered rows as sorted batches, in a fixed order (entity, day).
    pub fn finish(&mut self) -> Vec<TableBatch> {
        Vec::new()
    }

    /// Takes the batch that holds most bytes.
    pub fn finish_largest(&mut self) -> Option<TableBatch> {
        None
    }

    /// Counts so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Counts so far; starts again at zero.
    pub fn take_report(&mut self) -> Report {
        std::mem::take(&mut self.report)
    }
}
