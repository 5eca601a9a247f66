//! Schemas from items: which entity types a table holds, how they are recognised, and the tightest
//! type of every attribute.
//!
//! ```text
//! items ─ guess (key names) ─ classes (type attribute, or words that begin keys)
//!       ─ keys (templates) ─ route by the drafted catalog ─ seen (types) ─ write (files)
//! ```
//!
//! An [`Inference`] is shown all items once per pass, and keeps counts and bounded sets, never items.
//! What an attribute is, is gathered by the entity that the drafted catalog itself routes the item
//! to, so that a conversion with the files meets the very same values.

mod classes;
mod guess;
mod keys;
pub mod read;
mod report;
mod seen;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dynalake_pipeline::json::{Tag, Tape, Value};
use dynalake_schemas::naming::{AttributeCase, column_name};
use dynalake_schemas::{AttributeView, Catalog, LAKE_FILE, SchemaFiles};

use self::classes::{Class, Data, Heads, Plan, Sign, Survey};
use self::guess::KeyGuess;
use self::seen::Seen;
use self::write::{COLUMNS, EntityFile};

pub use self::guess::{KeyName, KeyNames};
pub use self::report::{EntityReport, InferReport};

/// What the caller knows.
#[derive(Debug, Clone, Default)]
pub struct InferOptions {
    /// Name of the lake database.
    pub database: String,
    /// Name of the DynamoDB table.
    pub table: Option<String>,
    /// Partition key attribute; guessed when absent.
    pub partition_key: Option<String>,
    /// Sort key attribute; with a given partition key, absent means that there is none.
    pub sort_key: Option<String>,
}

/// Inferred schema files, and how they came about.
#[derive(Debug, Clone)]
pub struct Inferred {
    /// Name and text of each file.
    pub files: Vec<(String, String)>,
    /// The evidence.
    pub report: InferReport,
}

/// Why nothing was inferred.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    /// No item could be read.
    #[error("no item was found")]
    NoItems,
    /// The keys are not to be told.
    #[error("no attributes are in every item and tell all items apart")]
    NoKeys,
    /// The drafted schemas do not stand `check`.
    #[error("the inferred schemas do not hold together: {0}")]
    Draft(String),
}

/// What the next pass is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// All items are to be shown again.
    Again,
    /// That was the last pass.
    Done,
}

/// An inference under way.
#[derive(Debug)]
pub struct Inference {
    options: InferOptions,
    tape: Tape,
    phase: Phase,
    items: u64,
    unreadable: u64,
    keys: Option<KeyNames>,
    plan: Option<Plan>,
    data: Data,
    classes: BTreeMap<Sign, Class>,
    draft: Option<Draft>,
}

#[derive(Debug)]
enum Phase {
    Keys(KeyGuess),
    Survey(Survey),
    Heads(Heads),
    Classes,
    Columns,
    Done,
}

/// The drafted catalog, and what its entities' items have.
#[derive(Debug)]
struct Draft {
    catalog: Catalog,
    by_name: BTreeMap<String, Gathered>,
    priorities: Vec<i32>,
    names: Vec<String>,
}

#[derive(Debug, Default)]
struct Gathered {
    items: u64,
    bytes: u64,
    attributes: BTreeMap<String, Seen>,
}

impl Inference {
    /// Begins with the first pass.
    pub fn new(options: InferOptions) -> Self {
        Self {
            options,
            tape: Tape::default(),
            phase: Phase::Keys(KeyGuess::default()),
            items: 0,
            unreadable: 0,
            keys: None,
            plan: None,
            data: Data::default(),
            classes: BTreeMap::new(),
            draft: None,
        }
    }

    /// Takes note of an item in DynamoDB JSON. `false`: this pass needs no more.
    pub fn item(&mut self, raw: &[u8]) -> bool {
        let mut tape = std::mem::take(&mut self.tape);
        let root = tape.scan(raw).ok().and_then(|()| Value::root(&tape, raw));
        let go_on = if let Some(item) = root {
            self.value(raw, item)
        } else {
            self.unreadable();
            true
        };
        self.tape = tape;
        go_on
    }

