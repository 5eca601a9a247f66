//! A look at a line before the Ion library reads it.
//!
//! The library calls itself for every level of nesting and takes on trust that numbers and symbol ids
//! are short, so a hostile line could make it overflow the stack or panic. This pass over the text
//! knows just enough of Ion to tell what stands in strings from what does not.
//!
//! It also quotes names such as `$0a`, which Ion allows bare: the library takes their beginning for a
//! symbol id.

use std::borrow::Cow;
use std::ops::Range;

use dynalake_pipeline::json::MAX_DEPTH;
use dynalake_pipeline::reject::Reject;
use memchr::{memchr, memchr2};

use super::malformed;

/// Deepest nesting of lists and structs: that of items, and what lines have around them.
const MAX_NESTING: usize = MAX_DEPTH + 4;
/// Longest number. DynamoDB's own have at most 38 digits and 130 zeros.
const MAX_NUMBER: usize = 512;
/// Most digits of a symbol's id.
const MAX_SYMBOL_ID: usize = 9;

/// The text for the library, or why it must not reach it.
pub(super) fn prepare(text: &str) -> Result<Cow<'_, str>, Reject> {
    let bytes = text.as_bytes();
    let mut bare = Vec::new();
    let mut at = 0;
    let mut depth = 0_usize;
    while let Some(tail @ [byte, ..]) = bytes.get(at..) {
        at += match byte {
            b'\'' if tail.starts_with(b"'''") => long_string(tail, at)?,
            b'"' | b'\'' => quoted(tail, at)?,
            b'{' if is_blob(tail) => blob(tail, at)?,
            b'{' | b'[' | b'(' => {
                depth += 1;
                if depth > MAX_NESTING {
                    return Err(malformed(format!("nested deeper than {MAX_DEPTH} levels")));
                }
                1
            }
            b'}' | b']' | b')' => {
                depth = depth.saturating_sub(1);
                1
            }
            b'/' => {
                return Err(malformed(format!(
                    "a comment, or a `/` outside of a string, at byte {at}"
                )));
            }
            b'$' => {
                let (digits, name) = (digits(tail), word(tail));
                if digits > 0 && name > digits + 1 {
                    bare.push(at..at + name);
                } else if digits > MAX_SYMBOL_ID {
                    return Err(malformed(format!("a symbol id at byte {at} is too large")));
                }
                name
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => word(tail),
            b'0'..=b'9' | b'-' | b'+' => number(tail, at)?,
            _ => 1,
        };
    }
    Ok(if bare.is_empty() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(with_quotes(text, &bare))
    })
}

/// The text with the names at these places in quotes.
fn with_quotes(text: &str, names: &[Range<usize>]) -> String {
    let mut quoted = String::with_capacity(text.len() + 2 * names.len());
    let mut done = 0;
    for name in names {
        quoted.push_str(text.get(done..name.start).unwrap_or_default());
        quoted.push('\'');
        quoted.push_str(text.get(name.clone()).unwrap_or_default());
        quoted.push('\'');
        done = name.end;
    }
    quoted.push_str(text.get(done..).unwrap_or_default());
    quoted
}

/// Length of a string or quoted symbol.
fn quoted(tail: &[u8], at: usize) -> Result<usize, Reject> {
    let quote = tail.first().copied().unwrap_or_default();
    let mut length = 1;
    loop {
        let rest = tail.get(length..).unwrap_or_default();
        let found = memchr2(quote, b'\\', rest).ok_or_else(|| unending(at))?;
        length += found + 1;
        if rest.get(found) == Some(&quote) {
            return Ok(length);
        }
        length += escape(tail, length, at)?;
    }
}

/// Length of a `'''string'''`.
fn long_string(tail: &[u8], at: usize) -> Result<usize, Reject> {
    let mut length = 3;
    loop {
        let rest = tail.get(length..).unwrap_or_default();
        let found = memchr2(b'\'', b'\\', rest).ok_or_else(|| unending(at))?;
        length += found;
        if rest.get(found) == Some(&b'\\') {
            length += 1 + escape(tail, length + 1, at)?;
        } else if rest.get(found..).is_some_and(|end| end.starts_with(b"'''")) {
            return Ok(length + 3);
        } else {
            length += 1;
        }
    }
}

/// Length of what must be passed after a backslash, whose code point must be one of Unicode.
fn escape(tail: &[u8], length: usize, at: usize) -> Result<usize, Reject> {
    let escape = tail.get(length..).unwrap_or_default();
    let Some((b'U', digits)) = escape.split_first() else {
        return Ok(1);
    };
    let digits = digits.get(..8).and_then(|d| std::str::from_utf8(d).ok());
    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    if code.is_some_and(|code| code <= u32::from(char::MAX)) {
        Ok(1)
    } else {
        Err(malformed(format!(
            "the string at byte {at} has a bad `\\U` escape"
        )))
    }
}

/// `{{` and then no string: a blob.
fn is_blob(tail: &[u8]) -> bool {
    let inside = tail.strip_prefix(b"{{").map(<[u8]>::trim_ascii_start);
    inside.is_some_and(|inside| !matches!(inside.first(), Some(b'"' | b'\'')))
}

fn blob(tail: &[u8], at: usize) -> Result<usize, Reject> {
    match memchr(b'}', tail) {
        Some(end) if tail.get(end + 1) == Some(&b'}') => Ok(end + 2),
        _ => Err(malformed(format!("the blob at byte {at} does not end"))),
    }
}

fn word(tail: &[u8]) -> usize {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    tail.iter()
        .position(|byte| !inside(byte))
        .unwrap_or(tail.len())
}

/// Number of digits after a `$`.
fn digits(tail: &[u8]) -> usize {
    let digits = tail.iter().skip(1);
    digits.take_while(|byte| byte.is_ascii_digit()).count()
}

/// Length of a number, or of a timestamp.
fn number(tail: &[u8], at: usize) -> Result<usize, Reject> {
    let inside = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'+' | b':')
    };
    let length = tail.iter().position(|byte| !inside(byte));
    match length.unwrap_or(tail.len()) {
        length if length > MAX_NUMBER => Err(malformed(format!(
            "a number at byte {at} is longer than {MAX_NUMBER} bytes"
        ))),
        length => Ok(length),
    }
}

fn unending(at: usize) -> Reject {
    malformed(format!(
        "a string or quoted name that begins at byte {at} does not end"
    ))
}
