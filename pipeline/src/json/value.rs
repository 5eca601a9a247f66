//! A look at one node of a [`Tape`].

use std::borrow::Cow;

use super::tape::{Node, Tag, Tape};
use super::text::unescape;
use crate::number;

/// One AttributeValue of a scanned item. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    tape: &'a Tape,
    text: &'a str,
    at: usize,
}

impl<'a> Value<'a> {
    /// The root of a tape that was scanned from this text: the item as a map, or the one
    /// AttributeValue. `None` when the tape is empty or the text is not UTF-8.
    pub fn root(tape: &'a Tape, raw: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(raw).ok()?;
        tape.nodes.first().map(|_| Self { tape, text, at: 0 })
    }

    fn node(self) -> Node {
        let nothing = Node {
            tag: Tag::Null,
            raw: false,
            start: 0,
            end: 0,
            next: u32::MAX,
        };
        self.tape.nodes.get(self.at).copied().unwrap_or(nothing)
    }

    /// What it is.
    pub fn tag(self) -> Tag {
        self.node().tag
    }

    /// Position in its tape: equal for the same value of the same item.
    pub(crate) fn position(self) -> usize {
        self.at
    }

    /// The value at a position of the same tape.
    pub(crate) fn at(self, position: usize) -> Self {
        Self {
            at: position,
            ..self
        }
    }

    fn raw(self) -> &'a str {
        let node = self.node();
        let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        self.text
            .get(at(node.start)..at(node.end))
            .unwrap_or_default()
    }

    /// The text of an `S`, `B` (base64) or name; for a number its text as it stands.
    pub fn text(self) -> Cow<'a, str> {
        if self.node().raw {
            unescape(self.raw()).unwrap_or_default()
        } else {
            Cow::Borrowed(self.raw())
        }
    }

    /// The canonical plain decimal of an `N`.
    pub fn number(self) -> Cow<'a, str> {
        if !self.node().raw {
            return Cow::Borrowed(self.raw());
        }
        number::canonical(&self.text())
            .map(Cow::Owned)
            .unwrap_or_default()
    }

    /// Hash of a name's text.
    pub(crate) fn hash(self) -> u32 {
        self.node().next
    }

    /// The elements of a list or set.
    pub fn elements(self) -> impl Iterator<Item = Self> + Clone {
        let end = self.end();
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let element = self.at(at);
            (at < end).then(|| {
                at = element.end();
                element
            })
        })
    }

    /// Names and values of a map, in the order of the text.
    pub fn members(self) -> impl Iterator<Item = (Self, Self)> + Clone {
        let end = self.end();
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let (name, value) = (self.at(at), self.at(at + 1));
            (at < end).then(|| {
                at = value.end();
                (name, value)
            })
        })
    }

    /// The member of this name.
    pub fn member(self, name: &str) -> Option<Self> {
        let hash = super::name_hash(name.as_bytes());
        self.members()
            .find(|(found, _)| found.hash() == hash && found.text() == name)
            .map(|(_, value)| value)
    }

    /// Index after this node and all below it.
    fn end(self) -> usize {
        usize::try_from(self.node().next).unwrap_or(usize::MAX)
    }
}