    /// Takes note of a line without an item.
    pub fn unreadable(&mut self) {
        if matches!(self.phase, Phase::Columns) {
            self.unreadable += 1;
        }
    }

    fn value(&mut self, raw: &[u8], item: Value<'_>) -> bool {
        if let Phase::Keys(guess) = &mut self.phase {
            guess.see(raw, item);
            return !guess.is_full();
        }
        let Some(keys) = &self.keys else { return false };
        let text = |name: &str| {
            let value = item.member(name)?;
            match value.tag() {
                Tag::S | Tag::B => Some(value.text()),
                Tag::N => Some(value.number()),
                _ => None,
            }
        };
        let sort = keys.sort.as_ref().map(|sort| text(&sort.name));
        let (Some(pk), Some(sk)) = (
            text(&keys.partition.name),
            sort.clone().unwrap_or(Some(std::borrow::Cow::Borrowed(""))),
        ) else {
            self.unreadable();
            return true;
        };
        match (&mut self.phase, &self.plan) {
            (Phase::Survey(survey), _) => survey.see(item, &pk, &sk),
            (Phase::Heads(heads), Some(plan)) => heads.see(plan, item, &pk, &sk),
            (Phase::Classes, Some(plan)) => {
                let sign = self.data.sign(plan, item, &pk, &sk);
                let class = self.classes.entry(sign).or_default();
                class.items += 1;
                class.pk.see(&pk, plan.partition);
                class.sk.see(&sk, plan.sort);
            }
            (Phase::Columns, _) => {
                self.items += 1;
                if let Some(draft) = &mut self.draft {
                    draft.see(raw, item, &pk, sort.is_some().then_some(sk.as_ref()));
                }
            }
            _ => {}
        }
        true
    }

