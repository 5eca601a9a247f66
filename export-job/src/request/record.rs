//! What the lake knows of a request, and what is to be done next.

use dynalake_pipeline::layout;
use serde::{Deserialize, Serialize};

use super::{Target, Wanted, client_token};

/// Form of [`RequestRecord`] that this software writes and reads.
pub(super) const VERSION: u32 = 1;

/// For how long DynamoDB takes the same token for the same request: 8 hours after the first request
/// is done (API reference), an hour less to be on the safe side.
const TOKEN_MS: i64 = 7 * 3_600_000;

/// `state/requests/<id>.json`: exports that were asked for together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Form of this record.
    pub version: u32,
    /// `YYYYMMDDTHHMMSSZ-` and 8 hex digits.
    pub id: String,
    /// When it was made, milliseconds since 1970-01-01 UTC.
    pub requested_at_ms: i64,
    /// Where the exports go.
    pub target: Target,
    /// One for a full export; windows in their order.
    pub exports: Vec<ExportRecord>,
    /// Every row is in the lake.
    pub converted: bool,
    /// And readers take them.
    pub committed: bool,
}

/// One export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRecord {
    /// What is asked for.
    pub wanted: Wanted,
    /// How often it was asked for before in vain.
    pub attempt: u32,
    /// Token under which it is asked for.
    pub client_token: String,
    /// When it was first asked for under this token, or was about to be, milliseconds since
    /// 1970-01-01 UTC.
    pub asked_at_ms: i64,
    /// State, as far as known.
    pub status: ExportStatus,
    /// ARN; none until DynamoDB has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_arn: Option<String>,
    /// When DynamoDB began it, milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<i64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<i64>,
    /// Items in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// Size that is billed, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_bytes: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failed>,
}

/// State of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportStatus {
    /// About to be asked for; perhaps DynamoDB knows it already.
    Requested,
    /// Runs.
    InProgress,
    /// Whole in its bucket.
    Completed,
    /// Ended otherwise, or was refused.
    Failed,
}

/// Why an export failed, in DynamoDB's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Code, such as `S3AccessDenied`.
    pub code: String,
    /// Sentence.
    pub message: String,
}

/// What DynamoDB says of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its ARN.
    pub export_arn: String,
    /// Its state.
    pub status: ExportStatus,
    /// When it began, milliseconds since 1970-01-01 UTC.
    pub start_ms: Option<i64>,
    /// When it ended.
    pub end_ms: Option<i64>,
    /// Items.
    pub items: Option<u64>,
    /// Billed bytes.
    pub billed_bytes: Option<u64>,
    /// Why it failed.
    pub failure: Option<Failed>,
}

/// What is to be done next. Numbers are places in [`RequestRecord::exports`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ask DynamoDB for this export under its token.
    Send(usize),
    /// It may have been asked for so long ago that the token is forgotten: look whether there is
    /// an export with it ([`RequestRecord::saw`]), else ask anew ([`RequestRecord::ask_anew`]).
    Find(usize),
    /// Look how far these are.
    Look(Vec<usize>),
    /// These failed.
    Failed(Vec<usize>),
    /// All are there: convert them.
    Convert,
    /// Nothing.
    Done,
}

/// Where a request stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Not all exports have been asked for, as far as is known.
    Requested,
    /// DynamoDB works on it.
    Exporting,
    /// An export failed.
    Failed,
    /// All exports are whole, the lake has them not, or not all.
    Exported,
    /// In the lake, but not committed, as was asked for.
    Converted,
    /// In the lake, and readers take it.
    Committed,
}

impl RequestRecord {
    /// A new request, of which nothing has been sent.
    pub fn new(target: Target, wanted: &[Wanted], now_ms: i64) -> Self {
        let exports: Vec<ExportRecord> = wanted
            .iter()
            .map(|wanted| ExportRecord {
                wanted: *wanted,
                attempt: 0,
                client_token: client_token(&target, wanted, 0),
                asked_at_ms: now_ms,
                status: ExportStatus::Requested,
                export_arn: None,
                start_ms: None,
                end_ms: None,
                items: None,
                billed_bytes: None,
                failure: None,
            })
            .collect();
        let tail = exports
            .first()
            .and_then(|export| export.client_token.get(9..17))
            .unwrap_or("00000000");
        let label = layout::export_label(now_ms).unwrap_or_else(|| now_ms.to_string());
        Self {
            version: VERSION,
            id: format!("{label}-{tail}"),
            requested_at_ms: now_ms,
            target,
            exports,
            converted: false,
            committed: false,
        }
    }

