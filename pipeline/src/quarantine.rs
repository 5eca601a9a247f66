//! Records that could not become rows: kept whole, with the reason, to be read and replayed.
//!
//! In: a [`Reject`] and the record it is about. Out: JSON Lines, one object per record, in the order
//! of the records, always with the same members; [`from_jsonl`] gives exactly the same entries back.
//!
//! The payload is kept as it was received, clear values of transformed columns included: it is the
//! only copy. Nothing else in an entry is a value of the item, and `Debug` does not show it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::record::Origin;
use crate::reject::{ReasonCode, Reject};

/// One quarantined record.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Line", into = "Line")]
pub struct QuarantineEntry {
    /// Reason code.
    pub reason: ReasonCode,
    /// Entity that the record was routed to, when it got that far.
    pub entity: Option<String>,
    /// Attribute path, e.g. `NewImage.lines[2].qty`.
    pub path: Option<String>,
    /// What is wrong and what was expected.
    pub message: String,
    /// Which road the record took.
    pub source: Origin,
    /// Where it can be found again.
    pub origin: RecordOrigin,
    /// Change time, or the export's time, or where a record has none the time of its batch:
    /// milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// The record's `eventID`.
    pub event_id: Option<String>,
    /// The record's sequence number, as it was received.
    pub sequence_number: Option<String>,
    /// The whole record as it was received.
    pub payload: Vec<u8>,
}

impl QuarantineEntry {
    /// An entry for a record that has neither an event id nor a sequence number.
    pub fn new(
        reject: Reject,
        source: Origin,
        origin: RecordOrigin,
        at: i64,
        payload: Vec<u8>,
    ) -> Self {
        Self {
            reason: reject.code,
            entity: reject.entity,
            path: reject.path,
            message: reject.message,
            source,
            origin,
            at,
            event_id: None,
            sequence_number: None,
            payload,
        }
    }
}

impl fmt::Debug for QuarantineEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuarantineEntry")
            .field("reason", &self.reason)
            .field("entity", &self.entity)
            .field("path", &self.path)
            .field("message", &self.message)
            .field("source", &self.source)
            .field("origin", &self.origin)
            .field("at", &self.at)
            .field("event_id", &self.event_id)
            .field("sequence_number", &self.sequence_number)
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .finish()
    }
}

/// Where a quarantined record can be found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordOrigin {
    /// A record of a stream.
    Stream {
        /// The stream's ARN (`eventSourceARN`); `None` when the record does not say.
        arn: Option<String>,
    },
    /// A line of an export.
    Export {
        /// The export's id (`01795000000000-0a1b2c3d`).
        export_id: String,
        /// Name of the data file, without its folder.
        data_file: String,
        /// Line, from 1.
        line: u64,
    },
}

impl fmt::Display for RecordOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream { arn } => f.write_str(arn.as_deref().unwrap_or("unknown stream")),
            Self::Export {
                export_id,
                data_file,
                line,
            } => {
                write!(f, "export {export_id}, {data_file}, line {line}")
            }
        }
    }
}

/// A file of quarantined records could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not a quarantined record: {message}")]
pub struct QuarantineError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong; holds nothing of the line.
    pub message: String,
}

/// Entries as JSON Lines, in the order given.
pub fn to_jsonl(entries: &[QuarantineEntry]) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in entries {
        // An entry is plain text and numbers, so serialising it does not fail; were it to, the
        // reason would be kept rather than nothing.
        let line = serde_json::to_vec(entry).unwrap_or_else(|error| {
            format!("{{\"unserialisable\":{:?}}}", error.to_string()).into()
        });
        text.extend_from_slice(&line);
        text.push(b'\n');
    }
    text
}

/// The entries of JSON Lines written by [`to_jsonl`]; blank lines are passed over.
///
/// # Errors
/// The first line that is not an entry.
pub fn from_jsonl(text: &[u8]) -> Result<Vec<QuarantineEntry>, QuarantineError> {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace))
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|error| QuarantineError {
                line: index + 1,
                // serde's own sentence would repeat what it found.
                message: format!(
                    "{} at column {}",
                    match error.classify() {
                        serde_json::error::Category::Data =>
                            "a member is missing or of another type",
                        serde_json::error::Category::Eof => "the line ends too early",
                        _ => "not JSON",
                    },
                    error.column()
                ),
            })
        })
        .collect()
}

/// An entry as it stands in the file.
#[derive(Serialize, Deserialize)]
struct Line {
    reason: ReasonCode,
    entity: Option<String>,
    path: Option<String>,
    message: String,
    source: Origin,
    origin: RecordOrigin,
    at: i64,
    event_id: Option<String>,
    sequence_number: Option<String>,
    /// The payload where it is UTF-8.
    payload: Option<String>,
    /// The payload where it is not.
    payload_base64: Option<String>,
}

impl From<QuarantineEntry> for Line {
    fn from(entry: QuarantineEntry) -> Self {
        let (payload, payload_base64) = match String::from_utf8(entry.payload) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
        };
        Self {
            reason: entry.reason,
            entity: entry.entity,
            path: entry.path,
            message: entry.message,
            source: entry.source,
            origin: entry.origin,
            at: entry.at,
            event_id: entry.event_id,
            sequence_number: entry.sequence_number,
            payload,
            payload_base64,
        }
    }
}

