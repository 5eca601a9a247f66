//! Many sorted runs as one, in bounded memory.
//!
//! At most [`fan_in`] runs are open at a time; more are first merged in groups into spilled runs.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::SchemaRef;
use dynalake_schemas::{Entity, row_columns};

use super::adapt::adapt;
use super::error::CurrentError;
use super::runs::{Run, RunReader, spilled_run};
use crate::encode::{ObjectMetadata, ObjectWriter};

/// Rows that an open run holds decoded.
const CURSOR_ROWS: usize = 1024;
/// Rows of a merged batch.
const OUTPUT_ROWS: usize = 4096;
/// Rows of a spilled row group.
const SPILLED_ROWS: usize = 16 * OUTPUT_ROWS;
/// Memory that an open run is counted with: its decoded rows and the page it reads from, per column.
const CURSOR_BYTES: usize = 4 << 20;
/// Open files are few on many systems (1,024 in Lambda).
const MAX_FAN_IN: usize = 200;

/// Runs that may be open at a time within so much memory; at least 4.
pub fn fan_in(memory_bytes: usize) -> usize {
    (memory_bytes / CURSOR_BYTES).clamp(4, MAX_FAN_IN)
}

/// Merges runs into batches sorted by (`_pk`, `_sk`, `_seq`), with the table's schema. Rows that are
/// equal in these keep the order of the runs.
///
/// `spool` is a folder for spilled runs.
///
/// # Errors
/// A run cannot be read, or the spool cannot be written.
pub fn merge(
    entity: &Entity,
    runs: Vec<Run>,
    memory_bytes: usize,
    spool: &Path,
) -> Result<Merge, CurrentError> {
    merge_as(
        &entity.arrow_schema(),
        &ObjectMetadata::from(entity),
        runs,
        memory_bytes,
        spool,
    )
}

/// [`merge`] into batches of any schema that the runs' rows can be read as.
///
/// # Errors
/// As [`merge`].
pub fn merge_as(
    schema: &SchemaRef,
    metadata: &ObjectMetadata,
    mut runs: Vec<Run>,
    memory_bytes: usize,
    spool: &Path,
) -> Result<Merge, CurrentError> {
    let most = fan_in(memory_bytes);
    let mut pass = 0_u32;
    while runs.len() > most {
        let mut merged = Vec::with_capacity(runs.len() / most + 1);
        for (number, group) in runs.chunks(most).enumerate() {
            let path = spool.join(format!("{}-{pass}-{number}.parquet", metadata.table));
            let merge = Merge::open(Arc::clone(schema), group)?;
            merged.push(spill(schema, metadata, merge, path)?);
        }
        runs = merged;
        pass += 1;
    }
    Merge::open(Arc::clone(schema), &runs)
}

fn spill(
    schema: &SchemaRef,
    metadata: &ObjectMetadata,
    merge: Merge,
    path: PathBuf,
) -> Result<Run, CurrentError> {
    let file = std::fs::File::create(&path).map_err(|source| CurrentError::Spool {
        path: path.clone(),
        source,
    })?;
    let file = std::io::BufWriter::new(file);
    let mut writer = ObjectWriter::with_schema(Arc::clone(schema), metadata, file)?;
    let mut pending: Vec<RecordBatch> = Vec::new();
    let mut rows = 0;
    for batch in merge {
        let batch = batch?;
        rows += batch.num_rows();
        pending.push(batch);
        // Row groups of some size: each has its own pages.
        if rows >= SPILLED_ROWS {
            writer.write(&concat(&pending)?)?;
            pending.clear();
            rows = 0;
        }
    }
    if !pending.is_empty() {
        writer.write(&concat(&pending)?)?;
    }
    let (mut file, _) = writer.finish()?;
    std::io::Write::flush(&mut file).map_err(|source| CurrentError::Spool {
        path: path.clone(),
        source,
    })?;
    spilled_run(path)
}

/// One batch of several.
pub(super) fn concat(batches: &[RecordBatch]) -> Result<RecordBatch, CurrentError> {
    let Some(first) = batches.first() else {
        return Err(CurrentError::Merge("nothing to write".to_owned()));
    };
    arrow::compute::concat_batches(&first.schema(), batches)
        .map_err(|error| CurrentError::Merge(error.to_string()))
}

/// The key columns of a batch.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    pk: StringArray,
    sk: StringArray,
    seq: StringArray,
}

impl Keys {
    pub(super) fn of(batch: &RecordBatch) -> Result<Self, CurrentError> {
        let text = |index: usize| {
            let column = batch
                .columns()
                .get(index)
                .and_then(|c| c.as_string_opt::<i32>());
            column
                .cloned()
                .ok_or_else(|| CurrentError::Merge("a key column is not text".to_owned()))
        };
        Ok(Self {
            pk: text(row_columns::PK)?,
            sk: text(row_columns::SK)?,
            seq: text(row_columns::SEQ)?,
        })
    }

