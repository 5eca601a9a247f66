//! Why views cannot be published.

use std::error::Error;

use aws_sdk_glue::error::{ProvideErrorMetadata, SdkError};
use dynalake_pipeline::baseline::BaselineError;

/// Codes of Glue's that mean: try again.
const PASSING: [&str; 6] = [
    "ThrottlingException",
    "ConcurrentModificationException",
    "OperationTimeoutException",
    "InternalServiceException",
    "RequestLimitExceeded",
    "TooManyRequestsException",
];

/// Why views cannot be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GlueError {
    /// The lake's baseline cannot be read.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// Something else has the name of a view.
    #[error(
        "`{database}`.`{name}` in Glue is a table or view that dynalake did not make; rename or drop \
         it, or give the entity's `table` another name"
    )]
    NotOurs {
        /// Glue database.
        database: String,
        /// Name.
        name: String,
    },
    /// Glue refused, or was not reached.
    #[error("{operation} in Glue database `{database}` failed: {message}{}", remedy(.code))]
    Call {
        /// What was called.
        operation: &'static str,
        /// Glue database.
        database: String,
        /// Glue's code; empty where Glue was not reached.
        code: String,
        /// Glue's words.
        message: String,
    },
}

fn remedy(code: &str) -> &'static str {
    match code {
        "EntityNotFoundException" => "; deploy the stack, which makes the database",
        "AccessDeniedException" => {
            "; give the function's role glue:GetTables, CreateTable, UpdateTable and DeleteTable on \
             the database and its tables (and in Lake Formation CREATE_TABLE)"
        }
        _ => "",
    }
}

impl GlueError {
    pub(super) fn call<E, R>(
        operation: &'static str,
        database: &str,
        error: &SdkError<E, R>,
    ) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
        R: std::fmt::Debug,
    {
        let code = error.code().unwrap_or_default().to_owned();
        let message = match error.as_service_error() {
            Some(service) => service.message().unwrap_or(&code).to_owned(),
            None => aws_sdk_glue::error::DisplayErrorContext(error).to_string(),
        };
        Self::Call {
            operation,
            database: database.to_owned(),
            code,
            message,
        }
    }

    /// Whether Glue may take the same call a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Call { code, .. } => code.is_empty() || PASSING.contains(&code.as_str()),
            Self::Baseline(_) | Self::NotOurs { .. } => false,
        }
    }
}
