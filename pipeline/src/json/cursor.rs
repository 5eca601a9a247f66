//! JSON text cut into raw slices: envelopes and lines, before anything is known of their values.

use std::borrow::Cow;

use super::text::{find_special, unescape};
use crate::reject::{ReasonCode, Reject};

/// Deepest nesting of plain JSON that is skipped over.
const MAX_JSON_DEPTH: usize = 512;

/// A reading position in JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

/// A string as it stands in the text: its content without the quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawString {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) escaped: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// A cursor over bytes; fails on bytes that are not UTF-8.
    pub(crate) fn over(raw: &'a [u8]) -> Result<Self, Reject> {
        std::str::from_utf8(raw).map(Self::new).map_err(|error| {
            Reject::new(
                ReasonCode::MalformedJson,
                format!("the text is not UTF-8 at byte {}", error.valid_up_to()),
            )
        })
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The next byte that is not white space, without passing it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Passes this byte (after white space), or fails.
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Reject> {
        if self.accept(byte) {
            return Ok(());
        }
        Err(self.error(&format!("expected `{}`", char::from(byte))))
    }

    /// Passes this byte (after white space) if it is next.
    pub(crate) fn accept(&mut self, byte: u8) -> bool {
        let next = self.peek() == Some(byte);
        if next {
            self.at += 1;
        }
        next
    }

    /// Passes a string.
    pub(crate) fn string(&mut self) -> Result<RawString, Reject> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at = find_special(self.bytes(), self.at);
            match self.bytes().get(self.at) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(RawString {
                        start,
                        end,
                        escaped,
                    });
                }
                Some(b'\\') if self.at + 1 < self.bytes().len() => {
                    escaped = true;
                    self.at += 2;
                }
                Some(b'\\') | None => return Err(self.error("a string does not end")),
                Some(_) => return Err(self.error("a control character stands in a string")),
            }
        }
    }

    /// The text of a string that was passed.
    pub(crate) fn unescape(&self, string: RawString) -> Result<Cow<'a, str>, Reject> {
        let raw = self.slice(string.start, string.end);
        if !string.escaped {
            return Ok(Cow::Borrowed(raw));
        }
        unescape(raw).ok_or_else(|| {
            Self {
                text: self.text,
                at: string.start,
            }
            .error("a string has a bad escape or half of a surrogate pair")
        })
    }

    /// Passes any JSON value and gives its text.
    pub(crate) fn value(&mut self) -> Result<&'a str, Reject> {
        self.peek();
        let start = self.at;
        self.skip_value(0)?;
        Ok(self.slice(start, self.at))
    }

    fn skip_value(&mut self, depth: usize) -> Result<(), Reject> {
        if depth > MAX_JSON_DEPTH {
            return Err(self.error("the JSON is nested too deeply"));
        }
        match self.peek() {
            Some(b'"') => {
                let string = self.string()?;
                self.unescape(string).map(drop)
            }
            Some(b'{') => self.skip_container(b'}', depth, true),
            Some(b'[') => self.skip_container(b']', depth, false),
            Some(_) => self.skip_scalar(),
            None => Err(self.error("a value is missing")),
        }
    }

    fn skip_container(&mut self, close: u8, depth: usize, named: bool) -> Result<(), Reject> {
        self.at += 1;
        if self.accept(close) {
            return Ok(());
        }
        loop {
            if named {
                let name = self.string()?;
                self.unescape(name)?;
                self.expect(b':')?;
            }
            self.skip_value(depth + 1)?;
            if self.accept(close) {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    fn skip_scalar(&mut self) -> Result<(), Reject> {
        let start = self.at;
        let tail = self.bytes().get(start..).unwrap_or_default();
        let length = tail
            .iter()
            .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))
            .unwrap_or(tail.len());
        self.at += length;
        let word = self.slice(start, self.at);
        if matches!(word, "true" | "false" | "null") || is_json_number(word) {
            return Ok(());
        }
        self.at = start;
        Err(self.error("expected a JSON value"))
    }

    /// Fails unless only white space is left.
    pub(crate) fn end(&mut self) -> Result<(), Reject> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("text follows the end of the value")),
        }
    }

    /// An error at this position.
    pub(crate) fn error(&self, message: &str) -> Reject {
        Reject::new(
            ReasonCode::MalformedJson,
            format!("{message} at byte {}", self.at),
        )
    }
}

fn is_json_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (
            unsigned.get(..at).unwrap_or_default(),
            unsigned.get(at + 1..),
        ),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

/// Name of a member, and the raw text of its value.
pub type RawMember<'a> = (Cow<'a, str>, &'a [u8]);

/// The members of one JSON object, in order, each value as its raw text.
///
/// # Errors
/// [`ReasonCode::MalformedJson`] when the text is not exactly one JSON object.
pub fn members(raw: &[u8]) -> Result<Vec<RawMember<'_>>, Reject> {
    let mut cursor = Cursor::over(raw)?;
    let mut found = Vec::with_capacity(12);
    cursor.expect(b'{')?;
    if !cursor.accept(b'}') {
        loop {
            let name = cursor.string()?;
            let name = cursor.unescape(name)?;
            cursor.expect(b':')?;
            found.push((name, cursor.value()?.as_bytes()));
            if cursor.accept(b'}') {
                break;
            }
            cursor.expect(b',')?;
        }
    }
    cursor.end()?;
    Ok(found)
}

/// The elements of one JSON array, in order, each as its raw text.
///
/// # Errors
/// [`ReasonCode::MalformedJson`] when the text is not exactly one JSON array.
pub fn elements(raw: &[u8]) -> Result<Vec<&[u8]>, Reject> {
    let mut cursor = Cursor::over(raw)?;
    let mut found = Vec::new();
    cursor.expect(b'[')?;
    if !cursor.accept(b']') {
        loop {
            found.push(cursor.value()?.as_bytes());
            if cursor.accept(b']') {
                break;
            }
            cursor.expect(b',')?;
        }
    }
    cursor.end()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_are_raw_slices() {
        let raw = br#" { "a" : {"S":"}"} , "b\u0041":[1,2.5e-3,null] } "#;
        let found = members(raw).unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(names, ["a", "bA"]);
        assert_eq!(found[0].1, br#"{"S":"}"}"#);
        assert_eq!(
            elements(found[1].1).unwrap(),
            [&b"1"[..], b"2.5e-3", b"null"]
        );
    }

    #[test]
    fn broken_json_is_an_error_with_a_position() {
        let broken = [
            "",
            "{",
            "[1",
            r#"{"a"}"#,
            r#"{"a":01}"#,
            r#"{"a":1}}"#,
            r#"{"a":"\"#,
            "{\"a\":\"\n\"}",
        ];
        for raw in broken {
            assert!(
                members(raw.as_bytes())
                    .unwrap_err()
                    .message
                    .contains("at byte"),
                "{raw}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_cut_is_exactly_what_serde_json_takes(text in "[\\[\\]{}\",:a0-9.e\\- \\\\u]{0,24}") {
            let ours = elements(text.as_bytes()).is_ok() || members(text.as_bytes()).is_ok();
            let theirs = serde_json::from_str::<serde_json::Value>(&text)
                .is_ok_and(|v| v.is_array() || v.is_object());
            // serde_json has no number larger than an f64; we do not look at magnitude.
            if ours != theirs { prop_assert!(ours && text.contains('e'), "{}", text); }
        }
    }
}
