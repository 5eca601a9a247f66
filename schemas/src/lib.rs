//! The entity language of dynalake.
//!
//! A folder `schemas/<database>/` holds `lake.toml` (the source table) and one TOML file per entity
//! type. [`Catalog`] is that folder, read and checked: which items belong to which entity
//! ([`Catalog::route`]), which typed columns an entity has ([`Entity::columns`]) and what they are
//! called in Arrow ([`Entity::arrow_schema`]) and in Athena ([`athena::athena_type`]).
//!
//! ```text
//! lake.toml, *.toml ─► load (source, lake, entity: matcher, columns, formats)
//!                        ├─► types, template          text to types and templates
//!                        ├─► tables, overlap          names, matching order
//!                        ├─► sensitive                what is hidden here and clear there
//! lake.lock ────────────►└─► lock, evolution          field ids, what may change
//!                      Catalog ─► matching, arrow_schema, ddl, views, show
//! ```
//!
//! No I/O beyond reading and writing the schema folder, no async, no AWS.

pub mod arrow_schema;
pub mod athena;
pub mod cloudformation;
pub mod ddl;
mod evolution;
#[cfg(test)]
mod fixture;
mod load;
mod lock;
mod matching;
pub mod model;
pub mod naming;
mod overlap;
mod problem;
pub mod row_columns;
mod sensitive;
pub mod show;
pub mod tables;
pub mod template;
#[cfg(test)]
mod tests;
pub mod types;
pub mod views;

pub use load::{Checked, LAKE_FILE, LOCK_FILE, QUARANTINE, UNMATCHED, check};
pub use lock::{Locked, lock};
pub use model::*;
pub use problem::{Problem, Problems, Severity};
