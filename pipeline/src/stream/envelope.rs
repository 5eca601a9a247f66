//! A Lambda event of a DynamoDB stream, cut into records without a tree.
//!
//! In: the event's JSON, or the record that Lambda leaves in S3 for a batch it gave up. Out: one
//! [`StreamRecord`] per record, borrowing its images as raw text; or, for the whole event, a
//! [`StreamError`] when it is not one of a DynamoDB stream at all.
//!
//! - Each record is read on its own: a malformed one becomes a [`Reject`] next to its payload.
//! - "Absent" and `null` are the same, and never the same as `{}`.
//! - Unknown members are passed over; of a member given twice the last one counts.
//! - Values of items are not looked at here; half a surrogate pair in one of them must not fail its
//!   neighbours.
//!
//! We do not use `aws_lambda_events` for this: it turns an absent creation time into 1970, an absent
//! image into an empty one, and fails the batch for one record. It is the oracle of the tests.

mod record;
mod shape;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::record::{ChangeRecord, Operation, Origin, Reason, SequenceNumber};
use crate::reject::Reject;

pub use record::read_records;
pub use shape::{OpenEvent, open_event};

/// One record of an event, well formed or not.
#[derive(Clone)]
pub struct StreamRecord<'a> {
    /// The record as it stands in the event.
    pub payload: &'a str,
    /// `eventSourceARN`.
    pub arn: Option<Cow<'a, str>>,
    /// `eventID`.
    pub event_id: Option<Cow<'a, str>>,
    /// `SequenceNumber` as it is written.
    pub sequence_number: Option<Cow<'a, str>>,
    /// Creation time: milliseconds since 1970-01-01 UTC.
    pub creation_ms: Option<i64>,
    /// The change, or why there is none.
    pub change: Result<Change<'a>, Reject>,
}

impl StreamRecord<'_> {
    /// Name of the table in the ARN.
    pub fn table(&self) -> Option<&str> {
        Some(parse_arn(self.arn.as_deref()?)?.0)
    }

    /// The change as the pipeline takes it. `at` is the creation time, or what stands for it.
    pub fn change_record(&self, at: i64, origin: Origin) -> Result<ChangeRecord<'_>, Reject> {
        let change = self.change.as_ref().map_err(Clone::clone)?;
        Ok(ChangeRecord {
            operation: change.operation,
            reason: change.reason,
            at,
            stream: self
                .arn
                .as_deref()
                .and_then(parse_arn)
                .map(|(_, label)| label),
            sequence_number: Some(change.sequence_number),
            event_id: self.event_id.as_deref(),
            origin,
            keys: Some(change.keys.as_bytes()),
            new_image: change.new_image.map(str::as_bytes),
            old_image: change.old_image.map(str::as_bytes),
            payload: self.payload.as_bytes(),
        })
    }
}

/// The part of a record that makes a row.
#[derive(Clone)]
pub struct Change<'a> {
    /// `eventName`.
    pub operation: Operation,
    /// Who deleted; only of a REMOVE.
    pub reason: Option<Reason>,
    /// Position in the stream.
    pub sequence_number: SequenceNumber,
    /// Raw key attributes.
    pub keys: &'a str,
    /// Raw item after the change.
    pub new_image: Option<&'a str>,
    /// Raw item before the change.
    pub old_image: Option<&'a str>,
}

/// Table name and stream label of a stream's ARN
/// (`arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-11-01T00:00:00.000`).
pub fn parse_arn(arn: &str) -> Option<(&str, &str)> {
    let mut parts = arn.splitn(6, ':');
    if parts.next() != Some("arn") || parts.nth(1) != Some("dynamodb") {
        return None;
    }
    let (table, label) = parts
        .nth(2)?
        .strip_prefix("table/")?
        .split_once("/stream/")?;
    (!table.is_empty() && !label.is_empty() && !table.contains('/')).then_some((table, label))
}

/// The members of a JSON object as raw text, in order.
struct Members<'a>(Vec<(Name<'a>, &'a RawValue)>);

/// A member's name, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Members<'a> {
    /// Raw text of a member; `None` when it is absent or `null`.
    fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().rev().find(|(Name(theirs), _)| theirs == name);
        found
            .map(|(_, value)| value.get())
            .filter(|text| *text != "null")
    }

    /// Whether a member is there at all.
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(Name(theirs), _)| theirs == name)
    }

    /// Text of a member that is a string; `None` when it is absent or something else.
    fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.get(name)?)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(10);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// The members of an object; `None` for any other JSON.
fn members(raw: &str) -> Option<Members<'_>> {
    serde_json::from_str(raw).ok()
}

/// The text of a JSON string; `None` for any other JSON.
fn string(raw: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw).ok().map(|Name(text)| text)
}

#[cfg(test)]
mod tests;
