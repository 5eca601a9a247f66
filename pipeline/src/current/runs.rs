//! Runs: stretches of rows sorted by key, in files on the local disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::RowGroupMetaData;
use tokio::io::AsyncWriteExt;

use super::error::CurrentError;
use crate::store::Store;

/// Rows of a Parquet file, sorted by (`_pk`, `_sk`, `_seq`).
#[derive(Debug, Clone)]
pub struct Run {
    file: Arc<RunFile>,
    row_groups: Vec<usize>,
}

/// A local Parquet file.
#[derive(Debug)]
struct RunFile {
    path: PathBuf,
    key: String,
    metadata: ArrowReaderMetadata,
    /// Deleted when the last run of it is done.
    temporary: bool,
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if self.temporary {
            // A file that stays is harmless: the spool folder goes as a whole.
            std::fs::remove_file(&self.path).ok();
        }
    }
}

impl Run {
    /// Number of rows.
    pub fn rows(&self) -> u64 {
        let metadata = self.file.metadata.metadata();
        let rows = |&group: &usize| {
            metadata
                .row_groups()
                .get(group)
                .map_or(0, RowGroupMetaData::num_rows)
        };
        self.row_groups
            .iter()
            .map(|group| u64::try_from(rows(group)).unwrap_or(0))
            .sum()
    }

    /// The schema of the file.
    pub(crate) fn schema(&self) -> &SchemaRef {
        self.file.metadata.schema()
    }

    /// Key of the object that the rows come from.
    pub fn key(&self) -> &str {
        &self.file.key
    }

    /// Reads the rows in batches.
    pub(super) fn open(&self, batch_rows: usize) -> Result<ParquetRecordBatchReader, CurrentError> {
        let file = File::open(&self.file.path).map_err(|source| CurrentError::Spool {
            path: self.file.path.clone(),
            source,
        })?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.file.metadata.clone())
            .with_row_groups(self.row_groups.clone())
            .with_batch_size(batch_rows)
            .build()
            .map_err(|error| unreadable(&self.file.key, &error))
    }
}

/// The runs of an object: one per row group. An object of a local lake is read where it is, any other
/// is copied to `spool`.
pub async fn runs_of(store: &Store, key: &str, spool: &Path) -> Result<Vec<Run>, CurrentError> {
    let (path, temporary) = match store.local_path(key) {
        Some(path) => (path, false),
        None => (download(store, key, spool).await?, true),
    };
    let file = Arc::new(open_file(path, key, temporary)?);
    let groups = file.metadata.metadata().num_row_groups();
    Ok((0..groups)
        .map(|group| Run {
            file: Arc::clone(&file),
            row_groups: vec![group],
        })
        .collect())
}

/// A file of our own, sorted as a whole, as one run.
pub(super) fn spilled_run(path: PathBuf) -> Result<Run, CurrentError> {
    let file = open_file(path, "a spilled run", true)?;
    let row_groups = (0..file.metadata.metadata().num_row_groups()).collect();
    Ok(Run {
        file: Arc::new(file),
        row_groups,
    })
}

fn open_file(path: PathBuf, key: &str, temporary: bool) -> Result<RunFile, CurrentError> {
    let file = File::open(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => CurrentError::Gone {
            key: key.to_owned(),
        },
        _ => CurrentError::Spool {
            path: path.clone(),
            source,
        },
    })?;
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())
        .map_err(|error| unreadable(key, &error))?;
    Ok(RunFile {
        path,
        key: key.to_owned(),
        metadata,
        temporary,
    })
}

async fn download(store: &Store, key: &str, spool: &Path) -> Result<PathBuf, CurrentError> {
    let path = spool.join(key.replace('/', "+"));
    let spool_error = |source| CurrentError::Spool {
        path: path.clone(),
        source,
    };
    let mut from = match store.open_read(key).await {
        Ok(reader) => reader,
        Err(error) if error.kind() == crate::store::StoreErrorKind::NotFound => {
            return Err(CurrentError::Gone {
                key: key.to_owned(),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let mut to = tokio::fs::File::create(&path).await.map_err(spool_error)?;
    tokio::io::copy(&mut from, &mut to)
        .await
        .map_err(spool_error)?;
    to.flush().await.map_err(spool_error)?;
    Ok(path)
}

pub(super) fn unreadable(key: &str, error: &dyn std::fmt::Display) -> CurrentError {
    CurrentError::Object {
        key: key.to_owned(),
        message: error.to_string(),
    }
}
