//! The schema files that a lake's baselines were made with, kept in the lake: for readers that have no
//! schema folder at hand.
//!
//! ```text
//! state/schemas/<fingerprint>.json     the files of one schema folder, as they were
//! ```
//! A baseline's record names the fingerprint; the current schemas are those of the current baseline.
//! The object is written before the record, once: whoever is first with a fingerprint, and all who
//! come later have the same schemas, comments aside. Schema files hold no secrets: a transform's key
//! is given to the programs that write, and is in no file.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use dynalake_schemas::{Catalog, Problems, SchemaFiles};
use serde::{Deserialize, Serialize};

use crate::baseline::{self, BaselineError, BaselineRecord};
use crate::store::{Store, StoreError};

/// Form of the object that this software writes and reads.
const VERSION: u32 = 1;

/// Schemas that were found in a lake.
#[derive(Debug, Clone)]
pub struct KeptSchemas {
    /// The export or baseline that was made with them.
    pub label: String,
    /// The schemas.
    pub catalog: Catalog,
}

/// Why there are no schemas to be had from a lake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeptSchemasError {
    /// The lake could not be read.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// Changes alone do not say what they were made with.
    #[error("the lake has no baseline yet, so it holds no schemas")]
    NoBaseline,
    /// The export or baseline was made by something that keeps no schemas.
    #[error("the lake does not hold the schemas of its export {label}")]
    NotKept {
        /// The export or baseline.
        label: String,
    },
    /// The object is of another form.
    #[error("`{address}` is not readable: {problem}; a newer dynalake may read it")]
    Unreadable {
        /// The object.
        address: String,
        /// What is wrong.
        problem: String,
    },
    /// This software does not take these schemas.
    #[error("`{address}`: these schemas cannot be used:\n{problems}")]
    Refused {
        /// The object.
        address: String,
        /// What is wrong with them.
        problems: Problems,
    },
}

impl From<StoreError> for KeptSchemasError {
    fn from(error: StoreError) -> Self {
        Self::Baseline(error.into())
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    version: u32,
    /// Name of the lake's database: that of the stage, where it has one of its own.
    database: String,
    /// Text by name.
    files: BTreeMap<String, String>,
}

/// Key of the schemas with this fingerprint (as in
/// [`BaselineRecord::schema_fingerprint`](crate::baseline::BaselineRecord::schema_fingerprint)).
pub fn key(fingerprint: &str) -> String {
    format!("state/schemas/{fingerprint}.json")
}

/// Keeps the files of a catalog under its fingerprint; to be called before a baseline with it is
/// committed. Nothing happens where they are kept already, under the same name of the database.
///
/// # Errors
/// The store failed.
pub async fn keep(store: &Store, fingerprint: &str, catalog: &Catalog) -> Result<(), StoreError> {
    let own = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    let kept = Kept {
        version: VERSION,
        database: catalog.database.clone(),
        files: catalog.files.iter().map(own).collect(),
    };
    // Text by text: cannot fail.
    let mut text = serde_json::to_vec_pretty(&kept).unwrap_or_default();
    text.push(b'\n');
    let (key, text) = (key(fingerprint), Bytes::from(text));
    if store.put_if_absent(&key, text.clone()).await? {
        return Ok(());
    }
    let there = store.get(&key).await?;
    let there = there.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
    if there.is_none_or(|there| there.database != kept.database) {
        store.put(&key, text).await?;
    }
    Ok(())
}

/// The schemas of the current baseline.
///
/// # Errors
/// There is no baseline, it came without its schemas, or they cannot be read.
pub async fn current(store: &Store) -> Result<KeptSchemas, KeptSchemasError> {
    let record = baseline::current(store, None).await?;
    of(store, &record.ok_or(KeptSchemasError::NoBaseline)?).await
}

/// The schemas of a baseline.
///
/// # Errors
/// It came without its schemas, or they cannot be read.
pub async fn of(store: &Store, record: &BaselineRecord) -> Result<KeptSchemas, KeptSchemasError> {
    find(
        store,
        record.label.clone(),
        record.schema_fingerprint.clone(),
    )
    .await
}

/// The schemas that an export was converted with, be it committed or not.
///
/// # Errors
/// It is not converted, it came without its schemas, or they cannot be read.
pub async fn of_export(store: &Store, label: &str) -> Result<KeptSchemas, KeptSchemasError> {
    let records = baseline::list(store).await?;
    if let Some(record) = records.iter().find(|record| record.label == label) {
        return of(store, record).await;
    }
    let claim = store
        .get(&format!("state/export-seconds/{label}.json"))
        .await?;
    let claim = claim.and_then(|bytes| serde_json::from_slice::<Claim>(&bytes).ok());
    let plan = match claim {
        Some(Claim { export_id }) => {
            store
                .get(&format!("state/exports/{export_id}/plan.json"))
                .await?
        }
        None => None,
    };
    let plan = plan.and_then(|bytes| serde_json::from_slice::<Plan>(&bytes).ok());
    find(store, label.to_owned(), plan.map(|plan| plan.catalog)).await
}

/// What is read of the record of which export owns a label.
#[derive(Deserialize)]
struct Claim {
    export_id: String,
}

/// What is read of a conversion's plan.
#[derive(Deserialize)]
struct Plan {
    /// Fingerprint of the schemas.
    catalog: String,
}

async fn find(
    store: &Store,
    label: String,
    fingerprint: Option<String>,
) -> Result<KeptSchemas, KeptSchemasError> {
    let not_kept = || KeptSchemasError::NotKept {
        label: label.clone(),
    };
    let key = key(&fingerprint.ok_or_else(not_kept)?);
    let bytes = store.get(&key).await?.ok_or_else(not_kept)?;
    let address = store.address(&key);
    let unreadable = |problem: String| KeptSchemasError::Unreadable {
        address: address.clone(),
        problem,
    };
    let kept: Kept =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if kept.version != VERSION {
        return Err(unreadable(format!(
            "it has form {}, this software reads form {VERSION}",
            kept.version
        )));
    }
    let files: SchemaFiles = kept.files.into_iter().collect();
    let shown = Path::new("schemas of the lake");
    let mut catalog = Catalog::from_files(&files, shown)
        .map_err(|problems| KeptSchemasError::Refused { address, problems })?;
    catalog.database = kept.database;
    Ok(KeptSchemas { label, catalog })
}

#[cfg(test)]
mod tests;