    /// Ends a pass.
    ///
    /// # Errors
    /// Nothing can be inferred from what was seen.
    pub fn next_pass(&mut self) -> Result<Then, InferError> {
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Keys(guess) => {
                if guess.is_empty() {
                    return Err(InferError::NoItems);
                }
                let (partition, sort) = (&self.options.partition_key, &self.options.sort_key);
                let keys = guess.decide(partition.as_deref(), sort.as_deref());
                self.keys = Some(keys.ok_or(InferError::NoKeys)?);
                self.phase = Phase::Survey(Survey::default());
            }
            Phase::Survey(survey) => {
                self.plan = self.keys.as_ref().map(|keys| survey.plan(keys));
                self.phase = Phase::Heads(Heads::default());
            }
            Phase::Heads(heads) => {
                if let Some(plan) = &mut self.plan {
                    self.data = heads.data(plan);
                }
                self.phase = Phase::Classes;
            }
            Phase::Classes => {
                self.draft = Some(self.drafted()?);
                self.phase = Phase::Columns;
            }
            Phase::Columns | Phase::Done => return Ok(Then::Done),
        }
        Ok(Then::Again)
    }

    fn drafted(&self) -> Result<Draft, InferError> {
        let table = self.options.table.as_deref();
        let fallback = classes::table_name(table.unwrap_or(&self.options.database), "item");
        let names = classes::names(&self.classes, &fallback);
        let usual: Vec<i32> = self
            .classes
            .keys()
            .map(|sign| match sign {
                Sign::Keys(..)
                    if self
                        .plan
                        .as_ref()
                        .is_some_and(|it| it.type_attribute.is_some()) =>
                {
                    -1
                }
                _ => 0,
            })
            .collect();
        // Where two entities could take one item, the one with more words goes first.
        let ranked = self
            .classes
            .keys()
            .zip(&usual)
            .map(|(sign, priority)| match sign {
                Sign::Type(_) => *priority,
                Sign::Keys(partition, sort) => {
                    let words = i32::from(partition.is_some()) + 2 * i32::from(sort.is_some());
                    priority * 10 + words
                }
            });
        let ranked: Vec<i32> = ranked.collect();
        let mut problem = String::new();
        for priorities in [usual, ranked] {
            let by_name = BTreeMap::new();
            let files = self.files(&names, &priorities, &by_name);
            let files: SchemaFiles = files.into_iter().collect();
            match Catalog::from_files(&files, Path::new("inferred")) {
                Ok(catalog) => {
                    return Ok(Draft {
                        catalog,
                        by_name,
                        priorities,
                        names,
                    });
                }
                Err(problems) => problem = problems.to_string(),
            }
        }
        Err(InferError::Draft(problem))
    }

    fn files(
        &self,
        names: &[String],
        priorities: &[i32],
        by_name: &BTreeMap<String, Gathered>,
    ) -> Vec<(String, String)> {
        let (Some(keys), Some(plan)) = (&self.keys, &self.plan) else {
            return Vec::new();
        };
        let empty = Gathered::default();
        let attributes: BTreeSet<&str> = by_name
            .values()
            .flat_map(|it| it.attributes.keys().map(String::as_str))
            .collect();
        let is_key = |name: &str| {
            name == keys.partition.name || keys.sort.as_ref().is_some_and(|it| it.name == name)
        };
        let mut ignore: BTreeSet<String> = attributes
            .iter()
            .filter(|name| is_index_key(name) && !is_key(name))
            .map(|name| (*name).to_owned())
            .collect();
        ignore.insert("aws:rep:*".to_owned());
        ignore.extend(plan.type_attribute.map(str::to_owned));
        let is_plumbing =
            |name: &str| is_key(name) || ignore.contains(name) || name.starts_with("aws:rep:");
        let data_names = attributes.iter().copied().filter(|name| !is_plumbing(name));
        let case: AttributeCase = write::case_of(&data_names);
        let lake = write::lake(
            &self.options.database,
            self.options.table.as_deref(),
            keys,
            plan,
            case,
            &ignore,
        );
        let mut files = vec![(LAKE_FILE.to_owned(), lake)];
        for (((sign, class), name), priority) in self.classes.iter().zip(names).zip(priorities) {
            let gathered = by_name.get(name).unwrap_or(&empty);
            let file = EntityFile {
                name,
                sign,
                class,
                attributes: &gathered.attributes,
                items: gathered.items,
                priority: *priority,
            };
            let text = write::entity(&file, keys, plan, case, &is_plumbing);
            files.push((format!("{name}.toml"), text));
        }
        files
    }

    /// The files, after the last pass.
    ///
    /// # Errors
    /// The files do not stand `check`, which is a fault of this code.
    pub fn finish(self) -> Result<Inferred, InferError> {
        let (Some(draft), Some(keys), Some(plan)) = (&self.draft, &self.keys, &self.plan) else {
            return Err(InferError::NoItems);
        };
        if self.items == 0 {
            return Err(InferError::NoItems);
        }
        let files = self.files(&draft.names, &draft.priorities, &draft.by_name);
        let checked: SchemaFiles = files.iter().cloned().collect();
        let catalog = Catalog::from_files(&checked, Path::new("inferred"))
            .map_err(|problems| InferError::Draft(problems.to_string()))?;
        let mut entities = Vec::new();
        let mut matched = 0;
        for ((sign, class), name) in self.classes.iter().zip(&draft.names) {
            let gathered = draft.by_name.get(name);
            let items = gathered.map_or(0, |it| it.items);
            matched += items;
            let found = catalog.entities.iter().find(|it| it.name == *name);
            let shape = |templates: &[dynalake_schemas::Template]| {
                templates.first().map_or_else(|| "…".to_owned(), masked)
            };
            let (by, confidence) = self.evidence(sign, class, plan);
            entities.push(EntityReport {
                name: name.clone(),
                items,
                bytes: gathered.map_or(0, |it| it.bytes),
                columns: found.map_or(0, |it| it.columns.len()),
                confidence,
                by,
                partition_key: found
                    .map_or_else(String::new, |it| shape(&it.matcher.partition_key)),
                sort_key: found.map_or_else(String::new, |it| shape(&it.matcher.sort_key)),
            });
        }
        let report = InferReport {
            items: self.items,
            unreadable: self.unreadable,
            partition_key: keys.partition.name.clone(),
            sort_key: keys.sort.as_ref().map(|it| it.name.clone()),
            keys_guessed: self.options.partition_key.is_none(),
            type_attribute: plan.type_attribute.map(str::to_owned),
            separator: plan.partition.separator.to_owned(),
            entities,
            unmatched: self.items - matched,
            rejected: plan.rejected.clone(),
        };
        Ok(Inferred { files, report })
    }

    fn evidence(&self, sign: &Sign, class: &Class, plan: &Plan) -> (String, &'static str) {
        match sign {
            Sign::Type(value) => (
                format!("{} = {value}", plan.type_attribute.unwrap_or_default()),
                "high",
            ),
            Sign::Keys(None, None) if self.classes.len() == 1 => {
                ("the only entity".to_owned(), "high")
            }
            Sign::Keys(None, None) => ("all other keys".to_owned(), "low"),
            Sign::Keys(..) => {
                let is_many = class.pk.distinct() >= 3;
                let by = "the beginnings of keys".to_owned();
                (by, if is_many { "high" } else { "medium" })
            }
        }
    }
}

