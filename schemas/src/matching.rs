//! Which entity an item belongs to: templates against key texts, conditions against attributes.
//!
//! A capture takes as little as it can; later parts of the template decide how far it must go. The
//! work is bounded by the number of segments times the length of the key, whatever the key says.
//! Nothing is allocated but the list of captures the caller lends (and, for keys that make a
//! template try many ways, a list of those that failed).

use crate::model::{
    AttributeCondition, AttributeTest, AttributeView, CaptureKind, Catalog, Matcher, Scalar,
    Segment, Template,
};

impl Catalog {
    /// The entity an item belongs to, as an index into [`Catalog::entities`]. Never fails: what no
    /// entity takes belongs to the last one, `unmatched`.
    ///
    /// `attribute` looks a top-level attribute up by its exact name; it may be asked for the same
    /// one several times. `captures` is filled for that entity, in the order of
    /// [`Matcher::captures`]; `None` where another alternative of the template matched.
    pub fn route<'a, 'k>(
        &self,
        pk: &'k str,
        sk: Option<&'k str>,
        attribute: &mut dyn FnMut(&str) -> Option<AttributeView<'a>>,
        captures: &mut Vec<Option<&'k str>>,
    ) -> usize {
        for (index, entity) in self.entities.iter().enumerate() {
            let matcher = &entity.matcher;
            if matcher.matches_keys(pk, sk, captures)
                && matcher
                    .attributes
                    .iter()
                    .all(|condition| condition.holds(attribute(&condition.attribute)))
            {
                return index;
            }
        }
        captures.clear();
        self.unmatched_index()
    }

    /// All entities an item with these keys can belong to, in matching order. `unmatched` is among
    /// them only if no entity takes every such item by its keys alone.
    pub fn possible_by_keys(&self, pk: &str, sk: Option<&str>) -> Vec<usize> {
        let mut possible = Vec::new();
        let mut captures = Vec::new();
        for (index, entity) in self.entities.iter().enumerate() {
            if entity.matcher.matches_keys(pk, sk, &mut captures) {
                possible.push(index);
                if entity.matcher.attributes.is_empty() {
                    break;
                }
            }
        }
        possible
    }

    /// Fills `captures` for the entity with this index; `false` if its key conditions do not hold.
    pub fn entity_captures<'k>(
        &self,
        index: usize,
        pk: &'k str,
        sk: Option<&'k str>,
        captures: &mut Vec<Option<&'k str>>,
    ) -> bool {
        match self.entities.get(index) {
            Some(entity) => entity.matcher.matches_keys(pk, sk, captures),
            None => false,
        }
    }

    /// Index of the built-in entity `unmatched`.
    pub fn unmatched_index(&self) -> usize {
        self.entities.len().saturating_sub(1)
    }
}

impl Matcher {
    /// Whether the key conditions hold; fills `captures` if so. A capture that stands in both
    /// templates must have the same text in both keys.
    pub fn matches_keys<'k>(
        &self,
        pk: &'k str,
        sk: Option<&'k str>,
        captures: &mut Vec<Option<&'k str>>,
    ) -> bool {
        captures.clear();
        captures.resize(self.captures.len(), None);
        if self.partition_key.is_empty() {
            return self.matches_sort_key(sk, captures);
        }
        for template in &self.partition_key {
            if template.matches(pk, captures) {
                if self.matches_sort_key(sk, captures) {
                    return true;
                }
                captures.fill(None);
            }
        }
        false
    }

    fn matches_sort_key<'k>(&self, sk: Option<&'k str>, captures: &mut [Option<&'k str>]) -> bool {
        if self.sort_key.is_empty() {
            return true;
        }
        sk.is_some_and(|sk| {
            self.sort_key
                .iter()
                .any(|template| template.matches(sk, captures))
        })
    }

    /// Whether keys alone decide that an item belongs here.
    pub fn by_keys_alone(&self) -> bool {
        self.attributes.is_empty()
    }
}