    /// What is to be done next.
    pub fn next(&self, now_ms: i64) -> Step {
        if self.converted {
            return Step::Done;
        }
        let all = |status: ExportStatus| -> Vec<usize> {
            let of = |(_, export): &(usize, &ExportRecord)| export.status == status;
            let numbered = self.exports.iter().enumerate();
            numbered.filter(of).map(|(index, _)| index).collect()
        };
        let failed = all(ExportStatus::Failed);
        if !failed.is_empty() {
            return Step::Failed(failed);
        }
        for (index, export) in self.exports.iter().enumerate() {
            if export.status == ExportStatus::Requested {
                return if now_ms.saturating_sub(export.asked_at_ms) < TOKEN_MS {
                    Step::Send(index)
                } else {
                    Step::Find(index)
                };
            }
        }
        let running = all(ExportStatus::InProgress);
        if running.is_empty() {
            Step::Convert
        } else {
            Step::Look(running)
        }
    }

    /// Notes what DynamoDB says of an export; whether that is news.
    pub fn saw(&mut self, index: usize, seen: Seen) -> bool {
        let Some(export) = self.exports.get_mut(index) else {
            return false;
        };
        let before = export.clone();
        export.export_arn = Some(seen.export_arn);
        export.status = seen.status;
        export.start_ms = seen.start_ms.or(export.start_ms);
        export.end_ms = seen.end_ms.or(export.end_ms);
        export.items = seen.items.or(export.items);
        export.billed_bytes = seen.billed_bytes.or(export.billed_bytes);
        export.failure = seen.failure;
        *export != before
    }

    /// Notes that DynamoDB refused to make an export.
    pub fn refused(&mut self, index: usize, failure: Failed) {
        if let Some(export) = self.exports.get_mut(index) {
            export.status = ExportStatus::Failed;
            export.failure = Some(failure);
        }
    }

    /// Asks for an export under another token, as if for the first time.
    pub fn ask_anew(&mut self, index: usize, now_ms: i64) {
        let target = &self.target;
        if let Some(export) = self.exports.get_mut(index) {
            let attempt = export.attempt + 1;
            *export = ExportRecord {
                wanted: export.wanted,
                attempt,
                client_token: client_token(target, &export.wanted, attempt),
                asked_at_ms: now_ms,
                status: ExportStatus::Requested,
                export_arn: None,
                start_ms: None,
                end_ms: None,
                items: None,
                billed_bytes: None,
                failure: None,
            };
        }
    }

    /// Asks again for what failed; how many that are.
    pub fn retry_failed(&mut self, now_ms: i64) -> usize {
        let of = |(_, export): &(usize, &ExportRecord)| export.status == ExportStatus::Failed;
        let numbered = self.exports.iter().enumerate();
        let failed: Vec<usize> = numbered.filter(of).map(|(index, _)| index).collect();
        for index in &failed {
            self.ask_anew(*index, now_ms);
        }
        failed.len()
    }

    /// Whether DynamoDB has made any export for it.
    pub fn has_exports(&self) -> bool {
        let known = |export: &ExportRecord| export.export_arn.is_some();
        self.exports.iter().any(known)
    }

    /// Where it stands.
    pub fn stage(&self) -> Stage {
        let any = |status| self.exports.iter().any(|export| export.status == status);
        if self.committed {
            Stage::Committed
        } else if self.converted {
            Stage::Converted
        } else if any(ExportStatus::Failed) {
            Stage::Failed
        } else if any(ExportStatus::Requested) {
            Stage::Requested
        } else if any(ExportStatus::InProgress) {
            Stage::Exporting
        } else {
            Stage::Exported
        }
    }

    /// Addresses of the exports: `s3://bucket/[prefix/]AWSDynamoDB/<export id>/`.
    pub fn sources(&self) -> Vec<String> {
        let sources = self.exports.iter().filter_map(|export| {
            let id = export.export_id()?;
            Some(match &self.target.prefix {
                Some(prefix) => format!("s3://{}/{prefix}/AWSDynamoDB/{id}/", self.target.bucket),
                None => format!("s3://{}/AWSDynamoDB/{id}/", self.target.bucket),
            })
        });
        sources.collect()
    }
}

impl ExportRecord {
    /// Last part of the ARN.
    pub fn export_id(&self) -> Option<&str> {
        Some(self.export_arn.as_ref()?.rsplit_once("/export/")?.1)
    }
}
