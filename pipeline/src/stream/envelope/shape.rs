//! What kind of JSON an event is, and where its records are.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Members, members};
use crate::stream::error::StreamError;

/// How to read events that were given up but still are in the stream.
const METADATA_ONLY: &str = "this is Lambda's report of a batch it gave up, as an SQS queue or SNS \
     topic gets it: it names sequence numbers but holds no records. Read them from the stream within \
     24 hours, and make an S3 bucket the on-failure destination, whose reports hold the event";

/// An event whose records have been found.
#[derive(Debug, Clone)]
pub struct OpenEvent<'a> {
    /// JSON text of the list of records.
    pub records: Cow<'a, str>,
    /// The stream's ARN where the event says it once for all records.
    pub arn: Option<Cow<'a, str>>,
}

/// Finds the records of an event: of a batch of a DynamoDB stream (with or without a tumbling
/// window), or of an S3 on-failure record, whose `payload` is the event as a JSON string.
///
/// # Errors
/// Anything else, with what it seems to be and what to do.
pub fn open_event(event: &[u8]) -> Result<OpenEvent<'_>, StreamError> {
    let text = std::str::from_utf8(event).map_err(|error| {
        refuse(format!(
            "the event is not UTF-8 text at byte {}",
            error.valid_up_to()
        ))
    })?;
    let event = parse(text)?;
    match event.get("payload").filter(|_| !event.has("Records")) {
        Some(payload) => open_failure(payload, &event),
        None => Ok(OpenEvent {
            records: Cow::Borrowed(records(&event)?),
            arn: event.text("eventSourceARN"),
        }),
    }
}

/// The event within an S3 on-failure record.
fn open_failure<'a>(payload: &'a str, report: &Members<'a>) -> Result<OpenEvent<'a>, StreamError> {
    let batch = report.get("DDBStreamBatchInfo").and_then(members);
    let arn = batch.and_then(|batch| batch.text("streamArn"));
    if let Some(text) = super::string(payload) {
        let records = records(&parse(&text)?)?.to_owned();
        return Ok(OpenEvent {
            records: Cow::Owned(records),
            arn,
        });
    }
    Ok(OpenEvent {
        records: Cow::Borrowed(records(&parse(payload)?)?),
        arn,
    })
}

fn parse(text: &str) -> Result<Members<'_>, StreamError> {
    if text.trim_start().starts_with('[') {
        return Err(refuse(
            "the event is a list, as EventBridge Pipes sends it; an event of a DynamoDB stream is an \
             object with `Records`: wrap the list as {\"Records\": [...]}",
        ));
    }
    serde_json::from_str(text).map_err(|error| {
        // serde's own sentence could repeat what it found.
        let what = match error.classify() {
            serde_json::error::Category::Eof => "ends too early",
            serde_json::error::Category::Data => "is not an object",
            _ => "is not JSON",
        };
        let (line, column) = (error.line(), error.column());
        refuse(format!("the event {what} (line {line}, column {column})"))
    })
}

/// The raw list of records of an event.
fn records<'a>(event: &Members<'a>) -> Result<&'a str, StreamError> {
    if event.has("NextShardIterator") {
        return Err(refuse(
            "this is an answer of GetRecords, whose records do not name their stream; map the stream \
             to the function, or add `eventSourceARN` to each record and leave out \
             `NextShardIterator`",
        ));
    }
    match event.get("Records") {
        Some(raw) if raw.starts_with('[') => Ok(raw),
        Some(_) => Err(refuse("`Records` is not a list")),
        // The last invocation of a tumbling window may come without records.
        None if event.has("Records") || event.has("window") => Ok("[]"),
        None if event.has("DDBStreamBatchInfo") => Err(refuse(METADATA_ONLY)),
        None if event.has("KinesisBatchInfo") || event.has("kinesis") => Err(kinesis()),
        None if event.has("dynamodb") => Err(refuse(
            "this is a single record; an event is an object with `Records`: wrap it as \
             {\"Records\": [...]}. A record without `SequenceNumber` comes from Kinesis Data \
             Streams for DynamoDB and cannot be ordered",
        )),
        None if event.has("Item") => Err(refuse(
            "this is a line of an export; give the export's folder to `dynalake export convert`",
        )),
        None => Err(refuse(
            "the event has no `Records`; expected one of a DynamoDB stream",
        )),
    }
}

/// The records of a list, unless none of them is DynamoDB's.
pub(super) fn record_list(records: &str) -> Result<Vec<&RawValue>, StreamError> {
    let records: Vec<&RawValue> =
        serde_json::from_str(records).map_err(|_| refuse("`Records` is not a list of records"))?;
    let Some(source) = records
        .first()
        .and_then(|record| other_source(record.get()))
    else {
        return Ok(records);
    };
    if records
        .iter()
        .any(|record| other_source(record.get()).is_none())
    {
        return Ok(records);
    }
    if source == "aws:kinesis" {
        return Err(kinesis());
    }
    Err(refuse(format!(
        "the records come from `{source}`; expected the event source mapping of a DynamoDB stream \
         (`aws:dynamodb`)"
    )))
}

/// The AWS source of a record that is not DynamoDB's.
fn other_source(record: &str) -> Option<String> {
    let record = members(record)?;
    if record.has("kinesis") {
        return Some("aws:kinesis".to_owned());
    }
    // SNS spells it with a capital letter.
    let source = record
        .text("eventSource")
        .or_else(|| record.text("EventSource"))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-');
    let named = source.starts_with("aws:") && source.len() < 64 && source.chars().all(is_name);
    (source != "aws:dynamodb" && named).then(|| source.into_owned())
}

fn kinesis() -> StreamError {
    refuse(
        "the records come from Kinesis: they have no sequence numbers of DynamoDB, so the order of an \
         item's changes is unknown; map the table's own stream to this function",
    )
}

fn refuse(message: impl Into<String>) -> StreamError {
    StreamError::Event(message.into())
}
