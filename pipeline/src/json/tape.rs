//! One item as a flat list of nodes that point into its text.
//!
//! The scan checks everything that can be wrong with an item, so that decoding cannot fail later:
//! JSON syntax, one known type tag per AttributeValue, numbers within DynamoDB's limits, base64,
//! escapes, duplicate names, depth. The list is reused from item to item: no allocation per item.

use super::cursor::{Cursor, RawString};
use super::text::name_hash;
use crate::number;
use crate::reject::{ReasonCode, Reject};

/// Deepest nesting of values that is read. DynamoDB stores at most 32 levels.
pub const MAX_DEPTH: usize = 100;

/// Members up to which duplicates are found pair by pair.
const PAIRWISE_MEMBERS: usize = 48;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Name of the member whose value follows.
    Name,
    /// String.
    S,
    /// Number.
    N,
    /// Binary, base64.
    B,
    /// `{"NULL":true}`.
    Null,
    /// `{"NULL":false}`: never stored by DynamoDB, but seen.
    NullFalse,
    /// `{"BOOL":true}`.
    True,
    /// `{"BOOL":false}`.
    False,
    /// String set; its children are `S`.
    Ss,
    /// Number set; its children are `N`.
    Ns,
    /// Binary set; its children are `B`.
    Bs,
    /// List.
    L,
    /// Map: children are a name and a value in turn.
    M,
}

impl Tag {
    /// The tag in DynamoDB JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::S => "S",
            Self::N => "N",
            Self::B => "B",
            Self::Null | Self::NullFalse => "NULL",
            Self::True | Self::False => "BOOL",
            Self::Ss => "SS",
            Self::Ns => "NS",
            Self::Bs => "BS",
            Self::L => "L",
            Self::M => "M",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) tag: Tag,
    /// The text has escapes (strings), or is not in canonical form (numbers).
    pub(crate) raw: bool,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Index after this node and all below it; of a name, the hash of its text.
    pub(crate) next: u32,
}

/// The nodes of one item; reused from item to item.
#[derive(Debug, Default)]
pub struct Tape {
    pub(crate) nodes: Vec<Node>,
    names: Vec<(u32, u32)>,
}

impl Tape {
    /// Reads one item: a JSON object of attribute names and their values. The root is then
    /// [`super::Value::root`].
    ///
    /// # Errors
    /// The first thing that is wrong, with its attribute path. The tape then holds nothing of use.
    pub fn scan(&mut self, raw: &[u8]) -> Result<(), Reject> {
        self.start(raw)?.map(0)
    }

    /// Reads one AttributeValue (`{"S":"x"}`).
    ///
    /// # Errors
    /// As [`Tape::scan`].
    pub fn scan_value(&mut self, raw: &[u8]) -> Result<(), Reject> {
        self.start(raw)?.attribute_value(0)
    }

    fn start<'t, 'a>(&'t mut self, raw: &'a [u8]) -> Result<Scanner<'t, 'a>, Reject> {
        self.nodes.clear();
        self.names.clear();
        if u32::try_from(raw.len()).is_err() {
            return Err(Reject::new(
                ReasonCode::MalformedJson,
                "the item is larger than 4 GiB",
            ));
        }
        Ok(Scanner {
            cursor: Cursor::over(raw)?,
            nodes: &mut self.nodes,
            names: &mut self.names,
        })
    }
}

struct Scanner<'t, 'a> {
    cursor: Cursor<'a>,
    nodes: &'t mut Vec<Node>,
    /// Hash and node of the names of all open maps, innermost last.
    names: &'t mut Vec<(u32, u32)>,
}

