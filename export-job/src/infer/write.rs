//! The schema files: text with comments, the same for the same items in any number.

use std::collections::{BTreeMap, BTreeSet};

use dynalake_schemas::KeyType;
use dynalake_schemas::naming::{AttributeCase, column_name, is_column_name};

use super::classes::{Class, Plan, Sign};
use super::guess::{KeyName, KeyNames};
use super::keys::Captures;
use super::seen::{Seen, Typed};

/// Attributes of an entity that become columns; the rest stays in `_rest`.
pub(super) const COLUMNS: usize = 1000;

/// What one entity's file is made of.
pub(super) struct EntityFile<'a> {
    pub(super) name: &'a str,
    pub(super) sign: &'a Sign,
    pub(super) class: &'a Class,
    pub(super) attributes: &'a BTreeMap<String, Seen>,
    /// Items that were routed to it.
    pub(super) items: u64,
    pub(super) priority: i32,
}

/// The lake file.
pub(super) fn lake(
    database: &str,
    table: Option<&str>,
    keys: &KeyNames,
    plan: &Plan,
    case: AttributeCase,
    ignore: &BTreeSet<String>,
) -> String {
    let mut text = String::from("# Inferred from the table's items. Change it as you like.\n");
    line(&mut text, &format!("database = {}", quoted(database)));
    text.push_str("\n[source]\n");
    if let Some(table) = table {
        line(&mut text, &format!("table = {}", quoted(table)));
    }
    line(
        &mut text,
        &format!("partition_key = {}", key(&keys.partition)),
    );
    if let Some(sort) = &keys.sort {
        line(&mut text, &format!("sort_key = {}", key(sort)));
    }
    line(
        &mut text,
        &format!("separator = {}", quoted(plan.partition.separator)),
    );
    let case = match case {
        AttributeCase::Snake => "snake",
        AttributeCase::Camel => "camel",
        AttributeCase::Pascal => "pascal",
    };
    line(&mut text, &format!("attribute_case = {}", quoted(case)));
    text.push_str("# Keys of indexes, replication, and what only tells the type: no columns\n");
    let names: Vec<String> = ignore.iter().map(|name| quoted(name)).collect();
    line(&mut text, &format!("ignore = [{}]", names.join(", ")));
    text
}

fn key(key: &KeyName) -> String {
    let name = quoted(&key.name);
    match key.key_type {
        KeyType::S => name,
        KeyType::N => format!("{{ name = {name}, type = \"N\" }}"),
        KeyType::B => format!("{{ name = {name}, type = \"B\" }}"),
    }
}

/// An entity's file. `is_draft`: without the columns of attributes.
pub(super) fn entity(
    file: &EntityFile<'_>,
    keys: &KeyNames,
    plan: &Plan,
    case: AttributeCase,
    is_plumbing: &dyn Fn(&str) -> bool,
) -> String {
    let mut text = String::new();
    let by = match (file.sign, plan.type_attribute) {
        (Sign::Type(_), Some(name)) => format!("attribute {name}"),
        (Sign::Keys(None, None), _) => "being no other entity".to_owned(),
        _ => "the beginnings of its keys".to_owned(),
    };
    line(&mut text, &format!("# Inferred; recognised by {by}."));
    line(&mut text, &format!("entity = {}", quoted(file.name)));
    line(&mut text, &format!("table = {}", quoted(file.name)));
    text.push_str("version = 1\n\n[match]\n");
    let columns = columns(file, case, is_plumbing);
    let mut taken: BTreeSet<String> = columns.keys().cloned().collect();
    let mut captures = Captures {
        taken: &mut taken,
        columns: BTreeMap::new(),
    };
    let partition = template(&keys.partition, || {
        file.class.pk.template(plan.partition, &mut captures)
    });
    let sort = keys
        .sort
        .as_ref()
        .and_then(|sort| template(sort, || file.class.sk.template(plan.sort, &mut captures)));
    let captured = captures.columns;
    if partition.is_none() && sort.is_none() && !matches!(file.sign, Sign::Type(_)) {
        text.push_str("partition_key = \"{_*}\"\n");
    }
    for (name, template) in [("partition_key", partition), ("sort_key", sort)] {
        if let Some(template) = template {
            line(&mut text, &format!("{name} = {}", quoted(&template)));
        }
    }
    if let (Sign::Type(value), Some(name)) = (file.sign, plan.type_attribute) {
        let condition = format!("{} = {}", quoted(name), quoted(value));
        line(&mut text, &format!("attributes = {{ {condition} }}"));
    }
    if file.priority != 0 {
        line(&mut text, &format!("priority = {}", file.priority));
    }
    text.push_str("\n[columns]\n");
    for (name, ty) in captured {
        line(&mut text, &format!("{name} = {}", quoted(ty)));
    }
    for (name, column) in columns {
        column.write(&name, file.items, case, &mut text);
    }
    text
}

fn template(key: &KeyName, template: impl FnOnce() -> Option<String>) -> Option<String> {
    (key.key_type == KeyType::S).then(template)?
}

struct ColumnFile<'a> {
    attribute: &'a str,
    seen: &'a Seen,
    typed: Typed,
    is_alone: bool,
}

