//! Rows of a merged stream, one at a time.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, TimestampMillisecondType};
use dynalake_schemas::row_columns;
use sha2::{Digest, Sha256};

use super::error::CurrentError;
use super::merge::{Keys, Merge, nullable};

/// A key, hashed: the first half of a SHA-256.
pub(crate) type KeyHash = [u8; 16];

/// The hash of a key.
pub(crate) fn key_hash(pk: &str, sk: Option<&str>) -> KeyHash {
    let mut hash = Sha256::new();
    hash.update(pk.as_bytes());
    if let Some(sk) = sk {
        // No byte of UTF-8 text.
        hash.update([0xff]);
        hash.update(sk.as_bytes());
    }
    let digest = hash.finalize();
    digest.first_chunk::<16>().copied().unwrap_or_default()
}

/// A row with the batch it is in.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) batch: Arc<RecordBatch>,
    pub(crate) row: usize,
}

impl Row {
    pub(crate) fn text(&self, column: usize) -> Option<&str> {
        let column = self.batch.columns().get(column)?.as_string_opt::<i32>()?;
        nullable(column, self.row)
    }

    pub(crate) fn at(&self) -> i64 {
        self.batch
            .columns()
            .get(row_columns::AT)
            .and_then(|column| column.as_primitive_opt::<TimestampMillisecondType>())
            .map_or(0, |column| column.value(self.row))
    }

    pub(crate) fn schema(&self) -> i32 {
        self.batch
            .columns()
            .get(row_columns::SCHEMA)
            .and_then(|column| column.as_primitive_opt::<Int32Type>())
            .map_or(0, |column| column.value(self.row))
    }
}

/// Rows of a merged stream, one after the other.
pub(crate) struct Rows {
    merge: Merge,
    current: Option<(Arc<RecordBatch>, Keys)>,
    row: usize,
    pub(crate) read: u64,
}

impl Rows {
    pub(crate) fn new(merge: Merge) -> Result<Self, CurrentError> {
        let mut rows = Self {
            merge,
            current: None,
            row: 0,
            read: 0,
        };
        rows.load()?;
        Ok(rows)
    }

    fn load(&mut self) -> Result<(), CurrentError> {
        self.row = 0;
        self.current = match self.merge.next().transpose()? {
            Some(batch) => {
                let keys = Keys::of(&batch)?;
                Some((Arc::new(batch), keys))
            }
            None => None,
        };
        Ok(())
    }

    /// The next row's key, without passing it.
    pub(crate) fn key(&self) -> Option<(&str, Option<&str>)> {
        self.current.as_ref().map(|(_, keys)| keys.key(self.row))
    }

    pub(crate) fn take(&mut self) -> Result<Option<Row>, CurrentError> {
        let Some((batch, _)) = &self.current else {
            return Ok(None);
        };
        let row = Row {
            batch: Arc::clone(batch),
            row: self.row,
        };
        let rows = batch.num_rows();
        self.row += 1;
        self.read += 1;
        if self.row >= rows {
            self.load()?;
        }
        Ok(Some(row))
    }
}
