//! Asking DynamoDB for exports: what to ask for, and what is known of it while it runs.
//!
//! ```text
//! PITR range, last baseline, now ─ plan ─► Wanted… ─► RequestRecord (state/requests/<id>.json)
//!                              RequestRecord, now ─ next ─► Step ─ caller asks AWS ─► Seen ─ saw ─┐
//!                                         ▲──────────────────────────────────────────────────────┘
//! ```
//! Everything here is pure but for [`store`], which keeps the records in the lake. The record is
//! written before anything is sent, and holds the client tokens: whoever goes on with it sends the
//! same request again, which for DynamoDB is one request.

mod error;
mod estimate;
mod plan;
mod record;
pub mod store;
mod table_arn;
mod token;
mod window;

pub use error::{Refusal, RequestError};
pub use estimate::{Pauses, usual_duration_ms};
pub use plan::{Recovery, Stretch, plan_full, plan_incremental};
pub use record::{ExportRecord, ExportStatus, Failed, RequestRecord, Seen, Stage, Step};
pub use table_arn::TableArn;
pub use token::client_token;
pub use window::{MAX_WINDOW_MS, MIN_WINDOW_MS, SETTLE_MS, Window, split};

use serde::{Deserialize, Serialize};

use crate::format::DataFormat;
pub use crate::manifest::ExportView;

/// Where an export goes, and how it is written. Times are not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The source table's ARN.
    pub table_arn: String,
    /// Bucket.
    pub bucket: String,
    /// What keys in the bucket begin with, without slashes at its ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Account that owns the bucket; needed where that is not the table's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_owner: Option<String>,
    /// KMS key (id, ARN or alias) that encrypts the export; else the bucket's default encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kms_key: Option<String>,
    /// Format of the data files.
    pub format: DataFormat,
}

/// One export that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Wanted {
    /// The whole table.
    Full {
        /// As it was at this instant: milliseconds since 1970-01-01 UTC, whole seconds.
        at_ms: i64,
    },
    /// What changed within a window.
    Incremental {
        /// The window.
        #[serde(flatten)]
        window: Window,
        /// What is told of each change.
        view: ExportView,
    },
}

#[cfg(test)]
mod tests;
