//! What an invocation needs: made once, never changed.

use std::sync::Arc;
use std::time::Duration;

use dynalake_schemas::Catalog;

use super::config::{Config, DEFAULT_PUT_CONCURRENCY};
use super::error::StreamError;
use crate::pipeline::{Partitioning, Pipeline, Secrets};
use crate::store::Store;

/// What an invocation needs. Immutable, so that a panic in one invocation harms no other.
#[derive(Clone)]
pub struct Context {
    pub(super) catalog: Arc<Catalog>,
    pub(super) secrets: Secrets,
    pub(super) store: Store,
    pub(super) source_table: Option<String>,
    pub(super) put_concurrency: usize,
    pub(super) clock: fn() -> Duration,
}

impl Context {
    /// A context that takes records of the catalog's source table and measures no time.
    ///
    /// # Errors
    /// A column of the schemas needs a secret that is not given.
    pub fn new(catalog: Arc<Catalog>, secrets: Secrets, store: Store) -> Result<Self, StreamError> {
        // Fails now rather than at the first record.
        Pipeline::new(Arc::clone(&catalog), &secrets, Partitioning::ByDay)
            .map_err(StreamError::Config)?;
        Ok(Self {
            source_table: catalog.source.table.clone(),
            catalog,
            secrets,
            store,
            put_concurrency: DEFAULT_PUT_CONCURRENCY,
            clock: || Duration::ZERO,
        })
    }

    /// Takes records of this table instead of the one in `lake.toml`.
    #[must_use]
    pub fn with_source_table(mut self, table: impl Into<String>) -> Self {
        self.source_table = Some(table.into());
        self
    }

    /// Stores up to this many objects at the same time.
    #[must_use]
    pub fn with_put_concurrency(mut self, objects: usize) -> Self {
        self.put_concurrency = objects.max(1);
        self
    }

    /// Measures stages with this clock, whose zero may lie anywhere but which never goes back.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> Duration) -> Self {
        self.clock = clock;
        self
    }

    /// Reads the schemas and opens the store of a configuration.
    ///
    /// # Errors
    /// No schema folder, or all problems of the schemas.
    pub fn open(config: &Config) -> Result<Self, StreamError> {
        let Some(folder) = config.schemas.iter().find(|folder| folder.is_dir()) else {
            let folders: Vec<String> = config
                .schemas
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            return Err(StreamError::Config(format!(
                "{}: there is no schema folder at {}; deploy one with the function or say where it is",
                super::config::SCHEMAS,
                folders.join(" or ")
            )));
        };
        let catalog =
            Catalog::load(folder).map_err(|problems| StreamError::Config(problems.to_string()))?;
        let context = Self::new(Arc::new(catalog), config.secrets.clone(), config.store())?
            .with_put_concurrency(config.put_concurrency);
        Ok(match &config.source_table {
            Some(table) => context.with_source_table(table),
            None => context,
        })
    }

    /// The schemas.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The lake's store.
    pub fn store(&self) -> &Store {
        &self.store
    }
}
