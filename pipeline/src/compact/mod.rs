//! Compaction: the many small change objects of a closed day become few large ones.
//!
//! ```text
//! changes/<table>/dt=<day>/<a>, <b>, <c> …          as the stream wrote them
//!      └─ merge, one row per change ─► changes/<table>/dt=<day>/compacted-<id>-<part>.parquet
//! state/compactions/<table>/<day>/<id>.json         which objects these stand for
//!      └─ a later run, after the grace time: the inputs are deleted, then the record
//! ```
//! Readers take one row per (`_pk`, `_sk`, `_stream`, `_seq`), so they find the same rows with the
//! inputs alone, with both, and with the outputs alone. Of rows that are the same change the one with
//! the greatest `_at` stays, since [`crate::current::rule`] needs the greatest `_at` of a key.
//!
//! There is no lock. Names and bytes of the outputs are a function of the inputs, so that whoever
//! does the same work writes the same objects, and every step may be the last one before a crash:
//! outputs before the record, inputs deleted before the record is. Two compactions that saw different
//! inputs leave rows twice, which readers do not see and the next compaction removes.
//!
//! The grace time is for those who read an input at the moment: readers that know the records
//! ([`live`]) no longer begin with a superseded object, others list it until it is deleted.

mod dedupe;
mod error;
mod expire;
pub mod lambda;
mod options;
mod plan;
mod record;
mod report;
mod rewrite;
mod run;

pub use error::CompactError;
pub use options::{CompactOptions, Unwatched, Watch};
pub use record::{CompactedObject, CompactionRecord, Live, live, records};
pub use report::{CompactReport, DayReport, ObjectCounts};
pub use run::compact;

#[cfg(test)]
mod tests;
