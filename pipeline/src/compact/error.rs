//! Why a compaction could not be done.

use std::path::PathBuf;

use crate::current::CurrentError;
use crate::encode::EncodeError;
use crate::store::StoreError;

/// Why a compaction could not be done. The lake is as readers need it all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The lake could not be read or written. The next compaction goes on where this one stopped.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Objects could not be read or merged.
    #[error(transparent)]
    Merge(CurrentError),
    /// A file on the local disk could not be written.
    #[error("spool file `{}`: {source}; give a spool folder that exists and has room", path.display())]
    Spool {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Rows could not be encoded as Parquet.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// An object has what the schemas do not know: merged after them, it would be lost.
    #[error(
        "`{key}` has column `{column}` in a form that the schemas do not know, so its day is left \
         as it is; compact with the newest schemas"
    )]
    UnknownColumn {
        /// The object.
        key: String,
        /// The column.
        column: String,
    },
    /// Rows are not all accounted for: a fault of this program. The inputs stay.
    #[error(
        "table `{table}`, day {day}: {read} rows came in, {written} and {duplicates} duplicates \
         came out; this is a defect of dynalake, please report it"
    )]
    Unaccounted {
        /// Lake table.
        table: String,
        /// Day.
        day: String,
        /// Rows of the inputs.
        read: u64,
        /// Rows of the outputs.
        written: u64,
        /// Rows left out as duplicates.
        duplicates: u64,
    },
    /// A worker stopped without a result: a fault of this program.
    #[error("the merge stopped: {0}; this is a defect of dynalake, please report it")]
    Worker(String),
    /// What the Lambda function was called with cannot be used.
    #[error("the event of the compaction cannot be used: {0}")]
    Event(String),
}

impl From<CurrentError> for CompactError {
    fn from(error: CurrentError) -> Self {
        match error {
            CurrentError::Store(error) => Self::Store(error),
            other => Self::Merge(other),
        }
    }
}

impl CompactError {
    /// Whether the error is one of this day's objects, and other days can be compacted.
    pub(super) fn is_of_day(&self) -> bool {
        match self {
            Self::UnknownColumn { .. } => true,
            Self::Merge(error) => matches!(
                error,
                CurrentError::Gone { .. }
                    | CurrentError::Object { .. }
                    | CurrentError::Column { .. }
                    | CurrentError::Types { .. }
            ),
            _ => false,
        }
    }
}
