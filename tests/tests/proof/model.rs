//! What an application does to its table: a random model of the schemas' entities.

use std::collections::BTreeMap;
use std::sync::Arc;

use dynalake_schemas::{
    AttributeTest, CaptureKind, Catalog, ColumnSource, Entity, OnMismatch, Scalar, Segment,
    Template,
};
use dynalake_tests::Random;
use serde_json::{Map, Value, json};

use crate::values::{any, fitting};

/// Texts of captures; some differ only in case or in a separator.
const IDS: &[&str] = &[
    "a1", "A1", "a-1", "a_1", "7", "007", "é", "注文", "a:1", "a 1",
];

/// Attributes that no schema declares, that are plumbing, or that come close to a column's name.
const EXTRAS: &[&str] = &[
    "EntityType",
    "GSI1PK",
    "aws:rep:updatetime",
    "extra",
    "a.b",
    "日本語",
    "Status",
    "created_at",
    "user_id",
    "Email",
    "_x",
];

/// Something that is done to the table.
#[derive(Debug, Clone)]
pub enum Operation {
    /// `PutItem` of an item.
    Put(Value),
    /// `UpdateItem`: the request without the table's name.
    Update(Value),
    /// `DeleteItem` of a key.
    Delete(Value),
    /// `TransactWriteItems`: actions without the table's name.
    Transact(Vec<Value>),
}

/// A key of the pool, with the entities that it allows.
#[derive(Debug, Clone)]
struct Key {
    pk: String,
    sk: String,
    entities: Vec<usize>,
}

/// The application.
pub struct Model {
    catalog: Arc<Catalog>,
    keys: Vec<Key>,
    /// What it believes that the table holds.
    items: BTreeMap<(String, String), Map<String, Value>>,
}

impl Model {
    /// An application with some keys of every entity.
    pub fn new(catalog: Arc<Catalog>, random: &mut Random) -> Self {
        let mut keys: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
        for (index, entity) in catalog.entities.iter().enumerate() {
            for _ in 0..3 + random.below(8) {
                if let (Some(pk), Some(sk)) = (
                    key_text(random, &entity.matcher.partition_key),
                    key_text(random, &entity.matcher.sort_key),
                ) {
                    let entities = keys.entry((pk, sk)).or_default();
                    if !entities.contains(&index) {
                        entities.push(index);
                    }
                }
            }
        }
        // Near misses and keys of nothing.
        for (pk, sk) in [
            ("user#a1", "METADATA"),
            ("USER#a1", "metadata"),
            ("USER#a1#", "METADATA"),
            ("USER##", "METADATA"),
            ("USER", "METADATA"),
            ("CONFIG", "flags"),
            ("_", "_"),
            ("ORDER#a1", "ITEM#"),
        ] {
            keys.entry((pk.to_owned(), sk.to_owned())).or_default();
        }
        // Entities told apart by attributes share their keys.
        let attributes: Vec<usize> = (0..catalog.entities.len())
            .filter(|index| !catalog.entities[*index].matcher.attributes.is_empty())
            .collect();
        for entities in keys.values_mut() {
            if entities.iter().any(|index| attributes.contains(index)) {
                entities.clone_from(&attributes);
            }
        }
        let keys = keys
            .into_iter()
            .map(|((pk, sk), entities)| Key { pk, sk, entities })
            .collect();
        Self {
            catalog,
            keys,
            items: BTreeMap::new(),
        }
    }

    /// What it does next.
    pub fn next(&self, random: &mut Random) -> Operation {
        if random.chance(8) {
            let mut keys = self.keys.clone();
            random.shuffle(&mut keys);
            keys.truncate(2 + random.below(4));
            let actions = keys.iter().map(|key| self.action(random, key));
            return Operation::Transact(actions.collect());
        }
        let key = random.pick(&self.keys).clone();
        let present = self.items.get(&(key.pk.clone(), key.sk.clone()));
        match random.below(100) {
            0..=19 => Operation::Delete(key_value(&key)),
            20..=59 if present.is_some() => Operation::Update(self.update(random, &key, true)),
            60..=63 if let Some(item) = present => Operation::Put(Value::Object(item.clone())),
            20..=25 => Operation::Update(self.update(random, &key, false)),
            _ => Operation::Put(Value::Object(self.item(random, &key))),
        }
    }

