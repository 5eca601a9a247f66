//! Publishes a lake's views, which hold its current baseline as literals: `lake.sql`, for DuckDB.
//!
//! To be called after each commit of a baseline and after each change of the schemas. Calling it again
//! writes the same text.

use dynalake_schemas::Catalog;
use dynalake_schemas::views::{Baseline, DuckDbLake, duckdb};

use crate::baseline::{self, BaselineError};
use crate::store::Store;

/// Key of the script in a lake.
pub const LAKE_SQL: &str = "lake.sql";

/// Times that the script is written when baselines are committed meanwhile.
const ATTEMPTS: usize = 5;

/// The baseline that views of this lake read now; `None` when none is committed.
///
/// # Errors
/// A record cannot be read.
pub async fn current_baseline(store: &Store) -> Result<Option<Baseline>, BaselineError> {
    let record = baseline::current(store, None).await?;
    Ok(record.map(|record| Baseline {
        label: record.label,
        at_ms: record.at_ms,
    }))
}

/// Writes `lake.sql` into the lake, and gives the baseline that its views read.
///
/// # Errors
/// A baseline's record cannot be read, or the script cannot be written.
pub async fn lake_sql(
    store: &Store,
    catalog: &Catalog,
    lake: &DuckDbLake,
) -> Result<Option<Baseline>, BaselineError> {
    let mut baseline = current_baseline(store).await?;
    // Somebody may commit in between and be faster with the script, which this one must not undo.
    for _ in 0..ATTEMPTS {
        let script = duckdb::script(catalog, baseline.as_ref(), lake);
        store.put(LAKE_SQL, script.into()).await?;
        let now = current_baseline(store).await?;
        if now == baseline {
            break;
        }
        baseline = now;
    }
    Ok(baseline)
}

/// Writes `lake.sql` anew where the lake has one; `false` where it has none.
///
/// # Errors
/// As of [`lake_sql`].
pub async fn refresh_lake_sql(
    store: &Store,
    catalog: &Catalog,
    lake: &DuckDbLake,
) -> Result<bool, BaselineError> {
    if store.head(LAKE_SQL).await?.is_none() {
        return Ok(false);
    }
    lake_sql(store, catalog, lake).await?;
    Ok(true)
}
