//! One change as the pipeline sees it, whoever produced it.
//!
//! A [`ChangeRecord`] borrows the raw DynamoDB JSON of its images; nothing in it is a default that
//! stands for "absent". The stream and the exports meet here: from here on there is one code path.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The item was created.
    Insert,
    /// The item was changed or overwritten.
    Modify,
    /// The item was deleted.
    Remove,
    /// The item as an export saw it.
    Snapshot,
}

impl Operation {
    /// The text in `_op`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Modify => "MODIFY",
            Self::Remove => "REMOVE",
            Self::Snapshot => "SNAPSHOT",
        }
    }
}

/// Why an item left its table (`_reason` of a REMOVE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Somebody deleted it.
    User,
    /// DynamoDB's time to live did.
    Ttl,
    /// It lives on as another entity.
    Moved,
}

impl Reason {
    /// The text in `_reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Ttl => "ttl",
            Self::Moved => "moved",
        }
    }
}

/// Which road a row took into the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The table's stream.
    Stream,
    /// A full export.
    FullExport,
    /// An incremental export.
    IncrementalExport,
    /// A replay by hand (`dynalake replay`, `quarantine replay`).
    Replay,
}

impl Origin {
    /// The text in `_source`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::FullExport => "full_export",
            Self::IncrementalExport => "incremental_export",
            Self::Replay => "replay",
        }
    }
}

/// Position in a stream: 1 to 40 decimal digits, held left-padded with zeros to 40, so that text
/// order is numeric order.
///
/// The Streams API gives 21 to 40 digits, which overflows `u128` (39).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber([u8; 40]);

impl SequenceNumber {
    /// Parses 1 to 40 ASCII digits; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.is_empty() || digits.len() > 40 || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut padded = [b'0'; 40];
        padded.get_mut(40 - digits.len()..)?.copy_from_slice(digits);
        Some(Self(padded))
    }

    /// The 40 digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One change of one item, or one item of an export.
///
/// Images and keys are the raw JSON text of a DynamoDB JSON object (`{"PK":{"S":"USER#1"},…}`),
/// not yet validated beyond being one JSON value.
#[derive(Debug, Clone, Copy)]
pub struct ChangeRecord<'a> {
    /// What happened.
    pub operation: Operation,
    /// For a REMOVE: [`Reason::User`] or [`Reason::Ttl`]. `Moved` is the router's to say.
    pub reason: Option<Reason>,
    /// Change time, or an export's time: milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// Stream label (`2026-05-01T00:00:00.000`), the part of the stream's ARN after `/stream/`.
    pub stream: Option<&'a str>,
    /// Position in the stream; `None` for exports.
    pub sequence_number: Option<SequenceNumber>,
    /// The record's `eventID`.
    pub event_id: Option<&'a str>,
    /// Which road it took.
    pub origin: Origin,
    /// The key attributes. `None` for an export's item, whose keys are in the image.
    pub keys: Option<&'a [u8]>,
    /// The item after the change. `None` is absent, which is not the same as `{}`.
    pub new_image: Option<&'a [u8]>,
    /// The item before the change.
    pub old_image: Option<&'a [u8]>,
    /// The whole record as it was received: what quarantine keeps.
    pub payload: &'a [u8],
}