    /// Takes notice of what became of an operation: the item after an update.
    pub fn learn(&mut self, operation: &Operation, updated: Option<&Value>) {
        match operation {
            Operation::Put(item) => self.hold(item),
            Operation::Update(_) => {
                if let Some(item) = updated {
                    self.hold(item);
                }
            }
            Operation::Delete(key) => {
                self.items.remove(&key_of(key));
            }
            Operation::Transact(actions) => {
                for action in actions {
                    if let Some(put) = action.get("Put") {
                        self.hold(&put["Item"]);
                    } else if let Some(delete) = action.get("Delete") {
                        self.items.remove(&key_of(&delete["Key"]));
                    } else {
                        // Not known in full; the next put or update tells.
                        self.items.remove(&key_of(&action["Update"]["Key"]));
                    }
                }
            }
        }
    }

    fn hold(&mut self, item: &Value) {
        let item = item.as_object().unwrap().clone();
        self.items
            .insert(key_of(&Value::Object(item.clone())), item);
    }

    fn action(&self, random: &mut Random, key: &Key) -> Value {
        match random.below(3) {
            0 => json!({"Put": {"Item": self.item(random, key)}}),
            1 => json!({"Update": self.update(random, key, false)}),
            _ => json!({"Delete": {"Key": key_value(key)}}),
        }
    }

    /// A new item under a key.
    fn item(&self, random: &mut Random, key: &Key) -> Map<String, Value> {
        let mut item = key_value(key).as_object().unwrap().clone();
        let entity = if key.entities.is_empty() {
            random.pick(&self.catalog.entities)
        } else {
            &self.catalog.entities[*random.pick(&key.entities)]
        };
        for condition in &entity.matcher.attributes {
            if let AttributeTest::OneOf(values) = &condition.test
                && let Scalar::S(text) = random.pick(values)
                && random.chance(85)
            {
                item.insert(condition.attribute.clone(), json!({"S": text}));
            }
        }
        for column in &entity.columns {
            if let ColumnSource::Attribute(name) = &column.source
                && random.chance(75)
            {
                let strict = column.on_mismatch == OnMismatch::Quarantine;
                let value = if !strict && random.chance(12) {
                    any(random, 3)
                } else {
                    fitting(random, &column.ty)
                };
                item.insert(name.as_str().to_owned(), value);
            }
        }
        for _ in 0..random.below(3) {
            let name = *random.pick(EXTRAS);
            if !(claims(entity, name) && (is_strict(entity) || hides(entity, name))) {
                item.insert(name.to_owned(), any(random, 2));
            }
        }
        item
    }

    /// A change of an item: some attributes set, some removed; `arithmetic` adds to numbers and takes
    /// from sets.
    fn update(&self, random: &mut Random, key: &Key, arithmetic: bool) -> Value {
        let now = self.items.get(&(key.pk.clone(), key.sk.clone()));
        let is_key = |name: &String| name == "PK" || name == "SK";
        let mut set: Vec<(String, Value)> = self
            .item(random, key)
            .into_iter()
            .filter(|(name, _)| !is_key(name))
            .collect();
        random.shuffle(&mut set);
        set.truncate(1 + random.below(3));
        let mut others: Vec<(&String, &Value)> = now
            .into_iter()
            .flatten()
            .filter(|(name, _)| !is_key(name) && set.iter().all(|(other, _)| other != *name))
            .collect();
        random.shuffle(&mut others);
        let mut expression = Expression::default();
        for (name, value) in set {
            expression.clause("SET", " = ", &name, Some(value));
        }
        let strict = |index: &usize| is_strict(&self.catalog.entities[*index]);
        let arithmetic = arithmetic && random.chance(40) && !key.entities.iter().any(strict);
        for (name, value) in others.into_iter().take(3) {
            if arithmetic && value.get("N").is_some() {
                let number = *random.pick(&["1", "-3", "0.5"]);
                expression.clause("ADD", " ", name, Some(json!({"N": number})));
            } else if arithmetic && let Some(values) = value["SS"].as_array() {
                expression.clause("DELETE", " ", name, Some(json!({"SS": [values[0]]})));
            } else if random.chance(40) {
                expression.clause("REMOVE", "", name, None);
            }
        }
        if expression.names.is_empty() {
            // An item that is only its key: an update must say something.
            expression.clause("SET", " = ", "extra", Some(json!({"S": "something"})));
        }
        expression.request(&key_value(key))
    }
}

