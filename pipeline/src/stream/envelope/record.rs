//! One record of a stream event.

use std::borrow::Cow;

use super::shape::record_list;
use super::{Change, Members, OpenEvent, StreamRecord, members, parse_arn, string};
use crate::record::{Operation, Reason, SequenceNumber};
use crate::reject::{ReasonCode, Reject};
use crate::stream::creation_time::creation_ms;
use crate::stream::error::StreamError;

/// The records of an event, in order.
///
/// # Errors
/// The event's records have no new images ([`StreamError::ViewType`]), or none is DynamoDB's.
pub fn read_records<'a>(event: &'a OpenEvent<'_>) -> Result<Vec<StreamRecord<'a>>, StreamError> {
    let raw = record_list(&event.records)?;
    raw.into_iter()
        .enumerate()
        .map(|(index, raw)| read_record(index, raw.get(), event.arn.as_deref()))
        .collect()
}

fn read_record<'a>(
    index: usize,
    payload: &'a str,
    event_arn: Option<&'a str>,
) -> Result<StreamRecord<'a>, StreamError> {
    let mut record = StreamRecord {
        payload,
        arn: event_arn.map(Cow::Borrowed),
        event_id: None,
        sequence_number: None,
        creation_ms: None,
        change: Err(malformed("the record is not an object", None)),
    };
    let Some(outer) = members(payload) else {
        return Ok(record);
    };
    record.arn = outer.text("eventSourceARN").or(record.arn);
    record.event_id = outer.text("eventID").filter(|id| !id.is_empty());
    let Some(inner) = outer.get("dynamodb").and_then(members) else {
        record.change = Err(malformed(
            "the record has no `dynamodb` object",
            Some("dynamodb"),
        ));
        return Ok(record);
    };
    if let Some(view_type) = refused_view_type(&inner) {
        return Err(StreamError::ViewType { index, view_type });
    }
    record.sequence_number = inner.get("SequenceNumber").map(plain_text);
    let time = inner.get("ApproximateCreationDateTime");
    record.creation_ms = time.and_then(|raw| creation_ms(&plain_text(raw)));
    record.change = if time.is_some() && record.creation_ms.is_none() {
        Err(malformed(
            "the creation time is not a number of seconds, milliseconds or microseconds",
            Some("dynamodb.ApproximateCreationDateTime"),
        ))
    } else {
        read_change(&record, &outer, &inner)
    };
    Ok(record)
}

/// The change of a record whose identity has been read.
fn read_change<'a>(
    record: &StreamRecord<'a>,
    outer: &Members<'a>,
    inner: &Members<'a>,
) -> Result<Change<'a>, Reject> {
    if let Some(source) = outer
        .text("eventSource")
        .filter(|source| source != "aws:dynamodb")
    {
        let known = if source.starts_with("aws:") {
            &*source
        } else {
            "another source"
        };
        let message = format!("the record is not one of DynamoDB but of {known}");
        return Err(malformed(message, Some("eventSource")));
    }
    let sequence_number = sequence_number(record.sequence_number.as_deref())?;
    if record.arn.as_deref().and_then(parse_arn).is_none() {
        return Err(malformed(
            "the record does not name its stream, as in \
             `arn:aws:dynamodb:<region>:<account>:table/<table>/stream/<label>`; Lambda's events \
             do, the answer of GetRecords does not",
            Some("eventSourceARN"),
        ));
    }
    let operation = match outer.text("eventName").as_deref() {
        Some("INSERT") => Operation::Insert,
        Some("MODIFY") => Operation::Modify,
        Some("REMOVE") => Operation::Remove,
        _ => {
            return Err(malformed(
                "expected INSERT, MODIFY or REMOVE",
                Some("eventName"),
            ));
        }
    };
    let keys = object(inner, "Keys")?
        .ok_or_else(|| malformed("the record has no key attributes", Some("Keys")))?;
    let new_image = object(inner, "NewImage")?;
    let old_image = object(inner, "OldImage")?;
    match operation {
        Operation::Remove if new_image.is_some() => {
            return Err(malformed(
                "a REMOVE has an item after the change",
                Some("NewImage"),
            ));
        }
        Operation::Insert | Operation::Modify if new_image.is_none() => {
            return Err(malformed(
                "the item after the change is missing; the stream must have the view type \
                 NEW_AND_OLD_IMAGES or NEW_IMAGE",
                Some("NewImage"),
            ));
        }
        _ => {}
    }
    let reason = (operation == Operation::Remove).then(|| delete_reason(outer));
    Ok(Change {
        operation,
        reason,
        sequence_number,
        keys,
        new_image,
        old_image,
    })
}

fn sequence_number(text: Option<&str>) -> Result<SequenceNumber, Reject> {
    let path = Some("dynamodb.SequenceNumber");
    let Some(text) = text else {
        return Err(malformed(
            "the record has no sequence number, so its place among the changes of its item is \
             unknown; records of Kinesis Data Streams for DynamoDB are like that: map the table's \
             own stream instead",
            path,
        ));
    };
    SequenceNumber::parse(text)
        .ok_or_else(|| malformed("the sequence number is not 1 to 40 digits", path))
}

/// A member that must be an object where it is given, as raw text.
fn object<'a>(inner: &Members<'a>, name: &'static str) -> Result<Option<&'a str>, Reject> {
    match inner.get(name) {
        Some(raw) if !raw.starts_with('{') => Err(malformed("expected an object", Some(name))),
        raw => Ok(raw),
    }
}

/// DynamoDB's time to live deletes as a service; anybody else is a user. Lambda's events have
/// `type` and `principalId`, the SDKs write `Type` and `PrincipalId`. Replicas of a global table do
/// not say, so a replicated expiry looks like a user's delete.
fn delete_reason(outer: &Members<'_>) -> Reason {
    let Some(identity) = outer.get("userIdentity").and_then(members) else {
        return Reason::User;
    };
    let either = |lower, upper| identity.text(lower).or_else(|| identity.text(upper));
    let service = either("type", "Type").as_deref() == Some("Service");
    let principal = either("principalId", "PrincipalId");
    if service && principal.as_deref() == Some("dynamodb.amazonaws.com") {
        Reason::Ttl
    } else {
        Reason::User
    }
}

/// The view types that leave out the item after the change. Unknown or absent ones go by the images.
fn refused_view_type(inner: &Members<'_>) -> Option<&'static str> {
    match inner.text("StreamViewType").as_deref() {
        Some("KEYS_ONLY") => Some("KEYS_ONLY"),
        Some("OLD_IMAGE") => Some("OLD_IMAGE"),
        _ => None,
    }
}

/// A string's text, or a number as it is written.
fn plain_text(raw: &str) -> Cow<'_, str> {
    string(raw).unwrap_or(Cow::Borrowed(raw))
}

fn malformed(message: impl Into<String>, path: Option<&str>) -> Reject {
    let reject = Reject::new(ReasonCode::MalformedRecord, message);
    match path {
        Some(path) => reject.at(path),
        None => reject,
    }
}
