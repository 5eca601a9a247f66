//! What our Lambda functions have in common: configuration, schemas, the process and its log.

pub mod config;
pub mod process;

use std::path::PathBuf;

use dynalake_schemas::Catalog;
use lambda_runtime::Diagnostic;

pub use config::{Config, ConfigError, Place, Variables};

/// An event, and what is known of its invocation.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// JSON text.
    pub event: &'a str,
    /// Lambda's id of the invocation.
    pub request_id: &'a str,
    /// When it began, milliseconds since 1970-01-01 UTC.
    pub now_ms: i64,
    /// When Lambda will end it, milliseconds since 1970-01-01 UTC.
    pub deadline_ms: i64,
}

/// What an invocation gives.
#[derive(Debug)]
pub struct Outcome<R> {
    /// Lines of JSON for the log.
    pub log: Vec<String>,
    /// The answer, or the error, which is logged as well.
    pub result: Result<R, Diagnostic>,
}

impl<R> Outcome<R> {
    /// An error and nothing to log besides.
    pub fn failed(error: Diagnostic) -> Self {
        Self {
            log: Vec::new(),
            result: Err(error),
        }
    }
}

/// Reads the schemas from the first of these folders that exists.
///
/// # Errors
/// A sentence, or all problems of the schemas.
pub fn load_catalog(folders: &[PathBuf]) -> Result<Catalog, String> {
    let Some(folder) = folders.iter().find(|folder| folder.is_dir()) else {
        let folders: Vec<String> = folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        return Err(format!(
            "{}: there is no schema folder at {}; deploy one with the function or say where it is",
            config::SCHEMAS,
            folders.join(" or ")
        ));
    };
    Catalog::load(folder).map_err(|problems| problems.to_string())
}
