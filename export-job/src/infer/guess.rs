//! Which attributes are the table's keys, where nobody says so: exports do not name them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use dynalake_pipeline::json::{Tag, Value, canonical_item};
use dynalake_schemas::KeyType;

/// Items that are looked at.
pub(super) const SAMPLE: u64 = 20_000;

/// A key attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName {
    /// Attribute name.
    pub name: String,
    /// Its type in the items.
    pub key_type: KeyType,
}

/// The key attributes of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyNames {
    /// Partition key.
    pub partition: KeyName,
    /// Sort key, if the table has one.
    pub sort: Option<KeyName>,
}

impl KeyNames {
    /// Whether the names say only what the attributes are for, as in most single-table designs.
    pub(super) fn are_generic(&self) -> bool {
        let sort = self.sort.as_ref().map_or("", |key| key.name.as_str());
        pair_rank(&self.partition.name, sort).is_some()
    }
}

const PAIRS: [(&str, &str); 7] = [
    ("pk", "sk"),
    ("partitionkey", "sortkey"),
    ("hashkey", "rangekey"),
    ("hashkey", "sortkey"),
    ("hash", "range"),
    ("hk", "sk"),
    ("pk", ""),
];

fn pair_rank(partition: &str, sort: &str) -> Option<usize> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    let (partition, sort) = (plain(partition), plain(sort));
    PAIRS
        .iter()
        .position(|(p, s)| *p == partition && *s == sort)
}

/// Attributes that may be keys, and the items' values of them.
#[derive(Debug, Default)]
pub(super) struct KeyGuess {
    items: u64,
    /// Scalar attributes of every item.
    candidates: Option<BTreeMap<String, KeyType>>,
    /// Hash of each candidate's value by item; each item once.
    rows: Vec<BTreeMap<String, u64>>,
    known: BTreeSet<u64>,
}

impl KeyGuess {
    pub(super) fn is_empty(&self) -> bool {
        self.items == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.items >= SAMPLE
    }

    pub(super) fn see(&mut self, raw: &[u8], item: Value<'_>) {
        self.items += 1;
        let canonical = canonical_item(raw).unwrap_or_default();
        if !self.known.insert(hash(&canonical)) {
            return;
        }
        let mut found = BTreeMap::new();
        let mut row = BTreeMap::new();
        for (name, value) in item.members() {
            let key_type = match value.tag() {
                Tag::S => KeyType::S,
                Tag::N => KeyType::N,
                Tag::B => KeyType::B,
                _ => continue,
            };
            let name = name.text().into_owned();
            row.insert(name.clone(), hash(&value.text()));
            found.insert(name, key_type);
        }
        match &mut self.candidates {
            None => self.candidates = Some(found),
            Some(candidates) => {
                candidates.retain(|name, key_type| found.get(name) == Some(key_type));
            }
        }
        let candidates = self.candidates.as_ref();
        row.retain(|name, _| candidates.is_some_and(|it| it.contains_key(name)));
        self.rows.push(row);
    }

    /// The keys, with what was given; `None` where no attributes are in every item and tell items
    /// apart.
    pub(super) fn decide(&self, partition: Option<&str>, sort: Option<&str>) -> Option<KeyNames> {
        let candidates = self.candidates.as_ref()?;
        let key = |name: &str| {
            let key_type = candidates.get(name).copied().unwrap_or(KeyType::S);
            KeyName {
                name: name.to_owned(),
                key_type,
            }
        };
        if let Some(partition) = partition {
            return Some(KeyNames {
                partition: key(partition),
                sort: sort.map(key),
            });
        }
        let names: Vec<&str> = candidates.keys().map(String::as_str).collect();
        let mut best: Option<(u32, &str, Option<&str>)> = None;
        for partition in &names {
            let sorts = names.iter().filter(|name| *name != partition);
            for sort in std::iter::once(None).chain(sorts.map(|name| Some(*name))) {
                let rank = rank(partition, sort);
                // Of changes, an item has several versions: names that say it need no proof.
                let is_named = sort.is_some_and(|sort| pair_rank(partition, sort).is_some());
                if best.is_none_or(|(least, ..)| rank < least)
                    && (is_named || self.is_unique(partition, sort))
                {
                    best = Some((rank, partition, sort));
                }
            }
        }
        best.map(|(_, partition, sort)| KeyNames {
            partition: key(partition),
            sort: sort.map(key),
        })
    }

    fn is_unique(&self, partition: &str, sort: Option<&str>) -> bool {
        let mut seen = HashSet::new();
        self.rows.iter().all(|row| {
            let sort = sort.and_then(|name| row.get(name).copied());
            seen.insert((row.get(partition).copied(), sort))
        })
    }
}

/// How unlikely names are to be those of the keys.
fn rank(partition: &str, sort: Option<&str>) -> u32 {
    if let Some(rank) = pair_rank(partition, sort.unwrap_or_default()) {
        return u32::try_from(rank).unwrap_or(u32::MAX);
    }
    let is_id = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.ends_with("id") || name.ends_with("key")
    };
    let id = if is_id(partition) { 0 } else { 4 };
    match sort {
        Some(sort) if sort.contains(['#', '|']) && !partition.contains(['#', '|']) => 10 + id,
        None if partition.eq_ignore_ascii_case("id") => 20,
        None => 30 + id,
        Some(sort) => {
            let lower = sort.to_ascii_lowercase();
            let is_order = ["time", "date", "sort", "range", "at"]
                .iter()
                .any(|word| lower.contains(word));
            40 + id + if is_order || is_id(sort) { 0 } else { 2 }
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
