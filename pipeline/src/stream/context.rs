//! What an invocation needs: made once, never changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dynalake_schemas::Catalog;

use super::error::StreamError;
use crate::lambda::config::{Config, DEFAULT_PUT_CONCURRENCY, schema_folders};
use crate::lambda::load_catalog;
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

    /// Reads the configuration and the schemas, and opens the store.
    ///
    /// # Errors
    /// All problems of both at once, one per line.
    pub fn from_vars(vars: &BTreeMap<String, String>) -> Result<Self, StreamError> {
        let config = Config::from_vars(vars.clone()).map_err(|error| error.to_string());
        let catalog = load_catalog(&schema_folders(vars));
        let (config, mut catalog) = match (config, catalog) {
            (Ok(config), Ok(catalog)) => (config, catalog),
            (config, catalog) => {
                let problems = [config.err(), catalog.err()];
                let problems: Vec<String> = problems.into_iter().flatten().collect();
                return Err(StreamError::Config(problems.join("\n")));
            }
        };
        if let Some(database) = config.database.clone() {
            catalog.database = database;
        }
        let context = Self::new(
            Arc::new(catalog),
            config.secrets.clone(),
            config.lake.store(),
        )?
        .with_put_concurrency(config.put_concurrency);
        Ok(match config.source_table {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lambda::config::{DATABASE, HMAC_KEY, LAKE, S3_PATH_STYLE, SCHEMAS, SOURCE_TABLE};

    fn vars(given: &[(&str, &str)]) -> BTreeMap<String, String> {
        given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn refused(given: &[(&str, &str)]) -> String {
        let error = Context::from_vars(&vars(given)).map(|_| ()).unwrap_err();
        assert_eq!(error.error_type(), "dynalake.Config");
        error.chain()
    }

    const LAKE_TOML: &str = "database = \"shop\"\n[source]\npartition_key = \"PK\"\n";
    const USER_TOML: &str = "entity = \"user\"\ntable = \"users\"\nversion = 1\n\
        [match]\npartition_key = \"USER#{id}\"\n[columns]\nid = \"string\"\n\
        email = { type = \"string\", transform = \"hmac_sha256\" }\n";

    #[test]
    fn problems_of_configuration_and_schemas_come_together() {
        let text = refused(&[(S3_PATH_STYLE, "perhaps"), (SCHEMAS, "/no/such/folder")]);
        for part in [LAKE, S3_PATH_STYLE, "/no/such/folder"] {
            assert!(text.contains(part), "{text}");
        }
        let folder = tempfile::TempDir::new().unwrap();
        let schemas = folder.path().to_str().unwrap();
        std::fs::write(folder.path().join("lake.toml"), "database = 7").unwrap();
        let text = refused(&[(SCHEMAS, schemas)]);
        assert!(text.contains(LAKE) && text.contains("lake.toml"), "{text}");
    }

    #[test]
    fn a_key_that_the_schemas_need_is_required() {
        let folder = tempfile::TempDir::new().unwrap();
        let schemas = folder.path().to_str().unwrap();
        std::fs::write(folder.path().join("lake.toml"), LAKE_TOML).unwrap();
        std::fs::write(folder.path().join("user.toml"), USER_TOML).unwrap();
        let text = refused(&[(LAKE, "./lake"), (SCHEMAS, schemas)]);
        assert!(text.contains(HMAC_KEY) && text.contains("email"), "{text}");
        let given = [
            (LAKE, "./lake"),
            (SCHEMAS, schemas),
            (HMAC_KEY, "0123456789abcdef"),
            (SOURCE_TABLE, "shop-prod"),
        ];
        let context = Context::from_vars(&vars(&given)).unwrap();
        assert_eq!(context.source_table.as_deref(), Some("shop-prod"));
        assert_eq!(context.catalog().database, "shop");
        let staged: Vec<_> = given.into_iter().chain([(DATABASE, "shop_test")]).collect();
        let context = Context::from_vars(&vars(&staged)).unwrap();
        assert_eq!(context.catalog().database, "shop_test");
        let text = refused(&[
            (LAKE, "./lake"),
            (SCHEMAS, schemas),
            (DATABASE, "Shop-test"),
        ]);
        assert!(text.contains(DATABASE), "{text}");
    }
}
