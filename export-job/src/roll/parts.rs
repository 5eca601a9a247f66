//! Merged rows into objects on the local disk, one after the other.
//!
//! Where row groups and objects end is a function of the rows since the object's beginning, whatever
//! batches they come in: a roll that goes on with the next object cuts as one that never stopped.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, RecordBatch, StringArray, TimestampMillisecondArray,
};
use dynalake_pipeline::current::CurrentError;
use dynalake_pipeline::encode::{ObjectMetadata, ObjectWriter};
use dynalake_pipeline::record::Operation;
use dynalake_schemas::{Entity, row_columns};

use crate::error::ExportError;

/// Rows whose size is measured together.
const BLOCK_ROWS: usize = 1024;
/// Rows of a row group at most.
const ROW_GROUP_ROWS: usize = 1 << 19;

/// A finished object on the local disk.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// Objects of one table under construction.
pub(super) struct Parts<'a> {
    entity: &'a Entity,
    folder: &'a Path,
    at_ms: i64,
    row_group_bytes: usize,
    object_bytes: u64,
    /// Number of the next file; names only.
    next: usize,
    /// Rows of less than a block.
    loose: Vec<RecordBatch>,
    loose_rows: usize,
    /// Blocks of less than a row group.
    blocks: Vec<RecordBatch>,
    block_bytes: usize,
    open: Option<(PathBuf, ObjectWriter<BufWriter<File>>)>,
}

impl<'a> Parts<'a> {
    /// Objects in a folder, of rows that are a baseline's of this time.
    pub(super) fn new(
        entity: &'a Entity,
        folder: &'a Path,
        at_ms: i64,
        row_group_bytes: usize,
        object_bytes: u64,
    ) -> Self {
        Self {
            entity,
            folder,
            at_ms,
            row_group_bytes,
            object_bytes,
            next: 0,
            loose: Vec::new(),
            loose_rows: 0,
            blocks: Vec::new(),
            block_bytes: 0,
            open: None,
        }
    }

    /// Adds rows; gives the objects that are finished with them.
    pub(super) fn push(&mut self, mut batch: RecordBatch) -> Result<Vec<Part>, ExportError> {
        let mut finished = Vec::new();
        while batch.num_rows() > 0 {
            let rows = batch.num_rows().min(BLOCK_ROWS - self.loose_rows);
            self.loose.push(batch.slice(0, rows));
            self.loose_rows += rows;
            batch = batch.slice(rows, batch.num_rows() - rows);
            if self.loose_rows == BLOCK_ROWS {
                self.close_block()?;
                let rows = self.blocks.len() * BLOCK_ROWS;
                if self.block_bytes >= self.row_group_bytes || rows >= ROW_GROUP_ROWS {
                    finished.extend(self.write_row_group()?);
                }
            }
        }
        Ok(finished)
    }

    /// The last object, if any rows are left for one.
    pub(super) fn finish(&mut self) -> Result<Option<Part>, ExportError> {
        self.close_block()?;
        match self.write_row_group()? {
            Some(part) => Ok(Some(part)),
            None => self.close(),
        }
    }

    fn close_block(&mut self) -> Result<(), ExportError> {
        if self.loose.is_empty() {
            return Ok(());
        }
        let block = concat(&self.loose)?;
        self.block_bytes += block
            .columns()
            .iter()
            .map(|column| content_bytes(&column.to_data()))
            .sum::<usize>();
        self.blocks.push(block);
        self.loose.clear();
        self.loose_rows = 0;
        Ok(())
    }

    fn write_row_group(&mut self) -> Result<Option<Part>, ExportError> {
        if self.blocks.is_empty() {
            return Ok(None);
        }
        let batch = as_baseline(&concat(&self.blocks)?, self.at_ms)?;
        self.blocks.clear();
        self.block_bytes = 0;
        let (path, mut writer) = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        writer.write(&batch).map_err(|error| self.encode(&error))?;
        let full = u64::try_from(writer.bytes_written()).unwrap_or(u64::MAX) >= self.object_bytes;
        self.open = Some((path, writer));
        if full { self.close() } else { Ok(None) }
    }

    fn begin(&mut self) -> Result<(PathBuf, ObjectWriter<BufWriter<File>>), ExportError> {
        let path = self.folder.join(format!("part-{:05}.parquet", self.next));
        self.next += 1;
        let file = File::create(&path).map_err(|source| ExportError::Spool {
            path: path.clone(),
            source,
        })?;
        let metadata = ObjectMetadata::from(self.entity);
        let schema = self.entity.arrow_schema();
        let writer = ObjectWriter::with_schema(schema, &metadata, BufWriter::new(file))
            .map_err(|error| self.encode(&error))?;
        Ok((path, writer))
    }

    fn close(&mut self) -> Result<Option<Part>, ExportError> {
        let Some((path, writer)) = self.open.take() else {
            return Ok(None);
        };
        let (file, stats) = writer.finish().map_err(|error| self.encode(&error))?;
        let spool = |source| ExportError::Spool {
            path: path.clone(),
            source,
        };
        let file = file
            .into_inner()
            .map_err(|error| spool(error.into_error()))?;
        let bytes = file.metadata().map_err(spool)?.len();
        Ok(Some(Part {
            path,
            rows: stats.rows,
            bytes,
        }))
    }

    fn encode(&self, error: &dyn std::error::Error) -> ExportError {
        ExportError::Encode {
            table: self.entity.table.clone(),
            file: "the rolled baseline".to_owned(),
            message: error.to_string(),
        }
    }
}

/// The rows as those of a baseline: snapshots of its time, without what they say of a change. Which
/// road each of them took (`_source`) stays.
fn as_baseline(batch: &RecordBatch, at_ms: i64) -> Result<RecordBatch, CurrentError> {
    let rows = batch.num_rows();
    let nulls = || -> ArrayRef { Arc::new(StringArray::new_null(rows)) };
    let mut columns = batch.columns().to_vec();
    let mut set = |index: usize, values: ArrayRef| {
        if let Some(column) = columns.get_mut(index) {
            *column = values;
        }
    };
    let operation = std::iter::repeat_n(Some(Operation::Snapshot.as_str()), rows);
    set(
        row_columns::OP,
        Arc::new(operation.collect::<StringArray>()),
    );
    let at = TimestampMillisecondArray::from(vec![at_ms; rows]).with_timezone("UTC");
    set(row_columns::AT, Arc::new(at));
    for index in [
        row_columns::REASON,
        row_columns::STREAM,
        row_columns::SEQ,
        row_columns::EVENT_ID,
        row_columns::OLD,
    ] {
        set(index, nulls());
    }
    RecordBatch::try_new(batch.schema(), columns)
        .map_err(|error| CurrentError::Merge(error.to_string()))
}

/// Bytes of the values alone: whether a column has a bitmap of its NULLs depends on what it was
/// copied from.
fn content_bytes(data: &ArrayData) -> usize {
    fn bitmaps(data: &ArrayData) -> usize {
        let own = data.nulls().map_or(0, |nulls| nulls.len().div_ceil(8));
        own + data.child_data().iter().map(bitmaps).sum::<usize>()
    }
    data.get_slice_memory_size()
        .unwrap_or(0)
        .saturating_sub(bitmaps(data))
}

fn concat(batches: &[RecordBatch]) -> Result<RecordBatch, CurrentError> {
    let Some(first) = batches.first() else {
        return Err(CurrentError::Merge("no rows to write".to_owned()));
    };
    arrow::compute::concat_batches(first.schema_ref(), batches)
        .map_err(|error| CurrentError::Merge(error.to_string()))
}
