//! Text from the lake, made safe for a terminal: control characters, bidirectional overrides and
//! characters without width are shown as escapes, so that a key cannot move the cursor, hide text
//! or turn it around.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every unsafe character escaped. Keeps everything else, newlines excepted.
pub(crate) fn inline(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Like [`inline`], but keeps newlines: for our own messages of several lines.
pub(crate) fn block(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n')
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| is_unsafe(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !is_unsafe(c) || keep(c) {
            out.push(c);
            continue;
        }
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a String cannot fail.
            _ => write!(out, "\\u{{{:x}}}", u32::from(c)).unwrap_or_default(),
        }
    }
    Cow::Owned(out)
}

/// Control, line and paragraph separators, bidirectional formatting, no width, byte-order mark,
/// tags, variation selectors' supplement and interlinear annotation.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_is_untouched() {
        for text in ["USER#1", "東京都渋谷区", "ça", "عربى", "a\\b", "👩🏽"] {
            assert!(matches!(inline(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn control_bidi_and_zero_width_characters_are_escaped() {
        assert_eq!(inline("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(inline("x\u{202e}cod.exe"), "x\\u{202e}cod.exe");
        assert_eq!(inline("a\u{200b}b\u{feff}"), "a\\u{200b}b\\u{feff}");
        assert_eq!(inline("1\n2\t3\r\0"), "1\\n2\\t3\\r\\u{0}");
        assert_eq!(block("1\n2\u{7}"), "1\n2\\u{7}");
    }
}
