//! Runs: stretches of rows sorted by key, in files on the local disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dynalake_schemas::row_columns;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::RowGroupMetaData;
use tokio::io::AsyncWriteExt;

use super::error::CurrentError;
use super::merge::Keys;
use super::schema::unite;
use crate::store::Store;

/// Rows decoded at once to find the last one.
const LAST_KEY_ROWS: usize = 8192;

/// Rows sorted by (`_pk`, `_sk`, `_seq`), in Parquet files on the local disk.
#[derive(Debug, Clone)]
pub struct Run {
    first: Part,
    /// Parts after the first, whose rows follow its rows.
    more: Vec<Part>,
}

/// Row groups of a file, in order.
#[derive(Debug, Clone)]
struct Part {
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

impl Part {
    fn groups(&self) -> impl Iterator<Item = &RowGroupMetaData> {
        let metadata = self.file.metadata.metadata();
        self.row_groups
            .iter()
            .filter_map(|&group| metadata.row_groups().get(group))
    }

    fn open(&self, batch_rows: usize) -> Result<ParquetRecordBatchReader, CurrentError> {
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

impl Run {
    fn new(file: Arc<RunFile>, row_groups: Vec<usize>) -> Self {
        Self {
            first: Part { file, row_groups },
            more: Vec::new(),
        }
    }

    /// Several runs as one, where each one's rows follow those of the one before; `None` without runs.
    /// A merge holds one of them open at a time.
    pub fn chain(runs: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut runs = runs.into_iter();
        let mut chain = runs.next()?;
        for run in runs {
            chain.more.push(run.first);
            chain.more.extend(run.more);
        }
        Some(chain)
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.parts()
            .flat_map(Part::groups)
            .map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
            .sum()
    }

    /// Whether all rows have a partition key before this one, by the files' statistics. `false` where
    /// they do not tell.
    pub fn ends_before(&self, pk: &str) -> bool {
        self.parts().all(|part| part.ends_before(pk))
    }

    /// Leaves out what surely has partition keys before this one; `None` if that is everything.
    #[must_use]
    pub fn beginning_at(&self, pk: &str) -> Option<Self> {
        let rest = self.parts().skip_while(|part| part.ends_before(pk));
        Self::chain(rest.map(|part| Self::new(Arc::clone(&part.file), part.row_groups.clone())))
    }

    /// The key of the last row; `None` without rows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_key(&self) -> Result<Option<(String, Option<String>)>, CurrentError> {
        let mut last = None;
        let part = self.more.last().unwrap_or(&self.first);
        for batch in part.open(LAST_KEY_ROWS)? {
            let batch = batch.map_err(|error| unreadable(&part.file.key, &error))?;
            if let Some(row) = batch.num_rows().checked_sub(1) {
                let keys = Keys::of(&batch)?;
                let (pk, sk) = keys.key(row);
                last = Some((pk.to_owned(), sk.map(str::to_owned)));
            }
        }
        Ok(last)
    }

    /// A column, or one with a member, that rows of this schema do not have, or only in a narrower
    /// type: what it holds would be lost.
    pub fn column_beyond(&self, schema: &SchemaRef) -> Option<String> {
        self.parts().find_map(|part| {
            // Types that do not go together at all are the merge's to tell.
            let theirs = part.file.metadata.schema();
            let united = unite([schema, theirs].into_iter()).ok().flatten()?;
            let beyond = united.fields().iter().find(|field| {
                let ours = schema.field_with_name(field.name());
                !ours.is_ok_and(|ours| ours.data_type() == field.data_type())
            });
            beyond.map(|field| field.name().clone())
        })
    }

    /// The schema of the (first) file.
    pub(crate) fn schema(&self) -> &SchemaRef {
        self.first.file.metadata.schema()
    }

    /// Key of the (first) object that the rows come from.
    pub fn key(&self) -> &str {
        &self.first.file.key
    }

    /// Reads the rows in batches.
    pub fn open(&self, batch_rows: usize) -> Result<RunReader, CurrentError> {
        Ok(RunReader {
            key: self.first.file.key.clone(),
            open: self.first.open(batch_rows)?,
            rest: self.more.clone().into_iter(),
            batch_rows,
        })
    }
}

impl Part {
    fn ends_before(&self, pk: &str) -> bool {
        // A shortened statistic is rounded up, so that it still is an upper bound.
        let greatest = |group: &'_ RowGroupMetaData| -> Option<bool> {
            let statistics = group.columns().get(row_columns::PK)?.statistics()?;
            Some(statistics.max_bytes_opt()? < pk.as_bytes())
        };
        self.groups().all(|group| greatest(group) == Some(true))
    }
}

/// Reads a run, one file after the other.
pub struct RunReader {
    key: String,
    open: ParquetRecordBatchReader,
    rest: std::vec::IntoIter<Part>,
    batch_rows: usize,
}

impl Iterator for RunReader {
    type Item = Result<RecordBatch, CurrentError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.open.next() {
                return Some(batch.map_err(|error| unreadable(&self.key, &error)));
            }
            let part = self.rest.next()?;
            match part.open(self.batch_rows) {
                Ok(reader) => self.open = reader,
                Err(error) => return Some(Err(error)),
            }
            self.key.clone_from(&part.file.key);
        }
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
        .map(|group| Run::new(Arc::clone(&file), vec![group]))
        .collect())
}

/// A file of our own, sorted as a whole, as one run.
pub(super) fn spilled_run(path: PathBuf) -> Result<Run, CurrentError> {
    let file = open_file(path, "a spilled run", true)?;
    let row_groups = (0..file.metadata.metadata().num_row_groups()).collect();
    Ok(Run::new(Arc::new(file), row_groups))
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