impl Scanner<'_, '_> {
    fn map(&mut self, depth: usize) -> Result<(), Reject> {
        let node = self.open(Tag::M);
        let first_name = self.names.len();
        self.expect_json(b'{', "an object of attributes")?;
        if !self.cursor.accept(b'}') {
            loop {
                let name = self.cursor.string()?;
                self.name(name, first_name)?;
                self.cursor.expect(b':')?;
                self.attribute_value(depth + 1)
                    .map_err(|reject| reject.under(&self.text(name)))?;
                if self.cursor.accept(b'}') {
                    break;
                }
                self.cursor.expect(b',')?;
            }
        }
        self.check_many_names(first_name)?;
        self.names.truncate(first_name);
        self.close(node);
        if depth == 0 {
            self.cursor.end()?;
        }
        Ok(())
    }

    fn name(&mut self, name: RawString, first_name: usize) -> Result<(), Reject> {
        let hash = if name.escaped {
            name_hash(self.cursor.unescape(name)?.as_bytes())
        } else {
            name_hash(self.cursor.slice(name.start, name.end).as_bytes())
        };
        let seen = self.names.get(first_name..).unwrap_or_default();
        if seen.len() < PAIRWISE_MEMBERS {
            for &(_, node) in seen.iter().filter(|(other, _)| *other == hash) {
                if self.node_text(node) == self.text(name) {
                    return Err(duplicate(&self.text(name)));
                }
            }
        }
        self.names.push((hash, index(self.nodes.len())));
        self.leaf(Tag::Name, name, name.escaped);
        if let Some(node) = self.nodes.last_mut() {
            node.next = hash;
        }
        Ok(())
    }

    /// Duplicates in a map too large for the pairwise search.
    fn check_many_names(&self, first_name: usize) -> Result<(), Reject> {
        let seen = self.names.get(first_name..).unwrap_or_default();
        if seen.len() <= PAIRWISE_MEMBERS {
            return Ok(());
        }
        let mut names: Vec<_> = seen.iter().map(|&(_, node)| self.node_text(node)).collect();
        names.sort_unstable();
        match names.array_windows().find(|[a, b]| a == b) {
            Some([name, _]) => Err(duplicate(name)),
            None => Ok(()),
        }
    }

