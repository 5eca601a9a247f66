//! Which entity types a table holds: by an attribute that names the type, else by the words that keys
//! begin with.

use std::collections::{BTreeMap, BTreeSet};

use dynalake_pipeline::json::{Tag, Value};
use dynalake_schemas::naming::{column_name, is_table_name};

use super::guess::KeyNames;
use super::keys::{Parts, Rule, SeparatorCounts, is_meta};

/// Names of attributes that tell an item's type. The first ones mean nothing else.
const TYPE_NAMES: [&str; 21] = [
    "__edb_e__",
    "_et",
    "_type",
    "EntityType",
    "entityType",
    "entity_type",
    "ENTITY_TYPE",
    "itemType",
    "ItemType",
    "item_type",
    "recordType",
    "RecordType",
    "record_type",
    "objectType",
    "object_type",
    "__typename",
    "entity",
    "Entity",
    "type",
    "Type",
    "TYPE",
];
const STRONG_NAMES: usize = 7;
/// Entity types a table may have.
const TYPES: usize = 200;
/// Words that may begin a key at one place; more are data.
const HEADS: usize = 60;
/// Words that may be a whole sort key.
const LONE_WORDS: usize = 12;
/// Classes that are kept apart while reading.
const CLASSES: usize = 2000;

/// First look at all items: separators, and attributes that may tell the type.
#[derive(Debug, Default)]
pub(super) struct Survey {
    items: u64,
    partition: SeparatorCounts,
    sort: SeparatorCounts,
    types: BTreeMap<&'static str, TypeSeen>,
}

#[derive(Debug, Default)]
struct TypeSeen {
    count: u64,
    values: BTreeMap<String, BTreeSet<(String, String)>>,
    is_no_type: bool,
}

/// How items are told apart.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) type_attribute: Option<&'static str>,
    pub(super) partition: Rule,
    pub(super) sort: Rule,
    /// Alternatives that were turned down, and why.
    pub(super) rejected: Vec<String>,
}

impl Survey {
    pub(super) fn see(&mut self, item: Value<'_>, pk: &str, sk: &str) {
        self.items += 1;
        self.partition.see(pk);
        self.sort.see(sk);
        for name in TYPE_NAMES {
            let Some(value) = item.member(name) else {
                continue;
            };
            let seen = self.types.entry(name).or_default();
            seen.count += 1;
            let text = value.text();
            if value.tag() != Tag::S || text.is_empty() || text.len() > 64 {
                seen.is_no_type = true;
            }
            if seen.is_no_type {
                continue;
            }
            let beginnings = seen.values.entry(text.into_owned()).or_default();
            if beginnings.len() < 20 {
                beginnings.insert((letters(pk), letters(sk)));
            }
            if seen.values.len() > TYPES {
                seen.is_no_type = true;
                seen.values.clear();
            }
        }
    }

    pub(super) fn plan(&self, keys: &KeyNames) -> Plan {
        let mut rejected = Vec::new();
        let mut chosen = None;
        for (at, name) in TYPE_NAMES.into_iter().enumerate() {
            let Some(seen) = self.types.get(name) else {
                continue;
            };
            let problem = if chosen.is_some() {
                Some("another attribute was taken")
            } else if seen.is_no_type {
                Some("its values are no names of types")
            } else if seen.count.saturating_mul(5) < self.items.saturating_mul(4) {
                Some("less than four fifths of the items have it")
            } else if at >= STRONG_NAMES && !keys.are_generic() && !seen.follows_keys() {
                Some("its values do not go along with the beginnings of keys")
            } else {
                None
            };
            match problem {
                None => chosen = Some(name),
                Some(problem) => rejected.push(format!(
                    "attribute `{name}` ({} of {} items) as the type: {problem}",
                    seen.count, self.items
                )),
            }
        }
        let generic = keys.are_generic();
        let separator = if self.partition.total() >= self.sort.total() {
            self.partition.most()
        } else {
            self.sort.most()
        };
        let prefixes =
            |counts: &SeparatorCounts| generic || counts.total().saturating_mul(2) >= self.items;
        let sort_name = keys.sort.as_ref().map_or("", |key| key.name.as_str());
        // `State#Date` says itself that it begins with a value.
        let is_composite = sort_name.contains(['#', '|', ':']);
        if is_composite {
            rejected.push(format!(
                "the beginnings of `{sort_name}` as entity types: the attribute's name says that it is put together from values"
            ));
        }
        Plan {
            type_attribute: chosen,
            partition: Rule {
                separator,
                prefixes: prefixes(&self.partition),
                lone_words: false,
            },
            sort: Rule {
                separator,
                prefixes: !is_composite && prefixes(&self.sort),
                lone_words: !is_composite && generic,
            },
            rejected,
        }
    }
}