/// An update expression under construction.
#[derive(Default)]
struct Expression {
    clauses: BTreeMap<&'static str, Vec<String>>,
    names: Map<String, Value>,
    values: Map<String, Value>,
}

impl Expression {
    fn clause(&mut self, verb: &'static str, infix: &str, name: &str, value: Option<Value>) {
        let n = self.names.len();
        self.names.insert(format!("#{n}"), json!(name));
        let operand = if let Some(value) = value {
            self.values.insert(format!(":{n}"), value);
            format!("#{n}{infix}:{n}")
        } else {
            format!("#{n}")
        };
        self.clauses.entry(verb).or_default().push(operand);
    }

    fn request(self, key: &Value) -> Value {
        let clauses: Vec<String> = self
            .clauses
            .iter()
            .map(|(verb, operands)| format!("{verb} {}", operands.join(", ")))
            .collect();
        let mut request = json!({
            "Key": key,
            "UpdateExpression": clauses.join(" "),
            "ExpressionAttributeNames": self.names,
        });
        if !self.values.is_empty() {
            request["ExpressionAttributeValues"] = Value::Object(self.values);
        }
        request
    }
}

/// Whether a value that does not fit sends the whole record to quarantine.
fn is_strict(entity: &Entity) -> bool {
    entity
        .columns
        .iter()
        .any(|column| column.on_mismatch == OnMismatch::Quarantine)
}

/// Whether a column could take this attribute.
fn claims(entity: &Entity, attribute: &str) -> bool {
    entity.columns.iter().any(|column| {
        matches!(&column.source, ColumnSource::Attribute(name) if name.may_take(attribute))
    })
}

/// Whether a column with a transform could take this attribute: beside the column's own attribute it
/// sends the whole record to quarantine, lest either be seen in the clear.
fn hides(entity: &Entity, attribute: &str) -> bool {
    entity.columns.iter().any(|column| {
        column.transform.is_some()
            && matches!(&column.source, ColumnSource::Attribute(name) if name.may_take(attribute))
    })
}

fn key_value(key: &Key) -> Value {
    json!({"PK": {"S": key.pk}, "SK": {"S": key.sk}})
}

/// Partition key and sort key of an item, a key or a record's `Keys`.
pub fn key_of(item: &Value) -> (String, String) {
    let text = |name: &str| item[name]["S"].as_str().unwrap().to_owned();
    (text("PK"), text("SK"))
}

/// A key text that a template matches; `None` where there is no template.
fn key_text(random: &mut Random, templates: &[Template]) -> Option<String> {
    if templates.is_empty() {
        return None;
    }
    let mut text = String::new();
    for segment in &random.pick(templates).segments {
        match segment {
            Segment::Literal(literal) => text.push_str(literal),
            Segment::Capture { kind, .. } => {
                let texts: &[&str] = match kind {
                    CaptureKind::Any => IDS,
                    CaptureKind::Rest => &["k1", "k#1", "K#1", "k##"],
                    CaptureKind::Int => &["0", "7", "12", "07"],
                    CaptureKind::Date => &["2026-05-01", "2026-12-31"],
                    CaptureKind::Uuid => &["0b6f3c1e-7d55-4f0a-9d2c-5e1f2a3b4c5d"],
                    CaptureKind::Ulid => &["01ARZ3NDEKTSV4RRFFQ69G5FAV"],
                };
                text.push_str(random.pick::<&str>(texts));
            }
        }
    }
    Some(text)
}
