//! One line of an export in DynamoDB JSON: `{"Item":{…}}` of a full one, `{"Keys":{…},…}` of an
//! incremental one.
//!
//! Input: the line. Output: raw texts for a [`ChangeRecord`], or the reason why the line goes to
//! quarantine. Unknown members are ignored; items and keys themselves are read later.

use dynalake_pipeline::json;
use dynalake_pipeline::record::{ChangeRecord, Operation, Origin, Reason};
use dynalake_pipeline::reject::{ReasonCode, Reject};

/// The item of a line of a full export as a snapshot row at `at` (export time, ms).
///
/// # Errors
/// Why the line is not one item.
pub fn snapshot(line: &[u8], at: i64) -> Result<ChangeRecord<'_>, Reject> {
    Ok(ChangeRecord {
        operation: Operation::Snapshot,
        reason: None,
        at,
        stream: None,
        sequence_number: None,
        event_id: None,
        origin: Origin::FullExport,
        keys: None,
        new_image: Some(item(line)?),
        old_image: None,
        payload: line,
    })
}

/// A line of an incremental export: an item as it is at the window's end, or that it is gone.
///
/// A change is a MODIFY without an old image, whatever view the export has: where a window begins, the
/// lake may hold the item in any table that its keys allow, and each of them is to get a tombstone. A
/// line without a new image is a delete, also one of keys alone. `at` (window's end, ms) stands in
/// where the line does not say when it was written.
///
/// # Errors
/// Why the line is not one change.
pub fn change(line: &[u8], at: i64) -> Result<ChangeRecord<'_>, Reject> {
    let members = Members::read(line)?;
    if members.item.is_some() {
        return Err(malformed(
            "the line is one of a full export; a line of an incremental export has `Keys` and images",
        ));
    }
    let Some(keys) = members.keys else {
        return Err(malformed("the line has no member `Keys`"));
    };
    let written = members.metadata.map(written_ms).transpose()?.flatten();
    let (operation, reason) = match members.new_image {
        Some(_) => (Operation::Modify, None),
        // Deletes by time to live look like any other.
        None => (Operation::Remove, Some(Reason::User)),
    };
    Ok(ChangeRecord {
        operation,
        reason,
        at: written.unwrap_or(at),
        stream: None,
        sequence_number: None,
        event_id: None,
        origin: Origin::IncrementalExport,
        keys: Some(keys),
        new_image: members.new_image,
        old_image: None,
        payload: line,
    })
}

/// The delete of whatever item a line of an incremental export is about; `None` where its keys cannot
/// be told. The keys may be any of the line's images.
pub fn delete(line: &[u8], at: i64) -> Option<ChangeRecord<'_>> {
    let members = Members::read(line).ok()?;
    Some(ChangeRecord {
        operation: Operation::Remove,
        reason: Some(Reason::User),
        at,
        stream: None,
        sequence_number: None,
        event_id: None,
        origin: Origin::IncrementalExport,
        keys: Some(members.keys.or(members.new_image).or(members.old_image)?),
        new_image: None,
        old_image: None,
        payload: line,
    })
}

/// The members that lines have; JSON's `null` is absent.
#[derive(Default)]
struct Members<'a> {
    item: Option<&'a [u8]>,
    metadata: Option<&'a [u8]>,
    keys: Option<&'a [u8]>,
    new_image: Option<&'a [u8]>,
    old_image: Option<&'a [u8]>,
}

impl<'a> Members<'a> {
    fn read(line: &'a [u8]) -> Result<Self, Reject> {
        let mut members = Self::default();
        for (name, value) in json::members(line)? {
            let (place, twice) = match name.as_ref() {
                "Item" => (&mut members.item, "the line has two members `Item`"),
                "Metadata" => (&mut members.metadata, "the line has two members `Metadata`"),
                "Keys" => (&mut members.keys, "the line has two members `Keys`"),
                "NewImage" => (
                    &mut members.new_image,
                    "the line has two members `NewImage`",
                ),
                "OldImage" => (
                    &mut members.old_image,
                    "the line has two members `OldImage`",
                ),
                _ => continue,
            };
            if place.is_some() {
                return Err(malformed(twice));
            }
            *place = (value != b"null").then_some(value);
        }
        Ok(members)
    }
}

fn item(line: &[u8]) -> Result<&[u8], Reject> {
    let members = Members::read(line)?;
    let change = members.keys.or(members.new_image).or(members.old_image);
    match members.item {
        Some(item) => Ok(item),
        None if change.is_some() => Err(malformed(
            "the line is one of an incremental export; a line of a full export is `{\"Item\":{…}}`",
        )),
        None => Err(malformed("the line has no member `Item`")),
    }
}

/// Milliseconds since 1970-01-01 UTC of `{"WriteTimestampMicros":{"N":"…"}}`. Samples of others have a
/// bare number, or text.
fn written_ms(metadata: &[u8]) -> Result<Option<i64>, Reject> {
    let bad = || malformed("`Metadata.WriteTimestampMicros` is not a number");
    let member = |object: &'_ [u8], wanted: &str| {
        json::members(object)
            .ok()?
            .into_iter()
            .find_map(|(name, value)| (name == wanted).then(|| value.to_vec()))
    };
    if json::members(metadata).is_err() {
        return Err(malformed("`Metadata` is not an object"));
    }
    let Some(written) = member(metadata, "WriteTimestampMicros") else {
        return Ok(None);
    };
    let number = member(&written, "N").unwrap_or(written);
    let text = std::str::from_utf8(&number).map_err(|_| bad())?;
    let micros: i64 = text.trim_matches('"').parse().map_err(|_| bad())?;
    Ok(Some(micros.div_euclid(1000)))
}