impl AttributeCondition {
    /// Whether the condition holds for what the attribute is; `None` is absent.
    pub fn holds(&self, found: Option<AttributeView<'_>>) -> bool {
        match (&self.test, found) {
            (AttributeTest::Exists(wanted), found) => found.is_some() == *wanted,
            (AttributeTest::OneOf(scalars), Some(found)) => {
                scalars.iter().any(|scalar| match (scalar, found) {
                    (Scalar::S(wanted), AttributeView::S(text)) => wanted == text,
                    (Scalar::N(wanted), AttributeView::N(number)) => wanted == number,
                    (Scalar::Bool(wanted), AttributeView::Bool(value)) => *wanted == value,
                    _ => false,
                })
            }
            (AttributeTest::Prefix(prefix), Some(AttributeView::S(text))) => {
                text.starts_with(prefix.as_str())
            }
            (AttributeTest::Suffix(suffix), Some(AttributeView::S(text))) => {
                text.ends_with(suffix.as_str())
            }
            _ => false,
        }
    }
}

impl Template {
    /// Whether the whole text matches. Fills the captures that stand in this template; those that
    /// are `Some` before must match the same text. On `false` none is changed.
    pub fn matches<'k>(&self, text: &'k str, captures: &mut [Option<&'k str>]) -> bool {
        let mut walk = Walk {
            template: self,
            text,
            tried: 0,
            failed: Vec::new(),
        };
        walk.from(0, text, captures)
    }
}

/// Ways that may fail before failures are remembered.
const FREE_TRIES: u32 = 16;

struct Walk<'t, 'k> {
    template: &'t Template,
    text: &'k str,
    tried: u32,
    /// Bit set of (segment, position) from which the rest is known not to match.
    failed: Vec<u64>,
}

