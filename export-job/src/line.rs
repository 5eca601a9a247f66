//! One line of a full export in DynamoDB JSON: `{"Item":{…}}`.
//!
//! Input: the line. Output: the item's raw text for a [`ChangeRecord`], or the reason why the line
//! goes to quarantine. Unknown members beside `Item` are ignored; the item itself is read later.

use dynalake_pipeline::json;
use dynalake_pipeline::record::{ChangeRecord, Operation, Origin};
use dynalake_pipeline::reject::{ReasonCode, Reject};

/// The item of a line as a snapshot row at `at` (export time, ms).
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

fn item(line: &[u8]) -> Result<&[u8], Reject> {
    let mut item = None;
    let mut change = false;
    for (name, value) in json::members(line)? {
        match name.as_ref() {
            "Item" if item.is_some() => return Err(malformed("the line has two members `Item`")),
            "Item" => item = Some(value),
            "Keys" | "NewImage" | "OldImage" => change = true,
            _ => {}
        }
    }
    match item {
        Some(item) => Ok(item),
        None if change => Err(malformed(
            "the line is one of an incremental export; a line of a full export is `{\"Item\":{…}}`",
        )),
        None => Err(malformed("the line has no member `Item`")),
    }
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
}
