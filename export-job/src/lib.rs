//! DynamoDB table exports to the same typed tables as the stream.
//!
//! ```text
//! source ─ manifest (summary, files; checksums) ─ locate ─┐
//!   per data file, in parallel:                           │
//!   data_file (MD5 + gunzip + lines) ─ format (Ion → JSON) ─ line ─ Pipeline ─ spool (Parquet on local disk)
//!        verified (MD5, item count)? ─ put ─ state record ─┘
//! all files done, totals equal? ─ complete.json ─ commit_export ─ state/baselines/<label>.json
//! ```
//!
//! Until `complete.json` is written an export is not whole, and until it is committed as a baseline no
//! reader takes it. What is in the lake
//! is a function of the export, the schemas and the plan that the first run wrote down, so an
//! interrupted conversion that is started again ends with the same bytes under the same keys.

mod commit;
pub mod convert;
mod data_file;
pub mod error;
pub mod export_writer;
mod file;
pub mod format;
#[cfg(feature = "worker")]
pub mod function;
#[cfg(feature = "worker")]
pub mod glue;
pub mod infer;
mod ion;
mod lake;
pub mod line;
mod locate;
pub mod manifest;
pub mod options;
pub mod report;
pub mod request;
pub mod roll;
pub mod source;
mod spool;
pub mod state;
pub mod steps;
mod threads;
mod worker;

pub use commit::commit_export;
pub use convert::convert;
pub use error::{ExportError, RefusalKind};
pub use locate::read_summary;
pub use options::{ConvertOptions, NoProgress, Progress};
pub use report::ConvertReport;
pub use source::Source;