impl TryFrom<Line> for QuarantineEntry {
    type Error = &'static str;

    fn try_from(line: Line) -> Result<Self, Self::Error> {
        let payload = match (line.payload, line.payload_base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => STANDARD
                .decode(text)
                .map_err(|_| "payload_base64 is not base64")?,
            _ => return Err("expected one of payload and payload_base64"),
        };
        Ok(Self {
            reason: line.reason,
            entity: line.entity,
            path: line.path,
            message: line.message,
            source: line.source,
            origin: line.origin,
            at: line.at,
            event_id: line.event_id,
            sequence_number: line.sequence_number,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = QuarantineEntry> {
        let reason = prop_oneof![
            Just(ReasonCode::MalformedRecord),
            Just(ReasonCode::MalformedJson),
            Just(ReasonCode::MalformedIon),
            Just(ReasonCode::MalformedAttributeValue),
            Just(ReasonCode::BadKey),
            Just(ReasonCode::Mismatch),
        ];
        let source = prop_oneof![
            Just(Origin::Stream),
            Just(Origin::FullExport),
            Just(Origin::IncrementalExport),
            Just(Origin::Replay),
        ];
        let text = || proptest::option::of(any::<String>());
        let origin = prop_oneof![
            text().prop_map(|arn| RecordOrigin::Stream { arn }),
            (any::<String>(), any::<String>(), any::<u64>()).prop_map(
                |(export_id, data_file, line)| RecordOrigin::Export {
                    export_id,
                    data_file,
                    line
                }
            ),
        ];
        let payload = prop_oneof![
            any::<Vec<u8>>(),
            any::<String>().prop_map(String::into_bytes),
            Just(b"{\n\"PK\":\t{\"S\":\"\\u0000\\ud800\"}}".to_vec()),
        ];
        let ids = (text(), text(), text(), text());
        (
            reason,
            any::<String>(),
            source,
            origin,
            any::<i64>(),
            ids,
            payload,
        )
            .prop_map(|(reason, message, source, origin, at, ids, payload)| {
                QuarantineEntry {
                    reason,
                    entity: ids.0,
                    path: ids.1,
                    message,
                    source,
                    origin,
                    at,
                    event_id: ids.2,
                    sequence_number: ids.3,
                    payload,
                }
            })
    }

    proptest! {
        #[test]
        fn entries_come_back_exactly_one_line_each(entries in prop::collection::vec(entry(), 0..4)) {
            let text = to_jsonl(&entries);
            prop_assert_eq!(text.split_inclusive(|byte| *byte == b'\n').count(), entries.len());
            prop_assert_eq!(&to_jsonl(&entries), &text);
            prop_assert_eq!(from_jsonl(&text).unwrap(), entries);
        }

        #[test]
        fn any_bytes_are_read_or_refused(text in any::<Vec<u8>>()) {
            if let Err(error) = from_jsonl(&text) {
                prop_assert!(error.line > 0);
            }
        }
    }

    fn sample(payload: &[u8]) -> QuarantineEntry {
        let reject = Reject::new(ReasonCode::BadKey, "the sort key is missing").at("Keys.SK");
        let arn = Some("arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/x".to_owned());
        let origin = RecordOrigin::Stream { arn };
        QuarantineEntry::new(
            reject,
            Origin::Stream,
            origin,
            1_795_003_600_000,
            payload.to_vec(),
        )
    }

    #[test]
    fn a_line_always_has_the_same_members() {
        let text = String::from_utf8(to_jsonl(&[sample(b"{\"a\":1}")])).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"reason":"bad_key","entity":null,"path":"Keys.SK","#,
                r#""message":"the sort key is missing","source":"stream","#,
                r#""origin":{"stream":{"arn":"arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/x"}},"#,
                r#""at":1795003600000,"event_id":null,"sequence_number":null,"#,
                r#""payload":"{\"a\":1}","payload_base64":null}"#,
                "\n"
            )
        );
    }

    #[test]
    fn bytes_that_are_not_text_are_kept_as_base64() {
        let text = to_jsonl(&[sample(b"\xff\x00")]);
        let line = String::from_utf8(text.clone()).unwrap();
        assert!(
            line.contains(r#""payload":null,"payload_base64":"/wA=""#),
            "{line}"
        );
        assert_eq!(from_jsonl(&text).unwrap()[0].payload, b"\xff\x00");
    }

    #[test]
    fn an_error_names_the_line_and_nothing_of_its_content() {
        let mut text = to_jsonl(&[sample(b"{}")]);
        text.extend_from_slice(b"\n{\"reason\":\"SECRET\"}\n");
        let error = from_jsonl(&text).unwrap_err();
        assert_eq!(error.line, 3);
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }

    #[test]
    fn debug_does_not_show_the_payload() {
        let text = format!("{:?}", sample(b"SECRET"));
        assert!(
            text.contains("6 bytes") && !text.contains("SECRET"),
            "{text}"
        );
    }
}
