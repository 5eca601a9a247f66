//! JSON strings: where they end, what they say, how they are written.

use std::borrow::Cow;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Position, from `from` on, of the first byte that is not plain string content: a quote, a
/// backslash, or a control character (below 0x20). `bytes.len()` when there is none.
///
/// Eight bytes at a time: a byte that is zero after xor (or below the bound) borrows from its high bit.
pub(crate) fn find_special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (LOW_BITS * 0x22);
        let slash = word ^ (LOW_BITS * 0x5c);
        let hits = (quote.wrapping_sub(LOW_BITS) & !quote)
            | (slash.wrapping_sub(LOW_BITS) & !slash)
            | (word.wrapping_sub(LOW_BITS * 0x20) & !word);
        let hits = hits & HIGH_BITS;
        if hits != 0 {
            // The lowest hit is exact; only higher ones can be false (borrow from below).
            return at + usize::try_from(hits.trailing_zeros() / 8).unwrap_or(0);
        }
        at += 8;
    }
    let tail = bytes.get(at..).unwrap_or_default();
    at + tail
        .iter()
        .position(|&b| b == b'"' || b == b'\\' || b < 0x20)
        .unwrap_or(tail.len())
}

/// Hash of an attribute name: equal names have equal hashes. Not for hostile input: every user of
/// it compares the names too.
pub(crate) fn name_hash(name: &[u8]) -> u32 {
    let word = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let mixed = if name.len() >= 8 {
        let middle = name
            .get(name.len() / 2 - 4..)
            .and_then(<[u8]>::first_chunk::<8>);
        word(name.first_chunk::<8>())
            ^ word(name.last_chunk::<8>()).rotate_left(23)
            ^ word(middle).rotate_left(41)
    } else {
        name.iter()
            .fold(0, |all, &byte| (all << 8) | u64::from(byte))
    };
    let length = u64::try_from(name.len()).unwrap_or(u64::MAX);
    let spread =
        (mixed ^ length.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    u32::try_from(spread >> 32).unwrap_or(0)
}

/// The text of a JSON string's content. `None` for a bad escape or half of a surrogate pair.
pub(crate) fn unescape(raw: &str) -> Option<Cow<'_, str>> {
    let Some(first) = memchr::memchr(b'\\', raw.as_bytes()) else {
        return Some(Cow::Borrowed(raw));
    };
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    let mut next = Some(first);
    while let Some(at) = next {
        out.push_str(rest.get(..at)?);
        let escape = rest.get(at + 1..)?;
        let (character, length) = unescape_one(escape)?;
        out.push(character);
        rest = escape.get(length..)?;
        next = memchr::memchr(b'\\', rest.as_bytes());
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// The character of one escape (after its backslash) and the escape's length in bytes.
fn unescape_one(escape: &str) -> Option<(char, usize)> {
    let simple = match escape.as_bytes().first()? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unescape_unicode(escape),
        _ => return None,
    };
    Some((simple, 1))
}

fn unescape_unicode(escape: &str) -> Option<(char, usize)> {
    let high = hex4(escape.get(1..5)?)?;
    if !(0xd800..0xe000).contains(&high) {
        return Some((char::from_u32(high)?, 5));
    }
    if high >= 0xdc00 || escape.get(5..7)? != "\\u" {
        return None;
    }
    let low = hex4(escape.get(7..11)?)?;
    if !(0xdc00..0xe000).contains(&low) {
        return None;
    }
    Some((
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?,
        11,
    ))
}

fn hex4(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// Writes a JSON string with the fewest escapes: quote, backslash and control characters.
pub fn write_escaped(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    loop {
        let at = find_special(text.as_bytes(), from);
        out.push_str(text.get(from..at).unwrap_or_default());
        let Some(&byte) = text.as_bytes().get(at) else {
            break;
        };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            other => {
                out.push_str("\\u00");
                for nibble in [other >> 4, other & 15] {
                    out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
                }
            }
        }
        from = at + 1;
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn escaping_is_undone_and_agrees_with_serde_json(text in "(\\PC|[\\x00-\\x20\"\\\\/])*") {
            let mut written = String::new();
            write_escaped(&text, &mut written);
            prop_assert_eq!(&written, &serde_json::to_string(&text).unwrap());
            let inner = written.get(1..written.len() - 1).unwrap();
            let undone = unescape(inner).unwrap();
            prop_assert_eq!(undone.as_ref(), text.as_str());
        }

        #[test]
        fn unescape_agrees_with_serde_json(raw in "([a-z]|\\\\[\"\\\\/bfnrtux]|\\\\u[0-9a-fD-F]{4}|[0-9])*") {
            let theirs = serde_json::from_str::<String>(&format!("\"{raw}\"")).ok();
            prop_assert_eq!(unescape(&raw).map(Cow::into_owned), theirs);
        }

        #[test]
        fn the_first_special_byte_is_found(bytes in proptest::collection::vec(any::<u8>(), 8..60), from in 0usize..8) {
            let naive = (from..bytes.len())
                .find(|&i| bytes[i] == b'"' || bytes[i] == b'\\' || bytes[i] < 0x20)
                .unwrap_or(bytes.len());
            prop_assert_eq!(find_special(&bytes, from), naive);
        }
    }
}
