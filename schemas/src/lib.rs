//! The entity language of dynalake.
//!
//! A folder `schemas/<database>/` holds `lake.toml` (the source table) and one TOML file per entity
//! type. [`Catalog`] is that folder, read and checked: which items belong to which entity
//! ([`Catalog::route`]), which typed columns an entity has ([`Entity::columns`]) and what they are
//! called in Arrow ([`Entity::arrow_schema`]) and in Athena.
//!
//! No I/O beyond reading and writing the schema folder, no async, no AWS.

pub mod model;

pub use model::*;
