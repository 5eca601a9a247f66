//! The current state of a table: its baseline, and what has changed since.
//!
//! ```text
//! changes/<table>/dt=…   ─ runs ─ merge ─ one per key (s*, m) ─┐
//!                                                              ├─ rule ─ rows sorted by key
//! snapshot/<table>/export=… ─ runs ─ merge ────────────────────┘
//! ```
//!
//! Objects hold runs of rows sorted by key; runs are merged, in several passes where there are more
//! than memory allows, so that the size of a table is bounded by the disk alone. [`rule`] says which
//! row is a key's state; `schemas::views` says the same in SQL.

mod adapt;
mod error;
pub mod merge;
pub(crate) mod read;
pub(crate) mod rows;
pub mod rule;
pub mod runs;
mod schema;
mod state;
#[cfg(test)]
pub(crate) mod tests;

pub use error::CurrentError;
pub use read::{AsOf, CurrentReport, MergeOptions, TableState, current_rows};