impl TypeSeen {
    /// Whether no two values share the beginnings of keys.
    fn follows_keys(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.values.len() > 1 && self.values.values().flatten().all(|pair| seen.insert(pair))
    }
}

fn letters(key: &str) -> String {
    let is_letter = |c: &char| c.is_ascii_alphabetic() || matches!(c, '_' | '$');
    key.chars().take_while(is_letter).take(24).collect()
}

/// What tells the items of a class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    /// The value of the type attribute.
    Type(String),
    /// What the keys begin with; `None` is data.
    Keys(Option<String>, Option<String>),
}

/// The items of a class.
#[derive(Debug, Clone, Default)]
pub(super) struct Class {
    pub(super) items: u64,
    pub(super) pk: Parts,
    pub(super) sk: Parts,
}

/// Second look: what classes there are, and which beginnings of sort keys are values of attributes.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By sign: items, and the attributes whose value the sort key begins with in all of them.
    signs: BTreeMap<Sign, (u64, Option<BTreeSet<String>>)>,
}

/// Beginnings of sort keys that are data, by beginning of the partition key.
#[derive(Debug, Default)]
pub(super) struct Data {
    partition: bool,
    all: BTreeSet<Option<String>>,
    lone: BTreeSet<Option<String>>,
    status: BTreeSet<(Option<String>, String)>,
}

impl Plan {
    /// The sign of an item, before what is data is known.
    fn sign(&self, item: Value<'_>, pk: &str, sk: &str) -> Sign {
        let named = self.type_attribute.and_then(|name| item.member(name));
        match named.filter(|value| value.tag() == Tag::S) {
            Some(value) => Sign::Type(value.text().into_owned()),
            None => Sign::Keys(
                self.partition.head(pk).map(str::to_owned),
                self.sort.head(sk).map(str::to_owned),
            ),
        }
    }
}

impl Heads {
    pub(super) fn see(&mut self, plan: &Plan, item: Value<'_>, pk: &str, sk: &str) {
        let sign = plan.sign(item, pk, sk);
        if self.signs.len() >= CLASSES && !self.signs.contains_key(&sign) {
            return;
        }
        let head = match &sign {
            Sign::Keys(_, Some(head)) => Some(head.clone()),
            _ => None,
        };
        let (items, equal) = self.signs.entry(sign).or_default();
        *items += 1;
        let Some(head) = head else { return };
        let is_equal = |value: Value<'_>| value.tag() == Tag::S && value.text() == head.as_str();
        match equal {
            None => {
                let names = item.members().filter(|(_, value)| is_equal(*value));
                *equal = Some(names.map(|(name, _)| name.text().into_owned()).collect());
            }
            Some(names) => names.retain(|name| item.member(name).is_some_and(is_equal)),
        }
    }

    /// What is data among the beginnings, and what was turned down for it.
    pub(super) fn data(&self, plan: &mut Plan) -> Data {
        let mut data = Data::default();
        let mut partitions = BTreeSet::new();
        let mut sorts: BTreeMap<&Option<String>, BTreeSet<&String>> = BTreeMap::new();
        let mut equal: BTreeMap<(&Option<String>, &String), Vec<&String>> = BTreeMap::new();
        for (sign, (_, names)) in &self.signs {
            let Sign::Keys(partition, sort) = sign else {
                continue;
            };
            partitions.insert(partition);
            let Some(sort) = sort else { continue };
            sorts.entry(partition).or_default().insert(sort);
            for name in names.iter().flatten() {
                equal.entry((partition, name)).or_default().push(sort);
            }
        }
        data.partition = partitions.len() > HEADS;
        for (partition, heads) in sorts {
            if heads.len() > HEADS {
                data.all.insert(partition.clone());
            } else if heads.len() > LONE_WORDS {
                data.lone.insert(partition.clone());
            }
        }
        for ((partition, name), heads) in equal {
            if heads.len() > 1 {
                plan.rejected.push(format!(
                    "{} beginnings of sort keys as entity types{}: they are the values of attribute `{name}`",
                    heads.len(),
                    partition.as_ref().map_or_else(String::new, |it| format!(" under `{it}`")),
                ));
                let heads = heads.into_iter().cloned();
                data.status
                    .extend(heads.map(|head| (partition.clone(), head)));
            }
        }
        if data.partition {
            plan.rejected.push(format!(
                "{} beginnings of partition keys as entity types: too many, so they are data",
                partitions.len()
            ));
        }
        data
    }
}

