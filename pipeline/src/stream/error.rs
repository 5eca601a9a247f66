//! Why an invocation, or the start of the function, failed.

use std::error::Error;
use std::fmt::Write;

use crate::encode::EncodeError;
use crate::pipeline::BatchError;
use crate::store::StoreError;

/// Why an invocation, or the start of the function, failed. Never holds a value of an item.
///
/// A failed invocation loses nothing: its event source keeps the records and sends them again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// Configuration or schemas: the function cannot start. All problems, one per line.
    #[error("{0}")]
    Config(String),
    /// The event is not one of a DynamoDB stream.
    #[error("{0}")]
    Event(String),
    /// The stream has no new images, so it cannot feed a lake.
    #[error(
        "record {index} has StreamViewType {view_type}, which leaves out the item after the \
         change; a lake needs NEW_AND_OLD_IMAGES (or NEW_IMAGE): disable the table's stream, enable \
         it with that view type, and map the new stream to this function"
    )]
    ViewType {
        /// Index of the record in the event.
        index: usize,
        /// `KEYS_ONLY` or `OLD_IMAGE`.
        view_type: &'static str,
    },
    /// The event comes from another table than the schemas are for.
    #[error(
        "record {index} comes from table `{found}`, but the schemas are for `{expected}`; map the \
         right stream to this function, or set DYNALAKE_SOURCE_TABLE when this stage's table has \
         another name"
    )]
    SourceTable {
        /// Index of the record in the event.
        index: usize,
        /// Table of `lake.toml` or `DYNALAKE_SOURCE_TABLE`.
        expected: String,
        /// Table in the record's ARN.
        found: String,
    },
    /// Rows could not be made a batch.
    #[error("the batch was not stored")]
    Batch(#[source] BatchError),
    /// Rows could not be written as Parquet.
    #[error("the batch was not stored")]
    Encode(#[source] EncodeError),
    /// Objects could not be stored.
    #[error("{failed} of {objects} objects were not stored; a retry writes the same ones again")]
    Store {
        /// Objects that were not stored.
        failed: usize,
        /// Objects of the batch.
        objects: usize,
        /// The first failure.
        #[source]
        source: StoreError,
    },
}

impl StreamError {
    /// Stable name, reported to Lambda as the error's type; for alarms and retries by type.
    pub fn error_type(&self) -> &'static str {
        match self {
            Self::Config(_) => "dynalake.Config",
            Self::Event(_) => "dynalake.Event",
            Self::ViewType { .. } => "dynalake.StreamViewType",
            Self::SourceTable { .. } => "dynalake.SourceTable",
            Self::Batch(_) => "dynalake.Batch",
            Self::Encode(_) => "dynalake.Encode",
            Self::Store { .. } => "dynalake.Store",
        }
    }

    /// The message with all its causes, on one line for each problem.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            if write!(text, ": {error}").is_err() {
                break;
            }
            cause = error.source();
        }
        text
    }
}
