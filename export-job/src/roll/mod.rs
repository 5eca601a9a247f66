//! Rolls a baseline forward: a complete baseline and contiguous windows of incremental exports become
//! a new, again complete baseline at the end of the last window.
//!
//! ```text
//! snapshot/<table>/export=<base>/…            ─┐
//! deltas/<table>/export=<from>-<to>/… (1st)    ├─ merge by key, newest window wins ─►
//! deltas/<table>/export=<from>-<to>/… (last)  ─┘     snapshot/<table>/export=<last to>/…
//! state/exports/rolled-<label>/plan.json             what is merged: base, windows, all their objects
//! state/exports/rolled-<label>/<table>.table.json    parts of a table that are whole in the lake
//! state/exports/rolled-<label>/complete.json         all tables are: `commit_export` may commit it
//! ```
//! Rows of the windows never are changes: they become the baseline's rows, with `_op = SNAPSHOT` and
//! `_source = incremental_export`.
//!
//! What comes out is a function of the plan, so that a roll that stopped anywhere, by a crash or because
//! its time was up, goes on with the next call and ends with the same bytes under the same keys. Memory
//! is bounded by the options; local disk holds copies of remote objects and spilled runs of one table.

mod chain;
mod newest;
mod options;
mod parts;
mod plan;
mod redecode;
mod report;
mod run;
mod table;

pub use chain::{Chain, Window, chain};
pub use options::{RollOptions, Unwatched, Watch};
pub use report::{RollReport, RolledTable};
pub use run::{roll, windows_of};

#[cfg(test)]
mod tests;
