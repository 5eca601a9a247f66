//! The one spelling of an item: `_rest`, `_old`, `json` columns, and what tests compare.
//!
//! Compact; names in byte order; numbers as canonical plain decimals; sets in the order of their
//! values; the fewest escapes. So a row from the stream equals the row from an export byte for byte,
//! whatever spelling either used.

use std::cmp::Ordering;

use super::tape::{Tag, Tape};
use super::text::write_escaped;
use super::value::Value;
use crate::number;
use crate::reject::Reject;

/// The canonical text of an item.
///
/// # Errors
/// As [`Tape::scan`].
pub fn canonical_item(raw: &[u8]) -> Result<String, Reject> {
    let mut tape = Tape::default();
    tape.scan(raw)?;
    let mut out = String::with_capacity(raw.len());
    if let Some(root) = Value::root(&tape, raw) {
        write_members(root, &mut out);
    }
    Ok(out)
}

/// The canonical text of one AttributeValue.
///
/// # Errors
/// As [`Tape::scan_value`].
pub fn canonical_value(raw: &[u8]) -> Result<String, Reject> {
    let mut tape = Tape::default();
    tape.scan_value(raw)?;
    let mut out = String::with_capacity(raw.len());
    if let Some(root) = Value::root(&tape, raw) {
        write_value(root, &mut out);
    }
    Ok(out)
}

/// Writes `"name":{…}`, with a comma before it unless it is the first after the brace.
pub(crate) fn write_named(name: &str, value: Value<'_>, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    write_escaped(name, out);
    out.push(':');
    write_value(value, out);
}

/// Writes `{"S":"…"}` and the like.
pub(crate) fn write_value(value: Value<'_>, out: &mut String) {
    out.push_str("{\"");
    out.push_str(value.tag().as_str());
    out.push_str("\":");
    match value.tag() {
        Tag::Name | Tag::S | Tag::B => write_escaped(&value.text(), out),
        Tag::N => write_quoted(&value.number(), out),
        Tag::True | Tag::Null => out.push_str("true"),
        Tag::False | Tag::NullFalse => out.push_str("false"),
        Tag::Ss | Tag::Ns | Tag::Bs => write_set(value, out),
        Tag::L => {
            out.push('[');
            for (position, element) in value.elements().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_value(element, out);
            }
            out.push(']');
        }
        Tag::M => write_members(value, out),
    }
    out.push('}');
}

fn write_members(map: Value<'_>, out: &mut String) {
    let mut members: Vec<_> = map
        .members()
        .map(|(name, value)| (name.text(), value))
        .collect();
    members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    out.push('{');
    for (name, value) in members {
        write_named(&name, value, out);
    }
    out.push('}');
}

fn write_set(set: Value<'_>, out: &mut String) {
    out.push('[');
    for (position, element) in sorted_set(set).into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        if element.tag() == Tag::N {
            write_quoted(&element.number(), out);
        } else {
            write_escaped(&element.text(), out);
        }
    }
    out.push(']');
}

/// The elements of a set in the order of their values: text by bytes, numbers by value, binary by
/// its bytes.
pub(crate) fn sorted_set(set: Value<'_>) -> Vec<Value<'_>> {
    let mut elements: Vec<_> = set.elements().collect();
    if elements.len() > 1 {
        elements.sort_by(|a, b| compare(*a, *b));
    }
    elements
}

fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    match a.tag() {
        Tag::N => number::compare(&a.number(), &b.number()),
        Tag::B => base64_order(&a.text()).cmp(base64_order(&b.text())),
        _ => a.text().cmp(&b.text()),
    }
}

/// Six-bit digits in the order of the bytes they encode: base64's alphabet is not in ASCII order.
fn base64_order(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().map(|byte| match byte {
        b'A'..=b'Z' => byte - b'A' + 1,
        b'a'..=b'z' => byte - b'a' + 27,
        b'0'..=b'9' => byte - b'0' + 53,
        b'+' => 63,
        b'/' => 64,
        _ => 0,
    })
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_item_has_one_canonical_text() {
        let spellings = [
            r#"{"b":{"NS":["10","9","1.0"]},"a":{"M":{"y":{"L":[{"NULL":true}]},"x":{"BS":["/w==","AA=="]}}},"S":{"S":"\u00e9\/\n"}}"#,
            r#" {"S":{"S":"é/\u000a"}, "a" : {"M":{"x":{"BS":["AA==","\/w\u003d="]},"y":{"L":[{"NULL":true}]}}},"b":{"NS":["1e0","1e1","09"]}} "#,
        ];
        let expected = r#"{"S":{"S":"é/\n"},"a":{"M":{"x":{"BS":["AA==","/w=="]},"y":{"L":[{"NULL":true}]}}},"b":{"NS":["1","9","10"]}}"#;
        for spelling in spellings {
            assert_eq!(canonical_item(spelling.as_bytes()).unwrap(), expected);
        }
        assert_eq!(canonical_item(expected.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn what_dynamodb_would_not_store_but_people_send_is_kept() {
        let odd = r#"{"a":{"NULL":false},"b":{"SS":[]},"c":{"BS":["AA==","AA=="]},"d":{"M":{}},"e":{"S":""}}"#;
        assert_eq!(canonical_item(odd.as_bytes()).unwrap(), odd);
    }
}