fn malformed(message: &str) -> Reject {
    Reject::new(ReasonCode::MalformedRecord, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_item_is_borrowed_as_it_stands() {
        let line = br#" {"Item": {"PK":{"S":"a"}} } "#;
        let record = snapshot(line, 5).unwrap();
        assert_eq!(record.new_image, Some(&br#"{"PK":{"S":"a"}}"#[..]));
        assert_eq!((record.at, record.operation), (5, Operation::Snapshot));
        assert_eq!(record.payload, line);
        let later = br#"{"Version":1,"Item":{}}"#;
        assert_eq!(snapshot(later, 0).unwrap().new_image, Some(&b"{}"[..]));
    }

    #[test]
    fn other_lines_are_rejected_with_a_reason() {
        let cases: [(&[u8], ReasonCode); 8] = [
            (b"", ReasonCode::MalformedJson),
            (b"{\"Item\":{\"PK\"", ReasonCode::MalformedJson),
            (b"{\"Item\":{}} x", ReasonCode::MalformedJson),
            (b"{\"item\":{}}", ReasonCode::MalformedRecord),
            (b"{\"Item\":{},\"Item\":{}}", ReasonCode::MalformedRecord),
            (
                b"{\"Keys\":{},\"NewImage\":{}}",
                ReasonCode::MalformedRecord,
            ),
            (b"[1]", ReasonCode::MalformedJson),
            (b"$ion_1_0 {Item:{a:1.}}", ReasonCode::MalformedJson),
        ];
        for (line, code) in cases {
            let reject = snapshot(line, 0).unwrap_err();
            assert_eq!(
                reject.code,
                code,
                "{}: {reject}",
                String::from_utf8_lossy(line)
            );
        }
    }

    #[test]
    fn a_line_with_a_new_image_is_a_change_and_any_other_a_delete() {
        let written = r#""Metadata":{"WriteTimestampMicros":{"N":"1768387654353205"}}"#;
        let keys = r#""Keys":{"PK":{"S":"a"}}"#;
        for (images, operation) in [
            (r#","NewImage":{"PK":{"S":"a"}}"#, Operation::Modify),
            (r#","OldImage":{},"NewImage":{}"#, Operation::Modify),
            (r#","OldImage":{"PK":{"S":"a"}}"#, Operation::Remove),
            (r#","NewImage":null"#, Operation::Remove),
            ("", Operation::Remove),
        ] {
            let line = format!("{{{written},{keys}{images}}}");
            let record = change(line.as_bytes(), 7).unwrap();
            assert_eq!(record.operation, operation, "{line}");
            assert_eq!(record.keys, Some(&br#"{"PK":{"S":"a"}}"#[..]));
            assert_eq!(record.at, 1_768_387_654_353);
            assert!(record.old_image.is_none());
        }
    }

    #[test]
    fn the_time_of_a_change_may_be_written_in_several_ways_or_be_missing() {
        let at = |metadata: &str| {
            let line = format!("{{\"Keys\":{{}}{metadata}}}");
            change(line.as_bytes(), 7).map(|record| record.at)
        };
        assert_eq!(
            at(r#","Metadata":{"WriteTimestampMicros":{"N":"5000"}}"#),
            Ok(5)
        );
        assert_eq!(at(r#","Metadata":{"WriteTimestampMicros":5999}"#), Ok(5));
        assert_eq!(at(r#","Metadata":{"WriteTimestampMicros":"5000"}"#), Ok(5));
        assert_eq!(at(""), Ok(7));
        assert_eq!(at(r#","Metadata":{}"#), Ok(7));
        for bad in [
            r#","Metadata":{"WriteTimestampMicros":{"S":"5000"}}"#,
            r#","Metadata":{"WriteTimestampMicros":{"N":"soon"}}"#,
            r#","Metadata":7"#,
        ] {
            assert_eq!(at(bad).unwrap_err().code, ReasonCode::MalformedRecord);
        }
    }

    #[test]
    fn what_is_no_change_is_rejected_and_its_keys_are_looked_for() {
        type Case<'a> = (&'a [u8], ReasonCode, Option<&'a [u8]>);
        let cases: [Case<'_>; 5] = [
            (
                br#"{"NewImage":{"PK":{"S":"a"}}}"#,
                ReasonCode::MalformedRecord,
                Some(br#"{"PK":{"S":"a"}}"#),
            ),
            (
                br#"{"Item":{"PK":{"S":"a"}}}"#,
                ReasonCode::MalformedRecord,
                None,
            ),
            (
                br#"{"Keys":{},"Keys":{}}"#,
                ReasonCode::MalformedRecord,
                None,
            ),
            (b"{}", ReasonCode::MalformedRecord, None),
            (br#"{"Keys":{"#, ReasonCode::MalformedJson, None),
        ];
        for (line, code, keys) in cases {
            let shown = String::from_utf8_lossy(line);
            assert_eq!(change(line, 0).unwrap_err().code, code, "{shown}");
            assert_eq!(
                delete(line, 0).and_then(|found| found.keys),
                keys,
                "{shown}"
            );
        }
    }
}