    /// Partition key and sort key of a row.
    pub(super) fn key(&self, row: usize) -> (&str, Option<&str>) {
        (self.pk.value(row), nullable(&self.sk, row))
    }

    fn order(&self, row: usize) -> (&str, Option<&str>, Option<&str>) {
        (
            self.pk.value(row),
            nullable(&self.sk, row),
            nullable(&self.seq, row),
        )
    }
}

pub(crate) fn nullable(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

/// Where a run is being read.
struct Cursor {
    reader: RunReader,
    object: String,
    schema: SchemaRef,
    batch: RecordBatch,
    keys: Keys,
    row: usize,
    /// Number of the run: ties keep the order of the runs.
    number: usize,
    /// Number of the batch among the merge's batches.
    slot: usize,
}

impl Cursor {
    /// The next batch that is not empty; `None` at the end.
    fn load(
        reader: &mut RunReader,
        object: &str,
        schema: &SchemaRef,
    ) -> Result<Option<(RecordBatch, Keys)>, CurrentError> {
        for batch in reader.by_ref() {
            let batch = batch?;
            if batch.num_rows() > 0 {
                let batch = adapt(&batch, schema).map_err(|misfit| CurrentError::Column {
                    key: object.to_owned(),
                    column: misfit.column,
                    found: misfit.found,
                    expected: misfit.expected,
                })?;
                let keys = Keys::of(&batch)?;
                return Ok(Some((batch, keys)));
            }
        }
        Ok(None)
    }
}

impl PartialEq for Cursor {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Cursor {}

impl PartialOrd for Cursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cursor {
    /// Reversed: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.keys.order(self.row).cmp(&other.keys.order(other.row));
        order.then(self.number.cmp(&other.number)).reverse()
    }
}

/// Merged batches, one after the other.
pub struct Merge {
    schema: SchemaRef,
    cursors: BinaryHeap<Cursor>,
    /// Batches that rows of the next output come from.
    batches: Vec<RecordBatch>,
    rows: Vec<(usize, usize)>,
    // Files live as long as they are read.
    _runs: Vec<Run>,
}

impl Merge {
    fn open(schema: SchemaRef, runs: &[Run]) -> Result<Self, CurrentError> {
        let mut merge = Self {
            schema,
            cursors: BinaryHeap::with_capacity(runs.len()),
            batches: Vec::new(),
            rows: Vec::new(),
            _runs: runs.to_vec(),
        };
        for (number, run) in runs.iter().enumerate() {
            let mut reader = run.open(CURSOR_ROWS)?;
            let schema = Arc::clone(&merge.schema);
            if let Some((batch, keys)) = Cursor::load(&mut reader, run.key(), &schema)? {
                let slot = merge.batches.len();
                merge.batches.push(batch.clone());
                let object = run.key().to_owned();
                merge.cursors.push(Cursor {
                    reader,
                    object,
                    schema,
                    batch,
                    keys,
                    row: 0,
                    number,
                    slot,
                });
            }
        }
        Ok(merge)
    }

    fn step(&mut self) -> Result<bool, CurrentError> {
        let Some(mut cursor) = self.cursors.pop() else {
            return Ok(false);
        };
        self.rows.push((cursor.slot, cursor.row));
        cursor.row += 1;
        if cursor.row == cursor.batch.num_rows() {
            let Cursor {
                reader,
                object,
                schema,
                ..
            } = &mut cursor;
            let Some((batch, keys)) = Cursor::load(reader, object, schema)? else {
                return Ok(true);
            };
            cursor.slot = self.batches.len();
            self.batches.push(batch.clone());
            (cursor.batch, cursor.keys, cursor.row) = (batch, keys, 0);
        }
        self.cursors.push(cursor);
        Ok(true)
    }

    fn output(&mut self) -> Result<Option<RecordBatch>, CurrentError> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        let output = interleave_record_batch(&batches, &self.rows)
            .map_err(|error| CurrentError::Merge(error.to_string()))?;
        self.rows.clear();
        // Keep only what is still being read.
        let mut kept = Vec::with_capacity(self.cursors.len());
        let mut cursors = std::mem::take(&mut self.cursors).into_vec();
        for cursor in &mut cursors {
            cursor.slot = kept.len();
            kept.push(cursor.batch.clone());
        }
        self.cursors = cursors.into();
        self.batches = kept;
        Ok(Some(output))
    }
}

impl Iterator for Merge {
    type Item = Result<RecordBatch, CurrentError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.rows.len() < OUTPUT_ROWS {
            match self.step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.cursors.clear();
                    self.rows.clear();
                    return Some(Err(error));
                }
            }
        }
        self.output().transpose()
    }
}
