//! What can go wrong with reading a table's state.

use std::path::PathBuf;

use crate::encode::EncodeError;
use crate::store::StoreError;

/// A table's state cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CurrentError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The baseline's record cannot be read.
    #[error(transparent)]
    Baseline(#[from] crate::baseline::BaselineError),
    /// The caller wanted no more.
    #[error("stopped before the end")]
    Stopped,
    /// An object listed a moment ago is gone: compaction or a dropped baseline. Run again.
    #[error("`{key}` was deleted while it was read; run the command again")]
    Gone {
        /// Object key.
        key: String,
    },
    /// An object is not a Parquet file of the table.
    #[error("`{key}` cannot be read as Parquet: {message}")]
    Object {
        /// Object key.
        key: String,
        /// What the reader said.
        message: String,
    },
    /// A column of an object cannot be read as the table's column.
    #[error(
        "column `{column}` of `{key}` is {found}, which cannot be read as the table's {expected}; \
         the schema changed in a way that old files cannot follow, take a new full export"
    )]
    Column {
        /// Object key.
        key: String,
        /// Column.
        column: String,
        /// Its type in the object.
        found: String,
        /// Its type in the table.
        expected: String,
    },
    /// Files of the table do not go together.
    #[error(
        "files of table `{table}` have column `{column}` in types that do not go together; \
         give the schemas (`--schemas DIR`)"
    )]
    Types {
        /// Table.
        table: String,
        /// Column.
        column: String,
    },
    /// The spool folder failed.
    #[error("temporary file `{path}`: {source}")]
    Spool {
        /// File.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Rows could not be spilled.
    #[error("rows could not be spilled to a temporary file")]
    Spill(#[from] EncodeError),
    /// Rows of one table do not fit together. A defect.
    #[error("rows could not be merged: {0}; this is a defect of dynalake, please report it")]
    Merge(String),
    /// There is no such entity.
    #[error("the catalog has no entity number {0}")]
    NoEntity(usize),
    /// The receiver of rows failed.
    #[error("{0}")]
    Sink(String),
}
