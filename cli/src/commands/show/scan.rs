//! Reads rows of objects: conditions applied, columns projected, columns seen remembered.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use dynalake_pipeline::store::Store;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use super::condition::{self, Condition};
use crate::exit::{Failure, Outcome};
use crate::object::{self, Footer, Selection};

/// What to read of every object.
pub(super) struct Scanner<'a> {
    store: &'a Store,
    conditions: &'a [Condition],
    /// Columns to read; empty: all.
    columns: Vec<String>,
    /// Columns of the objects seen so far, in order of first appearance.
    seen: Vec<String>,
}

impl<'a> Scanner<'a> {
    /// `columns` to print (empty: all), and `extra` ones that are needed besides.
    pub(super) fn new(
        store: &'a Store,
        conditions: &'a [Condition],
        columns: &[String],
        extra: &[&str],
    ) -> Self {
        let mut columns = columns.to_vec();
        if !columns.is_empty() {
            columns.extend(extra.iter().map(|name| (*name).to_owned()));
        }
        Self {
            store,
            conditions,
            columns,
            seen: Vec::new(),
        }
    }

    /// Columns of the objects seen so far.
    pub(super) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Remembers the columns of an object.
    pub(super) fn see(&mut self, footer: &Footer) -> Outcome<ArrowReaderMetadata> {
        let metadata = ArrowReaderMetadata::try_new(
            Arc::clone(&footer.metadata),
            ArrowReaderOptions::default(),
        )
        .map_err(|error| {
            Failure::findings(format!(
                "cannot understand the schema of `{}`: {error}",
                footer.key
            ))
        })?;
        for field in metadata.schema().fields() {
            if !self.seen.contains(field.name()) {
                self.seen.push(field.name().clone());
            }
        }
        Ok(metadata)
    }

    /// Reads the matching rows of an object, batch by batch, until `each` breaks.
    pub(super) async fn scan(
        &mut self,
        footer: &Footer,
        each: impl FnMut(RecordBatch) -> Outcome<ControlFlow<()>>,
    ) -> Outcome<ControlFlow<()>> {
        let metadata = self.see(footer)?;
        let Some(bound) = condition::bind(self.conditions, &metadata)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let columns = metadata
            .schema()
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| self.columns.is_empty() || self.columns.contains(field.name()))
            .map(|(index, _)| index)
            .collect();
        let selection = Selection {
            columns,
            row_groups: bound.row_groups,
            filters: bound.filters,
        };
        object::read(self.store, footer, selection, each).await
    }

    /// Reads all matching rows of an object, batch by batch.
    pub(super) async fn scan_all(
        &mut self,
        footer: &Footer,
        mut each: impl FnMut(RecordBatch) -> Outcome<()>,
    ) -> Outcome<()> {
        let all = self
            .scan(footer, |batch| each(batch).map(ControlFlow::Continue))
            .await?;
        match all {
            ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(()),
        }
    }
}
