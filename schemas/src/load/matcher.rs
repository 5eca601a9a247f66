//! `[match]` of an entity file.

use toml_edit::{Item, Value};

use super::lake::{self, Lake};
use super::source::{Entry, Section, SourceFile, type_name};
use crate::model::{AttributeCondition, AttributeTest, Matcher, Scalar, Source, Template};
use crate::problem::{Place, Problems};
use crate::template::DEFAULT_SEPARATOR;

/// Reads `[match]`, and says where it stands.
pub(crate) fn read(
    root: &mut Section<'_>,
    lake: Option<&Lake>,
    entity: &Place,
    problems: &mut Problems,
) -> (Matcher, Place) {
    let given = root.get("match").is_some();
    let Some(mut section) = root.section("match", "[match]", problems) else {
        if !given {
            nothing_given(entity, problems);
        }
        return (Matcher::default(), entity.clone());
    };
    let place = section.place().clone();
    let separator = lake::separator(&mut section, problems)
        .or_else(|| lake.map(|lake| lake.separator.clone()))
        .unwrap_or_else(|| DEFAULT_SEPARATOR.to_owned());
    let mut captures = Vec::new();
    let mut templates = |key, section: &mut Section<'_>, problems: &mut Problems| {
        let mut templates: Vec<Template> = Vec::new();
        for (text, place) in section.strings(key, problems) {
            match Template::parse(text, &separator, &mut captures) {
                Ok(template) if templates.contains(&template) => problems.error(
                    &place,
                    format!("the alternative `{text}` is given twice"),
                    "remove one of them",
                ),
                Ok(template) => templates.push(template),
                Err(error) => problems.error(&place, error.what, error.remedy),
            }
        }
        templates
    };
    let partition_key = templates("partition_key", &mut section, problems);
    let sort_key_given = section.get("sort_key");
    let sort_key = templates("sort_key", &mut section, problems);
    if let (Some(entry), Some(lake)) = (sort_key_given, lake)
        && lake.source.sort_key.is_none()
    {
        problems.error(
            &entry.place,
            "the entity has a sort key template, but the source table has no sort key",
            "remove it, or add `sort_key = \"SK\"` to [source] in lake.toml",
        );
    }
    let source = lake.map(|lake| &lake.source);
    let attributes = match section.section("attributes", "`attributes`", problems) {
        Some(attributes) => conditions(&attributes, source, problems),
        None => Vec::new(),
    };
    let priority = section
        .integer("priority", problems)
        .map_or(0, |(value, _)| value);
    let given_any = ["partition_key", "sort_key", "attributes"]
        .into_iter()
        .any(|key| section.get(key).is_some());
    section.finish(problems);
    if !given_any {
        nothing_given(&place, problems);
    }
    (
        Matcher {
            partition_key,
            sort_key,
            attributes,
            captures,
            priority,
        },
        place,
    )
}

fn nothing_given(place: &Place, problems: &mut Problems) {
    problems.error(
        place,
        "the entity says nothing about which items are its own",
        "add `[match]` with `partition_key = \"USER#{user_id}\"`, `sort_key = \"…\"` or \
         `attributes = { EntityType = \"…\" }`",
    );
}

fn conditions(
    section: &Section<'_>,
    source: Option<&Source>,
    problems: &mut Problems,
) -> Vec<AttributeCondition> {
    let mut conditions = Vec::new();
    for (attribute, entry) in section.entries() {
        if let Some(key) = source.and_then(|source| key_of(source, attribute)) {
            problems.error(
                &entry.place,
                format!("`{attribute}` is a key attribute of the source table"),
                format!("write `{key} = \"…\"` in [match] instead"),
            );
        }
        let tests = match entry.item.as_table_like() {
            Some(_) => tests(section.file(), attribute, &entry, problems),
            None => one_of(attribute, &entry, problems).into_iter().collect(),
        };
        conditions.extend(tests.into_iter().map(|test| AttributeCondition {
            attribute: attribute.to_owned(),
            test,
        }));
    }
    conditions
}

fn key_of(source: &Source, attribute: &str) -> Option<&'static str> {
    if source.partition_key.name == attribute {
        return Some("partition_key");
    }
    source
        .sort_key
        .as_ref()
        .filter(|key| key.name == attribute)
        .map(|_| "sort_key")
}

fn tests(
    file: &SourceFile,
    attribute: &str,
    entry: &Entry<'_>,
    problems: &mut Problems,
) -> Vec<AttributeTest> {
    let Some(table) = entry.item.as_table_like() else {
        return Vec::new();
    };
    let title = format!("the condition on `{attribute}`");
    let mut section = Section::new(file, table, title, entry.place.clone());
    let mut tests = Vec::new();
    if let Some((exists, _)) = section.boolean("exists", problems) {
        tests.push(AttributeTest::Exists(exists));
    }
    for key in ["prefix", "suffix"] {
        match section.string(key, problems) {
            Some(("", place)) => problems.error(
                &place,
                format!("the `{key}` of `{attribute}` is empty"),
                "write the text, or `{ exists = true }`",
            ),
            Some((text, _)) if key == "prefix" => tests.push(AttributeTest::Prefix(text.into())),
            Some((text, _)) => tests.push(AttributeTest::Suffix(text.into())),
            None => {}
        }
    }
    let found_any = ["exists", "prefix", "suffix"]
        .iter()
        .any(|&key| section.get(key).is_some());
    if !found_any {
        problems.error(
            &entry.place,
            format!("the condition on `{attribute}` says nothing"),
            "write a value, an array of values, `{ exists = true }`, `{ prefix = \"…\" }` or \
             `{ suffix = \"…\" }`",
        );
    }
    if tests.contains(&AttributeTest::Exists(false)) && tests.len() > 1 {
        problems.error(
            &entry.place,
            format!("`{attribute}` cannot be absent and have a prefix or suffix"),
            "remove one of the conditions",
        );
    }
    section.finish(problems);
    tests
}

fn one_of(attribute: &str, entry: &Entry<'_>, problems: &mut Problems) -> Option<AttributeTest> {
    let scalars: Option<Vec<Scalar>> = match entry.item {
        Item::Value(Value::Array(array)) if !array.is_empty() => array.iter().map(scalar).collect(),
        Item::Value(value) => scalar(value).map(|scalar| vec![scalar]),
        _ => None,
    };
    if scalars.is_none() {
        problems.error(
            &entry.place,
            format!("`{attribute}` is compared with {}", type_name(entry.item)),
            "compare it with a string, a number, true or false, or a non-empty array of these",
        );
    }
    scalars.map(AttributeTest::OneOf)
}

fn scalar(value: &Value) -> Option<Scalar> {
    match value {
        Value::String(text) => Some(Scalar::S(text.value().clone())),
        Value::Integer(number) => Some(Scalar::N(number.value().to_string())),
        // Rust writes a float as the shortest plain decimal: DynamoDB's canonical form.
        Value::Float(number) if *number.value() == 0.0 => Some(Scalar::N("0".to_owned())),
        Value::Float(number) if number.value().is_finite() => {
            Some(Scalar::N(number.value().to_string()))
        }
        Value::Boolean(value) => Some(Scalar::Bool(*value.value())),
        _ => None,
    }
}
