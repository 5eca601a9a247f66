//! From a DynamoDB change record to a Parquet object: record, route, decode, batch, encode, store.
//!
//! ```text
//! stream event ─ envelope ─┐
//! export line ─────────────┴─ ChangeRecord ─ Pipeline(route → decode → batch) ─ encode ─ store
//!                                   └─ Reject ─ quarantine ─ store
//! ```
//!
//! Everything before [`store`] is synchronous and pure: no clock, randomness or environment.

pub mod audit;
pub mod baseline;
mod batch;
pub mod compact;
mod counts;
pub mod current;
mod decode;
pub mod encode;
pub mod json;
pub mod kept_schemas;
pub mod lambda;
pub mod layout;
pub mod number;
pub mod pipeline;
pub mod publish;
pub mod quarantine;
pub mod rebuild;
pub mod record;
pub mod reject;
pub mod report;
mod route;
pub mod shell;
pub mod store;
pub mod stream;
pub mod time;
