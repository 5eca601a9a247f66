//! Which columns (or struct members) an attribute fills.

use dynalake_schemas::{AttributeName, naming};

use crate::json::{Value, name_hash};

/// Names remembered per entity or struct; beyond it names are worked out anew each time, so that
/// maps whose names are data cannot fill the memory.
const MAX_REMEMBERED: usize = 4096;
const BUCKETS: usize = 256;

/// Index of a name in its [`Names`].
pub(crate) type NameId = usize;

/// What a name means here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    /// Columns that take this attribute.
    pub(crate) claims: Vec<Claim>,
    /// Plumbing: not drift.
    pub(crate) ignored: bool,
}

/// One column's claim on an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) column: usize,
    /// The attribute has the column's own name (or the one it asks for), so that the column alone
    /// tells the attribute's name. Otherwise only the naming function links them.
    pub(crate) by_name: bool,
}

/// Attribute names of one entity or struct, remembered as they are met.
#[derive(Debug)]
pub(crate) struct Names {
    wanted: Vec<(usize, AttributeName)>,
    ignore: Vec<String>,
    known: Vec<Name>,
    buckets: Vec<Vec<(u32, NameId)>>,
}

impl Names {
    /// For these columns; `ignore` as in [`dynalake_schemas::Source::ignore`].
    pub(crate) fn new(wanted: Vec<(usize, AttributeName)>, ignore: &[String]) -> Self {
        Self {
            wanted,
            ignore: ignore.to_vec(),
            known: Vec::new(),
            buckets: vec![Vec::new(); BUCKETS],
        }
    }

    /// The meaning of a member's name. With `Err` it is not remembered (too many names).
    pub(crate) fn resolve(&mut self, name: Value<'_>) -> Result<NameId, Name> {
        let hash = name.hash();
        let text = name.text();
        let bucket = usize::from(hash.to_le_bytes()[0]);
        let hits = self.buckets.get(bucket).into_iter().flatten();
        for &(_, id) in hits.filter(|(other, _)| *other == hash) {
            if self.known.get(id).is_some_and(|known| known.text == text) {
                return Ok(id);
            }
        }
        let found = self.work_out(&text);
        if self.known.len() >= MAX_REMEMBERED {
            return Err(found);
        }
        let id = self.known.len();
        self.known.push(found);
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            bucket.push((name_hash(text.as_bytes()), id));
        }
        Ok(id)
    }

    /// A name that was resolved before.
    pub(crate) fn get(&self, id: NameId) -> Option<&Name> {
        self.known.get(id)
    }

    fn work_out(&self, text: &str) -> Name {
        let mut claims: Vec<Claim> = self
            .wanted
            .iter()
            .filter(|(_, wanted)| match wanted {
                AttributeName::Exact(name) | AttributeName::Named(name) => name == text,
            })
            .map(|&(column, _)| Claim {
                column,
                by_name: true,
            })
            .collect();
        if claims.is_empty() {
            let derived = naming::column_name(text);
            claims.extend(
                self.wanted
                    .iter()
                    .filter(|(_, wanted)| matches!(wanted, AttributeName::Named(name) if naming::column_name(name) == derived))
                    .map(|&(column, _)| Claim { column, by_name: false }),
            );
        }
        let ignored = claims.is_empty()
            && self
                .ignore
                .iter()
                .any(|pattern| match pattern.strip_suffix('*') {
                    Some(prefix) => text.starts_with(prefix),
                    None => pattern == text,
                });
        Name {
            text: text.to_owned(),
            claims,
            ignored,
        }
    }
}

/// Which member fills a column of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// No member.
    Empty,
    /// This member (its position on the tape, or in a list of the caller's).
    Filled {
        member: usize,
        by_name: bool,
        /// No other member claims the column. Otherwise the column cannot tell whose value it has.
        alone: bool,
    },
    /// Two members claim the column and neither has its own name.
    Contested,
}

impl Slot {
    /// Another member claims the column. The one with the column's own name wins.
    pub(crate) fn claim(&mut self, member: usize, by_name: bool) {
        *self = match (*self, by_name) {
            (
                Self::Filled {
                    member,
                    by_name: true,
                    ..
                },
                false,
            ) => Self::Filled {
                member,
                by_name: true,
                alone: false,
            },
            (Self::Filled { .. } | Self::Contested, false) => Self::Contested,
            (Self::Empty, _) => Self::Filled {
                member,
                by_name,
                alone: true,
            },
            (Self::Filled { .. } | Self::Contested, true) => Self::Filled {
                member,
                by_name,
                alone: false,
            },
        };
    }
}
