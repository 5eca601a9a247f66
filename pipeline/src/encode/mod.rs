//! Record batches to Parquet objects.
//!
//! In: record batches in an entity's Arrow schema, each sorted by (`_pk`, `_sk`, `_seq`), NULL
//! first. Out: one Parquet object; every batch is one row group.
//!
//! The same batches give the same bytes: nothing of the machine, the time or the library's version
//! goes into the file. The physical choices and their reasons are in [`properties`].

pub mod properties;

use std::cmp::Ordering;
use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use dynalake_schemas::Entity;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::errors::ParquetError;

use self::properties::SORTING_COLUMNS;

/// What the footer says about the object, besides its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// Entity name (`dynalake.entity`).
    pub entity: String,
    /// Lake table (`dynalake.table`).
    pub table: String,
    /// Schema version of the entity (`dynalake.schema_version`).
    pub schema_version: i32,
}

impl From<&Entity> for ObjectMetadata {
    fn from(entity: &Entity) -> Self {
        Self {
            entity: entity.name.clone(),
            table: entity.table.clone(),
            schema_version: entity.version,
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectStats {
    /// Rows.
    pub rows: u64,
    /// Row groups: the number of batches that were not empty.
    pub row_groups: u64,
}

/// An object could not be written. Says nothing of the rows' values.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The batch has another schema than the object.
    #[error(
        "a batch of table `{table}` has another schema than its object; this is a defect of \
         dynalake, please report it"
    )]
    Schema {
        /// Lake table.
        table: String,
    },
    /// The rows are not in the order that the footer declares.
    #[error(
        "row {row} of a batch of table `{table}` is not in the order of (_pk, _sk, _seq); this is \
         a defect of dynalake, please report it"
    )]
    NotSorted {
        /// Lake table.
        table: String,
        /// Index of the first row that is smaller than the one before it.
        row: usize,
    },
    /// The Parquet writer failed, or what it writes to.
    #[error("an object of table `{table}` cannot be written as Parquet")]
    Parquet {
        /// Lake table.
        table: String,
        /// Why.
        #[source]
        source: ParquetError,
    },
}

/// Writes one Parquet object, batch by batch.
pub struct ObjectWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    table: String,
    stats: ObjectStats,
}

impl<W: Write + Send> ObjectWriter<W> {
    /// Starts an object of this entity's table.
    ///
    /// # Errors
    /// A failing `write`.
    pub fn new(entity: &Entity, write: W) -> Result<Self, EncodeError> {
        Self::with_schema(entity.arrow_schema(), &ObjectMetadata::from(entity), write)
    }

    /// Starts an object with this schema and footer.
    ///
    /// # Errors
    /// A schema that Parquet cannot hold (a struct without fields), or a failing `write`.
    pub fn with_schema(
        schema: SchemaRef,
        metadata: &ObjectMetadata,
        write: W,
    ) -> Result<Self, EncodeError> {
        let table = metadata.table.clone();
        let failed = |source| EncodeError::Parquet {
            table: table.clone(),
            source,
        };
        let properties = properties::writer_properties(&schema, metadata).map_err(failed)?;
        // The serialized Arrow schema would bind readers to one library and repeat the field ids.
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true)
            .with_schema_root(properties::SCHEMA_ROOT.to_owned());
        let writer = ArrowWriter::try_new_with_options(write, Arc::clone(&schema), options)
            .map_err(failed)?;
        Ok(Self {
            writer,
            schema,
            table,
            stats: ObjectStats::default(),
        })
    }

    /// Adds one row group. A batch without rows adds none.
    ///
    /// # Errors
    /// The batch has another schema or is not sorted (a defect), or `write` failed.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        if batch.schema_ref() != &self.schema {
            return Err(EncodeError::Schema {
                table: self.table.clone(),
            });
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if let Some(row) = first_unsorted_row(batch) {
            return Err(EncodeError::NotSorted {
                table: self.table.clone(),
                row,
            });
        }
        self.writer
            .write(batch)
            .and_then(|()| self.writer.flush())
            .map_err(|source| EncodeError::Parquet {
                table: self.table.clone(),
                source,
            })?;
        self.stats.rows += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
        self.stats.row_groups += 1;
        Ok(())
    }

    /// Bytes handed to `write` so far.
    pub fn bytes_written(&self) -> usize {
        self.writer.bytes_written()
    }

    /// Writes the footer and gives back what was written to.
    pub fn finish(self) -> Result<(W, ObjectStats), EncodeError> {
        let Self {
            writer,
            table,
            stats,
            ..
        } = self;
        let write = writer
            .into_inner()
            .map_err(|source| EncodeError::Parquet { table, source })?;
        Ok((write, stats))
    }
}

/// One batch of this entity's table as the bytes of one object.
pub fn encode_batch(entity: &Entity, batch: &RecordBatch) -> Result<Vec<u8>, EncodeError> {
    let mut writer = ObjectWriter::new(entity, Vec::new())?;
    writer.write(batch)?;
    Ok(writer.finish()?.0)
}

/// The first row that is smaller than the one before it in [`SORTING_COLUMNS`], NULL first.
///
/// Readers may trust the footer's sorting columns and skip rows, so a false claim loses rows.
fn first_unsorted_row(batch: &RecordBatch) -> Option<usize> {
    let columns: Vec<&StringArray> = SORTING_COLUMNS
        .iter()
        .filter_map(|name| batch.column_by_name(name)?.as_string_opt::<i32>())
        .collect();
    (1..batch.num_rows()).find(|&row| {
        columns
            .iter()
            .map(|column| compare(column, row - 1, row))
            .find(|ordering| ordering.is_ne())
            .is_some_and(Ordering::is_gt)
    })
}

/// NULL first, then bytewise.
fn compare(column: &StringArray, left: usize, right: usize) -> Ordering {
    match (column.is_null(left), column.is_null(right)) {
        (false, false) => column.value(left).cmp(column.value(right)),
        (left, right) => right.cmp(&left),
    }
}

#[cfg(test)]
mod tests;
