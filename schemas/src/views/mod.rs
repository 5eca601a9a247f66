//! The views of a lake, as SQL text: what a table holds now, and what happened to it.
//!
//! ```text
//! Catalog, Baseline ─► current   the rule: <table>, <table>_history
//!                      flat      <table>_flat, for tools that take plain columns only
//!                      dialect   how Athena and DuckDB spell it
//!                      duckdb    <table>_changes, <table>_snapshot, quarantine over files; lake.sql
//! ```
//!
//! Both engines get the same statements; only names, types and functions are spelled differently. So
//! what is executed on DuckDB is the rule that Athena executes.
//!
//! Views hold the current baseline as literals (its partition, the first day of changes that can
//! matter), so that engines read nothing else. They are replaced when another baseline is committed.

mod current;
mod dialect;
pub mod duckdb;
mod flat;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use chrono::DateTime;

use crate::load::UNMATCHED;
use crate::model::{Catalog, Entity};
use crate::tables::{flat_view, history_view};
use dialect::Dialect;
pub use duckdb::{DuckDbLake, S3Access};

/// M, in milliseconds: how far before the baseline's time a change may be dated and yet be newer than
/// the baseline. Exports are exact to the second at best, and stream times are floored seconds of
/// another clock.
pub const MARGIN_MS: i64 = 300_000;

const DAY_MS: i64 = 86_400_000;

/// The baseline that views read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    /// `YYYYMMDDTHHMMSSZ`: value of the partition `export` that holds its rows.
    pub label: String,
    /// Instant of its state, milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
}

impl Baseline {
    /// B − M, the time from which on a key's changes decide its state, as `YYYY-MM-DD HH:MM:SS.mmm`.
    fn changes_decide_from(&self) -> String {
        time_text(
            self.at_ms.saturating_sub(MARGIN_MS),
            "%Y-%m-%d %H:%M:%S%.3f",
        )
    }

    /// First `dt` whose changes can matter: one whole day before that of B − M. The newest change of a
    /// key may be dated before the one that makes its changes decide.
    fn first_day(&self) -> String {
        time_text(self.at_ms.saturating_sub(MARGIN_MS + DAY_MS), "%Y-%m-%d")
    }
}

/// Years outside 0 to 9999, which no partition has, become the nearest instant inside.
fn time_text(ms: i64, pattern: &str) -> String {
    let clamped = ms.clamp(-62_167_219_200_000, 253_402_300_799_999);
    let time = DateTime::from_timestamp_millis(clamped).unwrap_or_default();
    time.format(pattern).to_string()
}

/// A view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Name, without the database.
    pub name: String,
    /// What its rows are, for people.
    pub about: String,
    /// Columns in order.
    pub columns: Vec<ViewColumn>,
    /// The query, without a semicolon.
    pub query: String,
}

/// A column of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewColumn {
    /// Name.
    pub name: String,
    /// Glue type string.
    pub glue_type: String,
}

impl View {
    /// `CREATE OR REPLACE VIEW`, without a semicolon. Without `database` the name stands alone.
    pub fn create_statement(&self, database: Option<&str>) -> String {
        let name = dialect::identifier(&self.name);
        let name = match database {
            Some(database) => format!("{}.{name}", dialect::identifier(database)),
            None => name,
        };
        format!("CREATE OR REPLACE VIEW {name} AS\n{}", self.query)
    }
}

/// Athena's views over the tables of [`crate::ddl`], each after those that it reads. Without a
/// baseline, states come from changes alone.
///
/// `quarantine` is not among them: in Athena it is a table.
pub fn athena(catalog: &Catalog, baseline: Option<&Baseline>) -> Vec<View> {
    let dialect = Dialect::Athena {
        database: &catalog.database,
    };
    entities(catalog)
        .flat_map(|entity| entity_views(entity, baseline, dialect))
        .collect()
}

/// Athena's views as statements, each ended by `;` and headed by what it is. Athena runs one
/// statement per query.
pub fn athena_script(catalog: &Catalog, baseline: Option<&Baseline>) -> String {
    let mut text = String::new();
    for view in athena(catalog, baseline) {
        if !text.is_empty() {
            text.push('\n');
        }
        let statement = view.create_statement(Some(&catalog.database));
        // Writing to a String cannot fail.
        _ = writeln!(text, "-- {}\n{statement};", view.about);
    }
    text
}

/// In order of table name; `unmatched` last.
fn entities(catalog: &Catalog) -> impl Iterator<Item = &Entity> {
    let mut entities: Vec<&Entity> = catalog.entities.iter().collect();
    entities.sort_by_key(|entity| (entity.table == UNMATCHED, &entity.table));
    entities.into_iter()
}

/// The views that both engines have.
fn entity_views(entity: &Entity, baseline: Option<&Baseline>, dialect: Dialect<'_>) -> [View; 3] {
    let columns = current::columns(entity);
    let flat = flat::columns(entity, dialect);
    // A description may span lines; a comment must not.
    let about = entity.description.as_ref().unwrap_or(&entity.name);
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    [
        View {
            name: entity.table.clone(),
            about: format!("{about}: the table as it is now"),
            query: current::current(entity, baseline, dialect),
            columns: columns.clone(),
        },
        View {
            name: history_view(&entity.table),
            about: format!("{about}: one row per change"),
            query: current::history(entity, dialect),
            columns,
        },
        View {
            name: flat_view(&entity.table),
            about: format!("{about}: the table as it is now, without nested columns"),
            query: flat::query(entity, &flat, dialect),
            columns: flat.into_iter().map(|column| column.column).collect(),
        },
    ]
}
