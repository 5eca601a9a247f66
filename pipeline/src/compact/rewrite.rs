//! Merges the objects of a unit into outputs on the local disk.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow::array::{Array, RecordBatch};
use dynalake_schemas::Entity;
use futures::{StreamExt, TryStreamExt};

use super::dedupe::Dedupe;
use super::error::CompactError;
use super::options::CompactOptions;
use super::plan::Unit;
use crate::current::CurrentError;
use crate::current::merge::merge;
use crate::current::runs::{Run, runs_of};
use crate::encode::ObjectWriter;
use crate::store::Store;

/// Objects fetched at once.
const FETCHES: usize = 16;
/// Rows of a row group at most.
const ROW_GROUP_ROWS: usize = 1 << 19;

/// What came out.
#[derive(Debug)]
pub(super) struct Rewritten {
    /// Parquet files, in order.
    pub(super) files: Vec<(PathBuf, u64)>,
    pub(super) read: u64,
    pub(super) rows: u64,
    pub(super) duplicates: u64,
}

/// Merges the inputs into files in `folder`, sorted, with one row per change.
pub(super) async fn rewrite(
    store: &Store,
    entity: &Entity,
    unit: &Unit,
    options: &CompactOptions,
    folder: &Path,
) -> Result<Rewritten, CompactError> {
    let fetches: Vec<_> = unit
        .inputs
        .iter()
        .map(|input| runs_of(store, &input.key, folder))
        .collect();
    let runs: Vec<Vec<Run>> = futures::stream::iter(fetches)
        .buffered(FETCHES)
        .try_collect()
        .await?;
    let runs: Vec<Run> = runs.into_iter().flatten().collect();
    for run in &runs {
        check_columns(entity, run)?;
    }
    let (entity, folder) = (entity.clone(), folder.to_owned());
    let (memory, target) = (options.memory_bytes, options.target_bytes);
    tokio::task::spawn_blocking(move || write(&entity, runs, memory, target, &folder))
        .await
        .map_err(|error| CompactError::Worker(error.to_string()))?
}

/// Refuses an object with columns or members that the schemas do not have: they would be lost.
fn check_columns(entity: &Entity, run: &Run) -> Result<(), CompactError> {
    match run.column_beyond(&entity.arrow_schema()) {
        None => Ok(()),
        Some(column) => Err(CompactError::UnknownColumn {
            key: run.key().to_owned(),
            column,
        }),
    }
}

fn write(
    entity: &Entity,
    runs: Vec<Run>,
    memory: usize,
    target: u64,
    folder: &Path,
) -> Result<Rewritten, CompactError> {
    let row_group =
        CompactOptions::ROW_GROUP_BYTES.min(usize::try_from(target).unwrap_or(usize::MAX));
    let merged = merge(entity, runs, memory, folder)?;
    let mut rows = Dedupe::new(merged);
    let mut outputs = Outputs {
        entity,
        folder,
        target,
        writer: None,
        files: Vec::new(),
        rows: 0,
    };
    let (mut pending, mut pending_rows, mut pending_bytes) = (Vec::new(), 0, 0);
    while let Some(batch) = rows.next_batch()? {
        pending_rows += batch.num_rows();
        pending_bytes += bytes_of(&batch)?;
        pending.push(batch);
        if pending_bytes >= row_group || pending_rows >= ROW_GROUP_ROWS {
            outputs.write(&pending)?;
            pending.clear();
            (pending_rows, pending_bytes) = (0, 0);
        }
    }
    outputs.write(&pending)?;
    outputs.close()?;
    Ok(Rewritten {
        files: outputs.files,
        read: rows.read,
        rows: outputs.rows,
        duplicates: rows.duplicates,
    })
}

/// Bytes of a batch's values, whatever the buffers' capacities: the cut must not depend on them.
fn bytes_of(batch: &RecordBatch) -> Result<usize, CompactError> {
    let mut bytes = 0;
    for column in batch.columns() {
        bytes += column
            .to_data()
            .get_slice_memory_size()
            .map_err(|error| CurrentError::Merge(error.to_string()))?;
    }
    Ok(bytes)
}

/// Output files, each closed when it has its size.
struct Outputs<'a> {
    entity: &'a Entity,
    folder: &'a Path,
    target: u64,
    writer: Option<(PathBuf, ObjectWriter<BufWriter<File>>)>,
    files: Vec<(PathBuf, u64)>,
    rows: u64,
}

impl Outputs<'_> {
    /// Writes one row group.
    fn write(&mut self, batches: &[RecordBatch]) -> Result<(), CompactError> {
        let Some(first) = batches.first() else {
            return Ok(());
        };
        let batch = arrow::compute::concat_batches(first.schema_ref(), batches)
            .map_err(|error| CurrentError::Merge(error.to_string()))?;
        let (path, mut writer) = match self.writer.take() {
            Some(open) => open,
            None => self.open()?,
        };
        writer.write(&batch)?;
        let written = u64::try_from(writer.bytes_written()).unwrap_or(u64::MAX);
        self.writer = Some((path, writer));
        if written >= self.target {
            self.close()?;
        }
        Ok(())
    }

    fn open(&self) -> Result<(PathBuf, ObjectWriter<BufWriter<File>>), CompactError> {
        let path = self
            .folder
            .join(format!("output-{:05}.parquet", self.files.len()));
        let file = File::create(&path).map_err(|source| CompactError::Spool {
            path: path.clone(),
            source,
        })?;
        let writer = ObjectWriter::new(self.entity, BufWriter::new(file))?;
        Ok((path, writer))
    }

    fn close(&mut self) -> Result<(), CompactError> {
        let Some((path, writer)) = self.writer.take() else {
            return Ok(());
        };
        let (file, stats) = writer.finish()?;
        let spool = |source| CompactError::Spool {
            path: path.clone(),
            source,
        };
        let file = file
            .into_inner()
            .map_err(|error| spool(error.into_error()))?;
        let size = file.metadata().map_err(spool)?.len();
        self.rows += stats.rows;
        self.files.push((path, size));
        Ok(())
    }
}
