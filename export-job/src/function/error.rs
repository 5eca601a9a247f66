//! Why a step failed, as Lambda and the workflow see it.

use dynalake_pipeline::baseline::BaselineError;
use dynalake_pipeline::compact::CompactError;
use dynalake_pipeline::current::CurrentError;
use dynalake_pipeline::store::{StoreError, StoreErrorKind};
use lambda_runtime::Diagnostic;

use crate::error::ExportError;
use crate::glue::GlueError;
use crate::request::RequestError;

/// Why a step failed. Never holds a value of an item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// Configuration or schemas: the function cannot start, or not do this step.
    #[error("{0}")]
    Config(String),
    /// The event is not one of a step.
    #[error("{0}")]
    Event(String),
    /// Nothing is exported or converted for a stated reason.
    #[error("{0}")]
    Refused(String),
    /// The invocation's time does not do for the least piece of work.
    #[error("{0}")]
    Deadline(String),
    /// An export cannot be converted or committed.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The lake's state cannot be read.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// The lake's rows cannot be read.
    #[error(transparent)]
    Current(#[from] CurrentError),
    /// The work place or the lake cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The views cannot be published.
    #[error(transparent)]
    Glue(#[from] GlueError),
    /// Compaction failed.
    #[error(transparent)]
    Compact(#[from] CompactError),
    /// The local disk failed.
    #[error("temporary folder `{path}`: {source}")]
    Spool {
        /// Folder.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Errors that the same call may not have a little later; all others come back the same.
pub const PASSING: [&str; 3] = ["dynalake.Store", "dynalake.Read", "dynalake.Busy"];
/// The error of whoever finds the lake's state locked: it passes once the other one is done.
pub const LOCKED: &str = "dynalake.Locked";

impl StepError {
    /// Stable name, reported to Lambda as the error's type. The workflow retries [`PASSING`] and
    /// [`LOCKED`].
    pub fn error_type(&self) -> &'static str {
        match self {
            Self::Config(_) => "dynalake.Config",
            Self::Event(_) => "dynalake.Event",
            Self::Refused(_) => "dynalake.Refused",
            Self::Deadline(_) => "dynalake.Deadline",
            Self::Export(error) => export(error),
            Self::Baseline(error) | Self::Glue(GlueError::Baseline(error)) => baseline(error),
            Self::Current(error) => current(error),
            Self::Store(error) => store(error),
            Self::Glue(error) if error.is_passing() => "dynalake.Busy",
            Self::Glue(_) => "dynalake.Glue",
            Self::Compact(_) => "dynalake.Compact",
            Self::Spool { .. } => "dynalake.Spool",
        }
    }

    /// The error as Lambda reports it.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic {
            error_type: self.error_type().to_owned(),
            error_message: self.to_string(),
        }
    }
}

fn export(error: &ExportError) -> &'static str {
    match error {
        ExportError::Refused { .. } => "dynalake.Refused",
        ExportError::Store(error) => store(error),
        ExportError::Read { .. } => "dynalake.Read",
        ExportError::Spool { .. } => "dynalake.Spool",
        ExportError::Setup(_) => "dynalake.Config",
        ExportError::Baseline(error) => baseline(error),
        ExportError::Stopped => "dynalake.Deadline",
        _ => "dynalake.Defect",
    }
}

fn baseline(error: &BaselineError) -> &'static str {
    match error {
        BaselineError::Store(error) => store(error),
        BaselineError::Locked { .. } | BaselineError::LostLock { .. } => LOCKED,
        _ => "dynalake.Refused",
    }
}

fn current(error: &CurrentError) -> &'static str {
    match error {
        CurrentError::Store(error) => store(error),
        CurrentError::Baseline(error) => baseline(error),
        // Compaction deleted it meanwhile: the next look does not find it.
        CurrentError::Gone { .. } => "dynalake.Read",
        CurrentError::Stopped => "dynalake.Deadline",
        CurrentError::Spool { .. } => "dynalake.Spool",
        _ => "dynalake.Audit",
    }
}

fn store(error: &StoreError) -> &'static str {
    match error.kind() {
        StoreErrorKind::Denied => "dynalake.Denied",
        StoreErrorKind::BadKey => "dynalake.Defect",
        _ => "dynalake.Store",
    }
}

impl From<RequestError> for StepError {
    fn from(error: RequestError) -> Self {
        Self::Refused(error.to_string())
    }
}