impl<'k> Walk<'_, 'k> {
    /// Matches `rest`, a suffix of the text, from this segment on.
    fn from(&mut self, at: usize, rest: &'k str, captures: &mut [Option<&'k str>]) -> bool {
        match self.template.segments.get(at) {
            None => rest.is_empty(),
            Some(Segment::Literal(literal)) => match rest.strip_prefix(literal.as_str()) {
                Some(rest) => self.from(at + 1, rest, captures),
                None => false,
            },
            Some(Segment::Capture { index, kind }) => {
                let slot =
                    index.and_then(|index| captures.get(index).copied().map(|at| (index, at)));
                if let Some((_, Some(bound))) = slot {
                    let fits = self.extent(*kind, bound) == Some(bound.len());
                    return match rest.strip_prefix(bound) {
                        Some(rest) if fits => self.from(at + 1, rest, captures),
                        _ => false,
                    };
                }
                if self.is_failed(at, rest) {
                    return false;
                }
                let index = slot.map(|(index, _)| index);
                let found = self.capture(at, index, *kind, rest, captures);
                if !found {
                    self.remember_failure(at, rest);
                }
                found
            }
        }
    }

    fn capture(
        &mut self,
        at: usize,
        index: Option<usize>,
        kind: CaptureKind,
        rest: &'k str,
        captures: &mut [Option<&'k str>],
    ) -> bool {
        let Some(extent) = self.extent(kind, rest) else {
            return false;
        };
        if let Some(length) = kind.fixed_length() {
            return extent == length && self.take(at, index, length, rest, captures);
        }
        match (
            self.template.segments.get(at + 1),
            self.template.segments.get(at + 2),
        ) {
            (None, _) => extent == rest.len() && self.take(at, index, extent, rest, captures),
            (Some(Segment::Literal(literal)), None) => {
                // The template ends in this literal: there is only one way.
                let Some(taken) = rest.strip_suffix(literal.as_str()) else {
                    return false;
                };
                !taken.is_empty()
                    && taken.len() <= extent
                    && self.take(at, index, taken.len(), rest, captures)
            }
            (Some(Segment::Literal(literal)), Some(_)) => {
                let mut end = first_length(rest);
                while end <= extent {
                    let Some(found) = rest.get(end..).and_then(|tail| tail.find(literal.as_str()))
                    else {
                        return false;
                    };
                    end += found;
                    if end > extent {
                        return false;
                    }
                    if self.take(at, index, end, rest, captures) {
                        return true;
                    }
                    end += rest.get(end..).map_or(1, first_length);
                }
                false
            }
            (Some(Segment::Capture { .. }), _) => {
                let mut end = first_length(rest);
                while end <= extent {
                    if self.take(at, index, end, rest, captures) {
                        return true;
                    }
                    end += rest.get(end..).map_or(1, first_length);
                }
                false
            }
        }
    }

    /// Lets the capture at this segment take `length` bytes, and goes on.
    fn take(
        &mut self,
        at: usize,
        index: Option<usize>,
        length: usize,
        rest: &'k str,
        captures: &mut [Option<&'k str>],
    ) -> bool {
        let Some((taken, after)) = rest.split_at_checked(length) else {
            return false;
        };
        if let Some(slot) = index.and_then(|index| captures.get_mut(index)) {
            *slot = Some(taken);
        }
        if self.from(at + 1, after, captures) {
            return true;
        }
        self.tried = self.tried.saturating_add(1);
        if let Some(slot) = index.and_then(|index| captures.get_mut(index)) {
            *slot = None;
        }
        false
    }

    /// How many bytes a capture of this kind can take at most; `None` when it cannot take any.
    fn extent(&self, kind: CaptureKind, rest: &str) -> Option<usize> {
        let bytes = rest.as_bytes();
        let extent = match kind {
            CaptureKind::Rest => bytes.len(),
            CaptureKind::Any => match self.template.separator.as_str() {
                "" => bytes.len(),
                separator => match rest.find(separator) {
                    None => bytes.len(),
                    // All but the separator's last character.
                    Some(found) => {
                        let last = separator.chars().next_back().map_or(1, char::len_utf8);
                        found + separator.len() - last
                    }
                },
            },
            CaptureKind::Int => bytes
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count(),
            CaptureKind::Date => fixed(bytes, 10, |at, byte| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            })?,
            CaptureKind::Uuid => fixed(bytes, 36, |at, byte| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })?,
            CaptureKind::Ulid => fixed(bytes, 26, |at, byte| match at {
                0 => matches!(byte, b'0'..=b'7'),
                _ => is_crockford(byte),
            })?,
        };
        (extent > 0).then_some(extent)
    }

    fn is_failed(&self, at: usize, rest: &str) -> bool {
        let bit = self.bit(at, rest);
        self.failed
            .get(bit / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    fn remember_failure(&mut self, at: usize, rest: &str) {
        if self.tried < FREE_TRIES {
            return;
        }
        let bit = self.bit(at, rest);
        if self.failed.is_empty() {
            let bits = self.template.segments.len() * (self.text.len() + 1);
            self.failed.resize(bits / 64 + 1, 0);
        }
        if let Some(word) = self.failed.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    fn bit(&self, at: usize, rest: &str) -> usize {
        at * (self.text.len() + 1) + rest.len()
    }
}

/// Bytes of the first character.
fn first_length(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

/// The length, if the first `length` bytes all pass.
fn fixed(bytes: &[u8], length: usize, accept: impl Fn(usize, u8) -> bool) -> Option<usize> {
    let bytes = bytes.get(..length)?;
    bytes
        .iter()
        .enumerate()
        .all(|(at, byte)| accept(at, *byte))
        .then_some(length)
}

/// Crockford's base 32 in either case, as ULIDs use it: no I, L, O, U.
pub(crate) fn is_crockford(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() && !matches!(byte.to_ascii_uppercase(), b'I' | b'L' | b'O' | b'U')
}

#[cfg(test)]
pub(crate) mod tests;
