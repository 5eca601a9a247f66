//! The parts of keys: which are words that name a type, and which are data.

use std::collections::{BTreeMap, BTreeSet};

use super::seen::{TextShape, text_shape};

/// Parts of a key that are looked at; longer keys end in `{rest*}`.
const PARTS: usize = 12;
/// Different texts of one part that are counted.
const DISTINCT: usize = 100;

/// Whether a text is a word as prefixes are, and no identifier.
pub(super) fn is_word(text: &str) -> bool {
    let stem = text
        .strip_prefix('$')
        .unwrap_or(text)
        .trim_end_matches(|last: char| last.is_ascii_digit());
    let is_numbered = stem.len() != text.strip_prefix('$').unwrap_or(text).len();
    let is_versioned = stem.ends_with('_');
    !stem.is_empty()
        && (!is_numbered || is_versioned)
        && text.len() <= 40
        && stem.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && stem
            .chars()
            .all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '-' | '.'))
}

/// The word that a key begins with and what stands before it: `USER` of `USER#1`, `#META` of `#META#1`,
/// `PROFILE` where the key is one word. `None` where the key begins with data.
pub(super) fn head<'a>(key: &'a str, separator: &str) -> Option<&'a str> {
    if separator.is_empty() {
        return is_word(key).then_some(key);
    }
    let start = key.len() - key.trim_start_matches(separator).len();
    let rest = key.get(start..)?;
    let word = rest.split(separator).next()?;
    is_word(word).then(|| key.get(..start + word.len()))?
}

/// Whether the separator follows the head.
pub(super) fn is_prefixed(key: &str, head: &str, separator: &str) -> bool {
    !separator.is_empty()
        && key
            .strip_prefix(head)
            .is_some_and(|rest| rest.starts_with(separator))
}

/// Separators in the order in which they are believed where keys have several.
const SEPARATORS: [&str; 4] = ["#", "|", "::", ":"];

/// Which of the usual separators follow words at the beginning of keys, and how often.
#[derive(Debug, Clone, Default)]
pub(super) struct SeparatorCounts([u64; 4]);

impl SeparatorCounts {
    pub(super) fn see(&mut self, key: &str) {
        for (count, separator) in self.0.iter_mut().zip(SEPARATORS) {
            let begins = key
                .trim_start_matches(separator)
                .split_once(separator)
                .is_some_and(|(word, _)| is_word(word));
            if begins {
                *count += 1;
                return;
            }
        }
    }

    /// How many keys begin with a word and a separator.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The one seen most; `#` where there is none.
    pub(super) fn most(&self) -> &'static str {
        let most = self.0.iter().max().copied().unwrap_or(0);
        let found = self.0.iter().zip(SEPARATORS).find(|(n, _)| **n == most);
        found.map_or("#", |(_, separator)| separator)
    }
}

/// The keys of one class, part by part.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// The keys whole: only whether all are times.
    whole: Part,
    /// What keys begin with; more than one is none in common.
    heads: BTreeSet<Option<String>>,
    lengths: BTreeSet<usize>,
    each: Vec<Part>,
}

/// What may be taken for a label in a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) separator: &'static str,
    /// `USER` of `USER#1`.
    pub(super) prefixes: bool,
    /// `PROFILE`.
    pub(super) lone_words: bool,
}

impl Rule {
    /// The label that a key begins with.
    pub(super) fn head<'a>(&self, key: &'a str) -> Option<&'a str> {
        let head = head(key, self.separator)?;
        let is_label = if is_prefixed(key, head, self.separator) {
            self.prefixes
        } else {
            self.lone_words || is_meta(head)
        };
        is_label.then_some(head)
    }
}