impl Data {
    /// The sign of an item.
    pub(super) fn sign(&self, plan: &Plan, item: Value<'_>, pk: &str, sk: &str) -> Sign {
        match plan.sign(item, pk, sk) {
            Sign::Keys(partition, Some(sort)) => {
                let is_lone = self.lone.contains(&partition) && sk == sort && !is_meta(&sort);
                let is_data = self.partition
                    || self.all.contains(&partition)
                    || is_lone
                    || self.status.contains(&(partition.clone(), sort.clone()));
                let partition = partition.filter(|_| !self.partition);
                Sign::Keys(partition, (!is_data).then_some(sort))
            }
            Sign::Keys(partition, None) => Sign::Keys(partition.filter(|_| !self.partition), None),
            sign @ Sign::Type(_) => sign,
        }
    }
}

/// A name for each class, in the order of the signs; `fallback` for one without words.
pub(super) fn names(classes: &BTreeMap<Sign, Class>, fallback: &str) -> Vec<String> {
    // A partition's own item has the plain name where it is the only one of that name.
    let mut wanted: BTreeMap<(String, bool), usize> = BTreeMap::new();
    for sign in classes.keys() {
        let is_plain = is_own(sign);
        *wanted.entry((short(sign, fallback), is_plain)).or_default() += 1;
    }
    let mut names = vec![String::new(); classes.len()];
    let mut taken = BTreeSet::new();
    for is_plain in [true, false] {
        for (sign, name) in classes.keys().zip(&mut names) {
            if is_own(sign) != is_plain {
                continue;
            }
            let mut base = short(sign, fallback);
            let is_alone = wanted.get(&(base.clone(), is_plain)) == Some(&1);
            if !is_alone || taken.contains(&base) {
                base = long(sign, fallback);
            }
            let mut number = 1;
            name.clone_from(&base);
            while !taken.insert(name.clone()) {
                number += 1;
                *name = format!("{base}_{number}");
            }
        }
    }
    names
}

/// Whether the items are what describes a partition: `USER#1` with `PROFILE` or `#METADATA#1`.
fn is_own(sign: &Sign) -> bool {
    match sign {
        Sign::Type(_) => true,
        Sign::Keys(_, sort) => sort.as_deref().is_none_or(is_meta),
    }
}

fn short(sign: &Sign, fallback: &str) -> String {
    match sign {
        Sign::Type(value) => table_name(value, fallback),
        Sign::Keys(partition, Some(sort)) if !is_meta(sort) || partition.is_none() => {
            table_name(sort, fallback)
        }
        Sign::Keys(Some(partition), _) => table_name(partition, fallback),
        Sign::Keys(None, _) => fallback.to_owned(),
    }
}

fn long(sign: &Sign, fallback: &str) -> String {
    match sign {
        Sign::Type(value) => table_name(value, fallback),
        Sign::Keys(partition, sort) => {
            let words = [partition, sort].into_iter().flatten();
            let words: Vec<String> = words.map(|word| table_name(word, fallback)).collect();
            match words.as_slice() {
                [] => fallback.to_owned(),
                [first, second] if first == second => first.clone(),
                several => several.join("_"),
            }
        }
    }
}

/// A table's name from any text.
pub(super) fn table_name(text: &str, fallback: &str) -> String {
    let name = column_name(text);
    let name = name.trim_matches('_');
    let name: String = name.chars().take(100).collect();
    let reserved = ["unmatched", "quarantine", "lake"].contains(&name.as_str());
    if is_table_name(&name) && !reserved {
        name
    } else if is_table_name(&format!("t_{name}")) {
        format!("t_{name}")
    } else {
        fallback.to_owned()
    }
}