    fn attribute_value(&mut self, depth: usize) -> Result<(), Reject> {
        if depth > MAX_DEPTH {
            return Err(malformed(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.expect_json(b'{', "an AttributeValue such as `{\"S\":\"…\"}`")?;
        if self.cursor.peek() == Some(b'}') {
            return Err(malformed("an AttributeValue has no data type"));
        }
        let tag = self.cursor.string()?;
        let tag = self.cursor.unescape(tag)?;
        self.cursor.expect(b':')?;
        match tag.as_ref() {
            "S" => self.scalar(Tag::S),
            "N" => self.scalar(Tag::N),
            "B" => self.scalar(Tag::B),
            "BOOL" => self.literal("BOOL", Tag::True, Tag::False),
            "NULL" => self.literal("NULL", Tag::Null, Tag::NullFalse),
            "SS" => self.set(Tag::Ss, Tag::S),
            "NS" => self.set(Tag::Ns, Tag::N),
            "BS" => self.set(Tag::Bs, Tag::B),
            "L" => self.list(depth),
            "M" => self.map(depth.max(1)),
            _ => Err(malformed(
                "unknown data type; expected one of S, N, B, BOOL, NULL, SS, NS, BS, L, M",
            )),
        }?;
        if self.cursor.peek() == Some(b',') {
            return Err(malformed("an AttributeValue has more than one data type"));
        }
        self.cursor.expect(b'}')?;
        if depth == 0 {
            self.cursor.end()?;
        }
        Ok(())
    }

    fn scalar(&mut self, tag: Tag) -> Result<(), Reject> {
        self.peek_json(b'"', || format!("a JSON string in `{}`", tag.as_str()))?;
        let string = self.cursor.string()?;
        let text = self.text_checked(string)?;
        let raw = match tag {
            Tag::N => {
                let canonical =
                    number::check(&text).map_err(|error| malformed(error.to_string()))?;
                string.escaped || !canonical
            }
            Tag::B if !is_base64(text.as_bytes()) => {
                return Err(malformed("a `B` value is not base64 with padding"));
            }
            _ => string.escaped,
        };
        self.leaf(tag, string, raw);
        Ok(())
    }

    fn literal(&mut self, name: &str, yes: Tag, no: Tag) -> Result<(), Reject> {
        self.cursor.peek();
        let start = self.cursor.at;
        let tail = self.cursor.text.get(start..).unwrap_or_default();
        let (tag, length) = if tail.starts_with("true") {
            (yes, 4)
        } else if tail.starts_with("false") {
            (no, 5)
        } else {
            return Err(malformed(format!("`{name}` must hold true or false")));
        };
        self.cursor.at += length;
        self.leaf(
            tag,
            RawString {
                start,
                end: start + length,
                escaped: false,
            },
            false,
        );
        Ok(())
    }

    fn set(&mut self, tag: Tag, element: Tag) -> Result<(), Reject> {
        let node = self.open(tag);
        self.expect_json(b'[', "a JSON array in a set")?;
        if !self.cursor.accept(b']') {
            let mut position = 0_usize;
            loop {
                self.scalar(element)
                    .map_err(|reject| reject.under_index(position))?;
                position += 1;
                if self.cursor.accept(b']') {
                    break;
                }
                self.cursor.expect(b',')?;
            }
        }
        self.close(node);
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Result<(), Reject> {
        let node = self.open(Tag::L);
        self.expect_json(b'[', "a JSON array in `L`")?;
        if !self.cursor.accept(b']') {
            let mut position = 0_usize;
            loop {
                self.attribute_value(depth.max(1) + 1)
                    .map_err(|reject| reject.under_index(position))?;
                position += 1;
                if self.cursor.accept(b']') {
                    break;
                }
                self.cursor.expect(b',')?;
            }
        }
        self.close(node);
        Ok(())
    }

    fn open(&mut self, tag: Tag) -> usize {
        let at = self.nodes.len();
        self.nodes.push(Node {
            tag,
            raw: false,
            start: 0,
            end: 0,
            next: 0,
        });
        at
    }

    fn close(&mut self, node: usize) {
        let next = index(self.nodes.len());
        if let Some(node) = self.nodes.get_mut(node) {
            node.next = next;
        }
    }

    fn leaf(&mut self, tag: Tag, text: RawString, raw: bool) {
        let next = index(self.nodes.len() + 1);
        self.nodes.push(Node {
            tag,
            raw,
            start: index(text.start),
            end: index(text.end),
            next,
        });
    }

    fn text_checked(&self, string: RawString) -> Result<std::borrow::Cow<'_, str>, Reject> {
        self.cursor.unescape(string)
    }

    fn text(&self, string: RawString) -> String {
        self.cursor
            .unescape(string)
            .unwrap_or_default()
            .into_owned()
    }

    fn node_text(&self, node: u32) -> String {
        let node = usize::try_from(node)
            .ok()
            .and_then(|node| self.nodes.get(node));
        node.map_or_else(String::new, |node| {
            let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
            self.text(RawString {
                start: at(node.start),
                end: at(node.end),
                escaped: node.raw,
            })
        })
    }

    fn expect_json(&mut self, byte: u8, what: &str) -> Result<(), Reject> {
        self.peek_json(byte, || what.to_owned())?;
        self.cursor.at += 1;
        Ok(())
    }

    /// Tells a value of the wrong JSON type from text that is not JSON.
    fn peek_json(&mut self, byte: u8, what: impl FnOnce() -> String) -> Result<(), Reject> {
        let found = match self.cursor.peek() {
            Some(found) if found == byte => return Ok(()),
            Some(b'"') => "a string",
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'n') => "null",
            Some(b't' | b'f') => "a boolean",
            Some(b'0'..=b'9' | b'-') => "a number",
            _ => return Err(self.cursor.error(&format!("expected {}", what()))),
        };
        Err(malformed(format!("expected {}, found {found}", what())))
    }
}

fn index(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

fn malformed(message: impl Into<String>) -> Reject {
    Reject::new(ReasonCode::MalformedAttributeValue, message)
}

fn duplicate(name: &str) -> Reject {
    malformed("two members have the same name").under(name)
}

/// Standard alphabet, padded, no stray bits: exactly what decodes and encodes back to the same text.
fn is_base64(text: &[u8]) -> bool {
    if !text.len().is_multiple_of(4) {
        return false;
    }
    let padding = text
        .iter()
        .rev()
        .take(2)
        .take_while(|&&b| b == b'=')
        .count();
    let (digits, _) = text.split_at(text.len() - padding);
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let stray_bits = match padding {
        0 => 0,
        1 => 0b11,
        _ => 0b1111,
    };
    digits.iter().all(|&byte| digit(byte).is_some())
        && digits
            .last()
            .is_none_or(|&last| digit(last).is_some_and(|bits| bits & stray_bits == 0))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    fn reject(raw: &str) -> Reject {
        Tape::default().scan(raw.as_bytes()).unwrap_err()
    }

    #[test]
    fn what_dynamodb_cannot_store_is_rejected_with_its_path() {
        let cases = [
            (r#"{"a":{}}"#, "a", "no data type"),
            (r#"{"a":{"S":"x","N":"1"}}"#, "a", "more than one data type"),
            (r#"{"a":{"N":1}}"#, "a", "found a number"),
            (r#"{"a":{"S":null}}"#, "a", "found null"),
            (r#"{"a":null}"#, "a", "found null"),
            (r#"{"a":{"N":"NaN"}}"#, "a", "not a number"),
            (r#"{"a":{"X":"1"}}"#, "a", "unknown data type"),
            (r#"{"a":{"B":"YQ"}}"#, "a", "base64"),
            (
                r#"{"a":{"M":{"b":{"L":[{"S":"x"},{"BOOL":"no"}]}}}}"#,
                "a.b[1]",
                "true or false",
            ),
            (r#"{"a":{"NS":["1","x"]}}"#, "a[1]", "not a number"),
            (
                r#"{"a":{"M":{"b":{"S":""},"\u0062":{"S":""}}}}"#,
                "a.b",
                "same name",
            ),
        ];
        for (raw, path, message) in cases {
            let reject = reject(raw);
            assert_eq!(reject.path.as_deref(), Some(path), "{raw}");
            assert!(
                reject.message.contains(message),
                "{raw}: {}",
                reject.message
            );
            assert_eq!(reject.code, ReasonCode::MalformedAttributeValue, "{raw}");
        }
    }

    #[test]
    fn duplicates_are_found_in_large_maps_too() {
        let mut members: Vec<String> = (0..500).map(|n| format!(r#""n{n}":{{"S":"x"}}"#)).collect();
        assert!(
            Tape::default()
                .scan(format!("{{{}}}", members.join(",")).as_bytes())
                .is_ok()
        );
        members.push(r#""n77":{"S":"y"}"#.to_owned());
        assert_eq!(
            reject(&format!("{{{}}}", members.join(",")))
                .path
                .as_deref(),
            Some("n77")
        );
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |levels: usize| {
            format!(
                r#"{{"a":{}{{"S":"x"}}{}}}"#,
                r#"{"L":["#.repeat(levels),
                "]}".repeat(levels)
            )
        };
        assert!(Tape::default().scan(nested(32).as_bytes()).is_ok());
        assert!(reject(&nested(100_000)).message.contains("nested deeper"));
    }

    proptest! {
        #[test]
        fn base64_check_agrees_with_the_library(text in "[A-Za-z0-9+/=]{0,12}") {
            prop_assert_eq!(is_base64(text.as_bytes()), STANDARD.decode(&text).is_ok());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut tape = Tape::default();
            tape.scan(&bytes).ok();
            tape.scan_value(&bytes).ok();
        }

        #[test]
        fn no_json_like_text_panics(text in "([{}\\[\\]:,\"\\\\]|\"(S|N|B|SS|NS|M|L|NULL|BOOL)\":|\\PC){0,60}") {
            Tape::default().scan(text.as_bytes()).ok();
        }
    }
}