/// Words that many tables use for the one item that describes a partition.
pub(super) fn is_meta(word: &str) -> bool {
    const WORDS: [&str; 11] = [
        "meta", "metadata", "profile", "root", "info", "details", "detail", "a", "main", "header",
        "data",
    ];
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    WORDS.contains(&word.to_ascii_lowercase().as_str())
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
struct Part {
    texts: BTreeSet<String>,
    overflown: bool,
    not_date: bool,
    not_instant: bool,
    empty: bool,
}

impl Parts {
    pub(super) fn see(&mut self, key: &str, rule: Rule) {
        self.whole.see(key);
        if self.heads.len() < 2 {
            self.heads.insert(rule.head(key).map(str::to_owned));
        }
        let separator = rule.separator;
        let mut count = 0;
        for text in split(key, separator) {
            count += 1;
            if count > PARTS {
                break;
            }
            if self.each.len() < count {
                self.each.push(Part::default());
            }
            if let Some(part) = self.each.get_mut(count - 1) {
                part.see(text);
            }
        }
        self.lengths.insert(count);
    }

    /// What all keys begin with.
    pub(super) fn head(&self) -> Option<&str> {
        match self.heads.first() {
            Some(Some(head)) if self.heads.len() == 1 => Some(head),
            _ => None,
        }
    }

    /// How many different texts the keys have, as far as they were counted.
    pub(super) fn distinct(&self) -> usize {
        self.whole.texts.len()
    }

    /// The template that all keys have, with names for the captures; `None` where they share none.
    /// `head` is the literal beginning that the class has for sure.
    pub(super) fn template(&self, rule: Rule, captures: &mut Captures<'_>) -> Option<String> {
        if self.whole.ty() != "string" {
            let capture = captures.add("", self.whole.ty());
            return Some(capture.replace('}', "*}"));
        }
        let separator = rule.separator;
        let head = self.head();
        // Of a handful of keys nobody knows which constant part is a label.
        let is_many = self.each.iter().any(|part| part.texts.len() >= 3);
        let is_one_length = self.lengths.len() == 1 && !self.lengths.contains(&(PARTS + 1));
        let is_filled = self.each.iter().enumerate().all(|(at, part)| {
            !part.empty || part.is_constant() || at == 0 && part.texts.len() == 1
        });
        if !is_one_length || !is_filled {
            return head.map(|head| format!("{}{{_*}}", escape(&format!("{head}{separator}"))));
        }
        let head_parts = head.map_or(0, |head| split(head, separator).count());
        let mut pieces = Vec::new();
        let mut before = String::new();
        for (at, part) in self.each.iter().enumerate() {
            let is_last = at + 1 == self.each.len();
            let literal = part.texts.first().filter(|_| part.is_constant());
            let is_label = |text: &String| {
                text.is_empty()
                    || at < head_parts
                    || rule.prefixes && is_many && !is_last && is_word(text)
            };
            if let Some(text) = literal.filter(|text| is_label(text)) {
                before.clone_from(text);
                pieces.push(escape(text));
            } else {
                pieces.push(captures.add(&before, part.ty()));
            }
        }
        Some(pieces.join(separator))
    }
}

impl Part {
    fn see(&mut self, text: &str) {
        self.empty |= text.is_empty();
        let shape = text_shape(text);
        self.not_date |= shape != Some(TextShape::Date);
        self.not_instant |= shape != Some(TextShape::Instant);
        if self.texts.len() < DISTINCT {
            if !self.texts.contains(text) {
                self.texts.insert(text.to_owned());
            }
        } else if !self.texts.contains(text) {
            self.overflown = true;
        }
    }

    fn is_constant(&self) -> bool {
        self.texts.len() == 1 && !self.overflown
    }

    fn ty(&self) -> &'static str {
        if !self.not_date {
            "date"
        } else if !self.not_instant {
            "timestamp"
        } else {
            "string"
        }
    }
}

/// The captures of an entity, with names that no column has.
#[derive(Debug)]
pub(super) struct Captures<'a> {
    pub(super) taken: &'a mut BTreeSet<String>,
    pub(super) columns: BTreeMap<String, &'static str>,
}

impl Captures<'_> {
    /// A capture after the literal `before`.
    fn add(&mut self, before: &str, ty: &'static str) -> String {
        let word = dynalake_schemas::naming::column_name(before);
        let word = word.trim_matches(|c: char| c == '_' || c.is_ascii_digit());
        let end = if ty == "string" { "id" } else { ty };
        let base = if word.is_empty() {
            format!("key_{end}")
        } else {
            format!("{word}_{end}")
        };
        let mut name = base.clone();
        let mut number = 1;
        while self.taken.contains(&name) {
            number += 1;
            name = format!("{base}_{number}");
        }
        self.taken.insert(name.clone());
        self.columns.insert(name.clone(), ty);
        format!("{{{name}}}")
    }
}

fn split<'a>(key: &'a str, separator: &'a str) -> impl Iterator<Item = &'a str> {
    let whole = separator.is_empty().then_some(key);
    let parts = (!separator.is_empty()).then(|| key.split(separator));
    whole.into_iter().chain(parts.into_iter().flatten())
}

/// Text as a literal of a template.
pub(super) fn escape(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}
