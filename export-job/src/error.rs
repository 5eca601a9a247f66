//! Why an export cannot be converted.

use std::path::PathBuf;

use dynalake_pipeline::baseline::BaselineError;
use dynalake_pipeline::current::CurrentError;
use dynalake_pipeline::store::StoreError;

/// What kind of refusal it is, for callers that branch (exit codes, tests).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalKind {
    /// No export was found at the source.
    NoExport,
    /// A manifest is not what AWS writes: not JSON, a field missing or of the wrong form.
    BadManifest,
    /// A manifest version that this program does not know.
    UnknownVersion,
    /// Data files in another format than the manifest says.
    OtherFormat,
    /// An incremental export.
    Incremental,
    /// An export with a filter, which no baseline can be made of or rolled forward by.
    Filtered,
    /// A full export where an incremental one is needed.
    Full,
    /// There is no baseline that an incremental export could be rolled into.
    NoBase,
    /// Between a baseline and a window, or between two, there is time that no export covers.
    MissingWindow,
    /// A window begins before the one before it ends.
    OverlappingWindow,
    /// A baseline made with other schemas cannot be decoded again under these.
    OtherSchemas,
    /// An export of another table than the schemas are for.
    OtherTable,
    /// A manifest or data file differs from its checksum.
    Checksum,
    /// A data file that the manifest names is nowhere.
    MissingFile,
    /// A data file is truncated or not gzip.
    DamagedFile,
    /// A file, or the export, holds another number of items than its manifest says.
    CountMismatch,
    /// Another conversion of this export, with other schemas or software, is in the lake.
    OtherPlan,
    /// Another export of the same second is in the lake.
    SameSecond,
    /// An export that is to be committed is not whole in the lake.
    Unfinished,
}

/// Why an export cannot be converted. No variant holds a value of an item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The export, or the lake's state, is not fit to be converted. Nothing was published.
    #[error("`{file}`: {problem}; {remedy}")]
    Refused {
        /// Kind of refusal.
        kind: RefusalKind,
        /// File or object that is at fault, as the operator knows it.
        file: String,
        /// What is wrong.
        problem: String,
        /// What to do next.
        remedy: String,
    },
    /// Reading the export or writing the lake failed. Started again, the conversion goes on.
    #[error("{0}; start the conversion again to go on where it stopped")]
    Store(#[from] StoreError),
    /// The bytes of a data file could not be read to their end.
    #[error(
        "`{file}` could not be read on: {source}; start the conversion again to go on where it stopped"
    )]
    Read {
        /// Data file.
        file: String,
        /// The store's reason.
        source: std::io::Error,
    },
    /// Writing a spool file on the local disk failed.
    #[error("spool file `{}`: {source}; give a spool folder that exists and has room", path.display())]
    Spool {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Rows could not be encoded as Parquet.
    #[error("table `{table}` of data file `{file}` could not be encoded: {message}")]
    Encode {
        /// Lake table.
        table: String,
        /// Data file.
        file: String,
        /// The encoder's reason.
        message: String,
    },
    /// The pipeline could not be set up (a secret is missing).
    #[error("{0}")]
    Setup(String),
    /// Rows could not be merged.
    #[error(transparent)]
    Merge(CurrentError),
    /// Items are not all accounted for: a fault of this program. Nothing was published.
    #[error(
        "`{file}`: {items} items came in but {accounted} are in rows or in quarantine; \
         this is a bug, nothing was published"
    )]
    Unaccounted {
        /// Data file, or the export.
        file: String,
        /// Items read.
        items: u64,
        /// Items in rows or in quarantine.
        accounted: u64,
    },
    /// A worker stopped without a result: a fault of this program.
    #[error("the worker of data file `{file}` stopped: {message}; this is a bug")]
    Worker {
        /// Data file.
        file: String,
        /// What is known.
        message: String,
    },
    /// The baseline could not be committed, or be taken back for a conversion that replaces it.
    #[error(transparent)]
    Baseline(BaselineError),
    /// The conversion was stopped on purpose.
    #[error("the conversion was stopped; start it again to go on where it stopped")]
    Stopped,
}

impl From<BaselineError> for ExportError {
    fn from(error: BaselineError) -> Self {
        match error {
            BaselineError::Store(error) => Self::Store(error),
            other => Self::Baseline(other),
        }
    }
}

impl From<CurrentError> for ExportError {
    fn from(error: CurrentError) -> Self {
        match error {
            CurrentError::Store(error) => Self::Store(error),
            other => Self::Merge(other),
        }
    }
}

impl ExportError {
    /// The refusal's kind; `None` if this is not a refusal.
    pub fn refusal(&self) -> Option<RefusalKind> {
        match self {
            Self::Refused { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    pub(crate) fn refused(
        kind: RefusalKind,
        file: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Refused {
            kind,
            file: file.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}