fn columns<'a>(
    file: &EntityFile<'a>,
    case: AttributeCase,
    is_plumbing: &dyn Fn(&str) -> bool,
) -> BTreeMap<String, ColumnFile<'a>> {
    let mut claims: BTreeMap<String, usize> = BTreeMap::new();
    for name in file.attributes.keys() {
        *claims.entry(column_name(name)).or_default() += 1;
    }
    let mut columns = BTreeMap::new();
    for (attribute, seen) in file.attributes {
        if is_plumbing(attribute) || seen.count == seen.nulls() && seen.count == 0 {
            continue;
        }
        let plain = column_name(attribute);
        let base = safe(&plain);
        let mut name = base.clone();
        let mut number = 1;
        while columns.contains_key(&name) {
            number += 1;
            name = format!("{base}_{number}");
        }
        let is_alone = claims.get(&plain) == Some(&1) && case.attribute(&name) == *attribute;
        let column = ColumnFile {
            attribute,
            seen,
            typed: seen.typed(attribute),
            is_alone,
        };
        columns.insert(name, column);
    }
    columns
}

/// A column name that the language takes.
fn safe(name: &str) -> String {
    let name = name.trim_start_matches('_');
    let is_partition = ["dt", "export"].contains(&name);
    let name = match name {
        "" => "attribute".to_owned(),
        name if is_partition => format!("{name}_value"),
        name => name.to_owned(),
    };
    if is_column_name(&name) {
        name
    } else {
        name.chars().take(200).collect()
    }
}

impl ColumnFile<'_> {
    fn write(&self, name: &str, items: u64, case: AttributeCase, text: &mut String) {
        if self.seen.count < items {
            let share = self.seen.count.saturating_mul(100).checked_div(items);
            match share.unwrap_or(0) {
                0 => text.push_str("# in less than 1 % of the items\n"),
                share => line(text, &format!("# in {share} % of the items")),
            }
        }
        if let Some(transform) = personal(name).filter(|_| self.seen.is_text()) {
            line(
                text,
                &format!("# may be personal data: consider transform = \"{transform}\""),
            );
        }
        if is_ttl(name) {
            text.push_str("# may be the time to live\n");
        }
        let mut keys = vec![format!("type = {}", quoted(&self.typed.text))];
        if !self.is_alone {
            keys.push(format!("attribute = {}", quoted(self.attribute)));
        }
        if let Some(format) = &self.typed.format {
            keys.push(format!("format = {}", quoted(format)));
        }
        let fields = self.typed.fields.iter().filter(|(path, attribute)| {
            let field = path.rsplit('.').next().unwrap_or_default();
            case.attribute(field) != **attribute
        });
        keys.extend(inline("fields", fields));
        keys.extend(inline("formats", self.typed.formats.iter()));
        let value = match keys.as_slice() {
            [_] => quoted(&self.typed.text),
            several => format!("{{ {} }}", several.join(", ")),
        };
        line(text, &format!("{name} = {value}"));
    }
}

fn inline<'a>(key: &str, pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Option<String> {
    let pairs: Vec<String> = pairs
        .map(|(path, value)| format!("{} = {}", quoted(path), quoted(value)))
        .collect();
    (!pairs.is_empty()).then(|| format!("{key} = {{ {} }}", pairs.join(", ")))
}

/// The transform to think of where a column's name is one of personal data.
fn personal(name: &str) -> Option<&'static str> {
    let is_any = |words: &[&str]| name.split('_').any(|word| words.contains(&word));
    if is_any(&[
        "email", "mail", "phone", "mobile", "ssn", "iban", "passport", "ip",
    ]) {
        return Some("hmac_sha256");
    }
    let is_name = [
        "name",
        "first_name",
        "last_name",
        "full_name",
        "surname",
        "user_name",
    ]
    .contains(&name)
        || name.ends_with("_first_name")
        || name.ends_with("_last_name");
    let is_person = is_any(&["address", "street", "birthdate", "birthday", "dob", "birth"]);
    (is_name || is_person).then_some("mask")
}

fn is_ttl(name: &str) -> bool {
    [
        "ttl",
        "expires_at",
        "expdate",
        "expires",
        "expiry",
        "expire_at",
    ]
    .contains(&name)
        || name.ends_with("_ttl")
}

/// The spelling that most attributes have.
pub(super) fn case_of<'a>(names: &(impl Iterator<Item = &'a str> + Clone)) -> AttributeCase {
    let hits = |case: AttributeCase| {
        let fits = |name: &&str| case.attribute(&column_name(name)) == **name;
        names.clone().filter(fits).count()
    };
    let cases = [
        AttributeCase::Snake,
        AttributeCase::Camel,
        AttributeCase::Pascal,
    ];
    let most = cases.into_iter().map(hits).max().unwrap_or(0);
    let found = cases.into_iter().find(|case| hits(*case) == most);
    found.unwrap_or(AttributeCase::Snake)
}

/// Text as a basic string of TOML, whose escapes are those of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            other if other.is_control() => {
                let escape = format!("\\u{:04X}", u32::from(other));
                quoted.push_str(&escape);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
