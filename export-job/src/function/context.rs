//! What an invocation needs: made once, never changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dynalake_pipeline::lambda::config::schema_folders;
use dynalake_pipeline::lambda::{Place, load_catalog};
use dynalake_pipeline::pipeline::{Partitioning, Pipeline, Secrets};
use dynalake_pipeline::store::{LakeUri, S3Options, Store, s3};
use dynalake_schemas::Catalog;

use super::Call;
use super::config::{WORK, WorkerConfig};
use super::error::StepError;
use super::spool::Spool;
use crate::glue;
use crate::options::ConvertOptions;
use crate::source::Source;

/// What Lambda says of the function.
const MEMORY: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";
const HANDLER: &str = "_HANDLER";
const TMP: &str = "TMPDIR";
/// Endpoint of Glue, where it is not AWS's.
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL_GLUE", "AWS_ENDPOINT_URL"];

/// Memory that the process itself takes, in megabytes.
const RESERVED_MB: usize = 128;
/// A conversion's peak is about three times its rows; the rest is for buffers of S3.
const SHARE: usize = 4;
const LEAST_MB: usize = 16;

/// What an invocation needs. Immutable, so that a panic in one harms no other.
pub struct Context {
    pub(super) catalog: Arc<Catalog>,
    pub(super) secrets: Secrets,
    pub(super) lake: Place,
    pub(super) store: Store,
    work: Option<Place>,
    source_table: Option<String>,
    pub(super) part_bytes: u64,
    pub(super) object_mb: usize,
    pub(super) parts_per_call: usize,
    /// Memory for rows.
    pub(super) memory_mb: usize,
    pub(super) spool: Spool,
    pub(super) handler: Option<String>,
    glue_endpoint: Option<String>,
    pub(super) clock: fn() -> Duration,
}

impl Context {
    /// Reads the configuration and the schemas, and opens the lake. `clock` never goes back.
    ///
    /// # Errors
    /// All problems of both at once, one per line.
    pub fn from_vars(
        vars: &BTreeMap<String, String>,
        clock: fn() -> Duration,
    ) -> Result<Self, StepError> {
        let config = WorkerConfig::from_vars(vars.clone()).map_err(|error| error.to_string());
        let catalog = load_catalog(&schema_folders(vars));
        let (worker, mut catalog) = match (config, catalog) {
            (Ok(config), Ok(catalog)) => (config, catalog),
            (config, catalog) => {
                let problems = [config.err(), catalog.err()];
                let problems: Vec<String> = problems.into_iter().flatten().collect();
                return Err(StepError::Config(problems.join("\n")));
            }
        };
        if let Some(database) = worker.config.database {
            catalog.database = database;
        }
        let catalog = Arc::new(catalog);
        let secrets = worker.config.secrets;
        // A missing secret is told now rather than by the first step.
        Pipeline::new(Arc::clone(&catalog), &secrets, Partitioning::Whole)
            .map_err(StepError::Config)?;
        let text = |name: &str| vars.get(name).filter(|value| !value.is_empty());
        let memory: usize = text(MEMORY)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        let tmp = text(TMP).map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        Ok(Self {
            catalog,
            secrets,
            store: worker.config.lake.store(),
            lake: worker.config.lake,
            work: worker.work,
            source_table: worker.config.source_table,
            part_bytes: worker.part_bytes,
            object_mb: worker.object_mb,
            parts_per_call: worker.parts_per_call,
            memory_mb: (memory.saturating_sub(RESERVED_MB) / SHARE).max(LEAST_MB),
            spool: Spool::new(&tmp, std::process::id()),
            handler: text(HANDLER).cloned(),
            glue_endpoint: ENDPOINTS.iter().find_map(|name| text(name)).cloned(),
            clock,
        })
    }

    /// The export at an address.
    pub(super) fn source(&self, address: &str) -> Result<Source, StepError> {
        let problem = |problem: String| StepError::Event(format!("export `{address}`: {problem}"));
        match LakeUri::parse(address).map_err(|error| problem(error.to_string()))? {
            LakeUri::Local(path) => Ok(Source::local(Path::new(&path))?),
            LakeUri::S3 { bucket, prefix } => {
                let settings = self.lake.s3_settings().ok_or_else(|| {
                    problem("the lake is no bucket, so exports are not".to_owned())
                })?;
                let client = s3::client(settings);
                // The whole bucket: data files may lie beside the folder of the manifests.
                let store = Store::s3(client, &bucket, "", S3Options::default());
                Ok(Source::in_store(store, &prefix))
            }
        }
    }

    /// Where work lists go.
    pub(super) fn work(&self) -> Result<&Place, StepError> {
        self.work.as_ref().ok_or_else(|| {
            StepError::Config(format!(
                "{WORK}: not set; give s3://bucket/prefix for work lists"
            ))
        })
    }

    /// The client of Glue.
    pub(super) fn glue(&self) -> Result<aws_sdk_glue::Client, StepError> {
        let settings = self.lake.s3_settings().ok_or_else(|| {
            StepError::Config("a lake in a local folder has no views in Glue".to_owned())
        })?;
        Ok(glue::client(settings, self.glue_endpoint.as_deref()))
    }

    /// How exports are converted in this call.
    pub(super) fn options(&self, call: &Call<'_>) -> ConvertOptions {
        ConvertOptions {
            workers: std::num::NonZeroUsize::new(1),
            memory_mb: self.memory_mb,
            object_mb: self.object_mb,
            part_bytes: Some(self.part_bytes),
            source_table: self.source_table.clone(),
            spool: Some(self.spool.folder().to_owned()),
            replace: call.event.replace,
            holder: call.holder(),
            now_ms: call.now_ms,
            ..ConvertOptions::default()
        }
    }
}