impl Draft {
    fn see(&mut self, raw: &[u8], item: Value<'_>, pk: &str, sk: Option<&str>) {
        let mut scratch = Vec::new();
        let texts: BTreeMap<String, (Tag, String)> = self
            .catalog
            .entities
            .iter()
            .flat_map(|entity| &entity.matcher.attributes)
            .filter_map(|condition| {
                let value = item.member(&condition.attribute)?;
                Some((
                    condition.attribute.clone(),
                    (value.tag(), value.text().into_owned()),
                ))
            })
            .collect();
        let mut look = |name: &str| {
            let (tag, text) = texts.get(name)?;
            Some(match tag {
                Tag::S => AttributeView::S(text),
                _ => AttributeView::Other,
            })
        };
        let index = self.catalog.route(pk, sk, &mut look, &mut scratch);
        if index == self.catalog.unmatched_index() {
            return;
        }
        let Some(entity) = self.catalog.entities.get(index) else {
            return;
        };
        if !self.by_name.contains_key(&entity.name) {
            self.by_name
                .insert(entity.name.clone(), Gathered::default());
        }
        let Some(gathered) = self.by_name.get_mut(&entity.name) else {
            return;
        };
        gathered.items += 1;
        gathered.bytes += u64::try_from(raw.len()).unwrap_or(0);
        for (name, value) in item.members() {
            let name = name.text();
            if let Some(seen) = gathered.attributes.get_mut(name.as_ref()) {
                seen.see(value);
            } else if gathered.attributes.len() < COLUMNS {
                let mut seen = Seen::default();
                seen.see(value);
                gathered.attributes.insert(name.into_owned(), seen);
            }
        }
    }
}

/// A template with its captures as `…`.
fn masked(template: &dynalake_schemas::Template) -> String {
    template
        .segments
        .iter()
        .map(|segment| match segment {
            dynalake_schemas::Segment::Literal(text) => text.as_str(),
            dynalake_schemas::Segment::Capture { .. } => "…",
        })
        .collect()
}

/// Whether an attribute is named as keys of indexes are: `GSI1PK`, `gs1-sk`, `LSI1SK`, `PK2`.
fn is_index_key(name: &str) -> bool {
    let plain: String = column_name(name).chars().filter(|c| *c != '_').collect();
    let is_numbered = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    let stem = ["gsi", "lsi", "gs", "ls"]
        .iter()
        .find_map(|it| plain.strip_prefix(it));
    if let Some(rest) = stem {
        let number = ["pk", "sk"].iter().find_map(|end| rest.strip_suffix(end));
        return number
            .unwrap_or(rest)
            .bytes()
            .all(|byte| byte.is_ascii_digit());
    }
    let number = ["pk", "sk"].iter().find_map(|it| plain.strip_prefix(it));
    number.is_some_and(|number| !number.is_empty() && is_numbered(number))
}
