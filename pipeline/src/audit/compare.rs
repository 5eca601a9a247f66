//! Two streams of a table's items, sorted by key, compared item by item.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use dynalake_schemas::{Catalog, Transform, row_columns};

use super::report::{Sample, TableAudit};
use crate::current::rows::{KeyHash, Row, Rows, key_hash};
use crate::current::{CurrentError, TableState};
use crate::json::members;
use crate::rebuild::rebuild_item;

/// What the lake says, compared with what the export says.
pub(super) struct Comparison<'a> {
    catalog: &'a Catalog,
    entity: usize,
    export: Rows,
    unsure: &'a HashSet<KeyHash>,
    samples: usize,
    audit: TableAudit,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        catalog: &'a Catalog,
        entity: usize,
        export: Rows,
        unsure: &'a HashSet<KeyHash>,
        samples: usize,
    ) -> Self {
        Self {
            catalog,
            entity,
            export,
            unsure,
            samples,
            audit: TableAudit::default(),
        }
    }

    /// Compares all rows, unless `stop` says otherwise.
    pub(super) fn run(
        mut self,
        state: TableState,
        stop: &dyn Fn() -> bool,
    ) -> Result<TableAudit, CurrentError> {
        state.read(&mut |batch| {
            if stop() {
                return Err(CurrentError::Stopped);
            }
            self.lake_rows(batch)
        })?;
        while let Some(row) = self.export.take()? {
            self.missing(&row);
        }
        Ok(self.audit)
    }

    fn lake_rows(&mut self, batch: RecordBatch) -> Result<(), CurrentError> {
        let batch = Arc::new(batch);
        for row in 0..batch.num_rows() {
            let ours = Row {
                batch: Arc::clone(&batch),
                row,
            };
            loop {
                match self.export.key().map(|key| key.cmp(&key_of(&ours))) {
                    Some(Ordering::Less) => {
                        if let Some(theirs) = self.export.take()? {
                            self.missing(&theirs);
                        }
                    }
                    Some(Ordering::Equal) => {
                        if let Some(theirs) = self.export.take()? {
                            self.both(&ours, &theirs)?;
                        }
                        break;
                    }
                    Some(Ordering::Greater) | None => {
                        self.extra(&ours);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn missing(&mut self, row: &Row) {
        if self.judge(row, "missing", Vec::new()) {
            self.audit.missing += 1;
        }
    }

    fn extra(&mut self, row: &Row) {
        if self.judge(row, "extra", Vec::new()) {
            self.audit.extra += 1;
        }
    }

    fn both(&mut self, ours: &Row, theirs: &Row) -> Result<(), CurrentError> {
        let names = self.differing(ours, theirs)?;
        if names.is_empty() {
            self.audit.equal += 1;
        } else if self.judge(ours, "different", names.iter().cloned().collect()) {
            self.audit.different += 1;
            for name in names {
                *self.audit.attributes.entry(name).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Whether a difference counts, or its key changed too near to the export's time. Keeps a sample.
    fn judge(&mut self, row: &Row, kind: &str, attributes: Vec<String>) -> bool {
        let (pk, sk) = key_of(row);
        let hash = key_hash(pk, sk);
        if self.unsure.contains(&hash) {
            self.audit.unsure += 1;
            return false;
        }
        if self.audit.samples.len() < self.samples {
            let mut key_hash = String::new();
            for byte in hash {
                // Writing to a string cannot fail.
                write!(key_hash, "{byte:02x}").ok();
            }
            self.audit.samples.push(Sample {
                kind: kind.to_owned(),
                key_hash,
                attributes,
            });
        }
        true
    }

    /// Names of the attributes in which two rows differ.
    fn differing(&self, ours: &Row, theirs: &Row) -> Result<BTreeSet<String>, CurrentError> {
        let item = |row: &Row| {
            rebuild_item(self.catalog, self.entity, &row.batch, row.row)
                .map_err(CurrentError::Merge)
        };
        let (a, b) = (item(ours)?, item(theirs)?);
        let mut names = BTreeSet::new();
        if a != b {
            let (a, b) = (attributes(&a)?, attributes(&b)?);
            names.extend(
                a.keys()
                    .chain(b.keys())
                    .filter(|n| a.get(*n) != b.get(*n))
                    .cloned(),
            );
        }
        // What is hidden cannot be rebuilt, but what stands for it can be compared.
        let columns = self
            .catalog
            .entities
            .get(self.entity)
            .map(|entity| &entity.columns);
        for column in columns.into_iter().flatten() {
            let shown = matches!(
                column.transform,
                Some(Transform::Mask | Transform::HmacSha256)
            );
            if shown && text(ours, &column.name) != text(theirs, &column.name) {
                names.insert(column.name.clone());
            }
        }
        Ok(names)
    }
}

fn key_of(row: &Row) -> (&str, Option<&str>) {
    (
        row.text(row_columns::PK).unwrap_or_default(),
        row.text(row_columns::SK),
    )
}

fn text<'r>(row: &'r Row, column: &str) -> Option<&'r str> {
    let column = row.batch.column_by_name(column)?.as_string_opt::<i32>()?;
    crate::current::merge::nullable(column, row.row)
}

fn attributes(item: &str) -> Result<BTreeMap<String, &[u8]>, CurrentError> {
    let members = members(item.as_bytes()).map_err(|e| CurrentError::Merge(e.to_string()))?;
    Ok(members
        .into_iter()
        .map(|(name, value)| (name.into_owned(), value))
        .collect())
}
