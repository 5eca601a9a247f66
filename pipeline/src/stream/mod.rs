//! The stream Lambda: an event in, objects in the lake out.
//!
//! ```text
//! event ─ open_event ─ read_records ─┬─ Pipeline ─ batches ─ encode ─┬─ put all ─ Summary
//!                                    └─ rejects ─ JSON Lines ────────┘
//! ```
//!
//! [`handle`] is the whole of it, shared by the Lambda, `dynalake replay` and the tests: everything
//! is decoded first, then everything is stored, then the invocation succeeds. A record that cannot
//! be read is in quarantine, not a failure; an object that cannot be stored fails the invocation,
//! and its retry writes the same objects under the same keys.

mod context;
mod creation_time;
pub mod envelope;
mod error;
mod handler;
pub mod lambda;
pub(crate) mod summary;

pub use context::Context;
pub use error::StreamError;
pub use handler::handle;
pub use summary::{NAMESPACE, StoredObject, Summary};
