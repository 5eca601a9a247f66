//! The lake's views in the Glue Data Catalog, where Athena finds them.
//!
//! ```text
//! Catalog, baseline ─ schemas::views ─ presto (Trino's own encoding) ─┐
//! views that are there ───────────────────────────────────────────────┴─ create, update, delete
//! ```
//! Ours are told from others by a parameter, and no other is touched. Each view is replaced in one call,
//! and nothing is called where nothing changes. So publishing may be repeated, by a deployment, by a
//! commit and by hand.

mod client;
mod error;
mod presto;
mod views;

pub use client::client;
pub use error::GlueError;

use aws_sdk_glue::Client;
use dynalake_pipeline::publish::current_baseline;
use dynalake_pipeline::store::Store;
use dynalake_schemas::{Catalog, views as sql};
use serde::Serialize;

use presto::Definition;
use views::Views;

/// Times that views are written when baselines are committed meanwhile.
const ATTEMPTS: usize = 5;

/// What publishing did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Published {
    /// Label of the baseline that the views read.
    pub baseline: Option<String>,
    /// Names of views that are new.
    pub created: Vec<String>,
    /// Names of views that are other than they were.
    pub updated: Vec<String>,
    /// Names of views that are no more.
    pub deleted: Vec<String>,
    /// Number of views that were right.
    pub unchanged: usize,
}

/// Makes the views of the catalog's database what the schemas and the current baseline say.
///
/// # Errors
/// A table that is not ours has the name of a view, the lake or Glue cannot be reached. Views that were
/// replaced before stay; the same call does the rest.
pub async fn publish(
    glue: &Client,
    lake: &Store,
    catalog: &Catalog,
) -> Result<Published, GlueError> {
    let views = Views::new(glue, &catalog.database);
    let mut published = Published::default();
    let mut baseline = current_baseline(lake).await?;
    // Somebody may commit in between and be faster with the views, which this one must not undo.
    for _ in 0..ATTEMPTS {
        let wanted = sql::athena(catalog, baseline.as_ref());
        let wanted: Vec<Definition> = wanted
            .iter()
            .map(|view| Definition::new(&catalog.database, view))
            .collect();
        published.baseline = baseline.as_ref().map(|baseline| baseline.label.clone());
        published.unchanged = 0;
        views.make(&wanted, &mut published).await?;
        let now = current_baseline(lake).await?;
        if now == baseline {
            break;
        }
        baseline = now;
    }
    Ok(published)
}

/// Removes our views from a database.
///
/// # Errors
/// Glue cannot be reached; the same call does the rest.
pub async fn remove(glue: &Client, database: &str) -> Result<Published, GlueError> {
    let mut published = Published::default();
    let views = Views::new(glue, database);
    views.make(&[], &mut published).await?;
    Ok(published)
}
