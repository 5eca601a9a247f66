//! `lake.toml`: the source table.

use super::source::{Entry, Section, SourceFile, type_name};
use crate::model::{KeyAttribute, KeyType, Source};
use crate::naming::{AttributeCase, column_name, is_table_name};
use crate::problem::Problems;
use crate::template::DEFAULT_SEPARATOR;

/// What `lake.toml` says.
pub(crate) struct Lake {
    pub(crate) database: String,
    pub(crate) source: Source,
    /// Separator of key parts where an entity gives none.
    pub(crate) separator: String,
    pub(crate) case: AttributeCase,
}

/// Plumbing that nobody wants as columns: attributes which global tables of 2017 add to every item.
const DEFAULT_IGNORE: &[&str] = &["aws:rep:*"];

/// Reads `lake.toml`; what cannot be read gets a placeholder, so that the entities are checked too.
pub(crate) fn read(file: &SourceFile, problems: &mut Problems) -> Option<Lake> {
    let document = super::parse(file, problems)?;
    let mut root = Section::new(file, document.as_table(), "lake.toml", file.whole());
    let database = database(&mut root, problems);
    let source = root.section("source", "[source]", problems);
    root.finish(problems);
    let Some(mut section) = source else {
        problems.error(
            &file.whole(),
            "lake.toml has no [source]",
            "add `[source]` with `partition_key = \"PK\"` and, if the table has one, \
             `sort_key = \"SK\"`",
        );
        return None;
    };
    let case = attribute_case(&mut section, problems);
    let (source, separator) = source_table(&mut section, problems)?;
    section.finish(problems);
    Some(Lake {
        database,
        source,
        separator,
        case,
    })
}

fn database(root: &mut Section<'_>, problems: &mut Problems) -> String {
    let given = root.get("database").is_some();
    let Some((name, place)) = root.string("database", problems) else {
        if !given {
            problems.error(
                root.place(),
                "lake.toml names no database",
                "add `database = \"ecommerce\"`",
            );
        }
        return "lake".to_owned();
    };
    if !is_table_name(name) {
        problems.error(
            &place,
            format!("`{name}` is not a database name"),
            format!(
                "names begin with a-z and go on with a-z, 0-9 and _, for example `{}`",
                example_name(name, "lake")
            ),
        );
    }
    name.to_owned()
}

/// A valid name that is near the given one.
pub(crate) fn example_name(written: &str, otherwise: &str) -> String {
    let name = column_name(written);
    let name = name.trim_start_matches(|character: char| !character.is_ascii_lowercase());
    if is_table_name(name) {
        name.to_owned()
    } else {
        otherwise.to_owned()
    }
}

fn source_table(section: &mut Section<'_>, problems: &mut Problems) -> Option<(Source, String)> {
    let table = section
        .string("table", problems)
        .map(|(name, _)| name.to_owned());
    let partition_key = section.get("partition_key");
    if partition_key.is_none() {
        problems.error(
            section.place(),
            "[source] names no partition key",
            "add `partition_key = \"PK\"`, the table's partition key attribute",
        );
    }
    let partition_key = partition_key
        .and_then(|entry| key_attribute(section.file(), &entry, "partition_key", problems));
    let sort_key = section.get("sort_key");
    let sort_key =
        sort_key.and_then(|entry| key_attribute(section.file(), &entry, "sort_key", problems));
    let ignore = ignore(section, problems);
    let separator = separator(section, problems);
    let partition_key = partition_key?;
    if sort_key
        .as_ref()
        .is_some_and(|sort_key| sort_key.name == partition_key.name)
    {
        problems.error(
            section.place(),
            format!(
                "partition key and sort key are both `{}`",
                partition_key.name
            ),
            "name the two key attributes, or leave `sort_key` out for a table without one",
        );
    }
    let separator = separator.unwrap_or_else(|| DEFAULT_SEPARATOR.to_owned());
    Some((
        Source {
            table,
            partition_key,
            sort_key,
            ignore,
        },
        separator,
    ))
}

/// `attribute_case = "camel"` of `[source]`.
fn attribute_case(section: &mut Section<'_>, problems: &mut Problems) -> AttributeCase {
    match section.string("attribute_case", problems) {
        None | Some(("snake", _)) => AttributeCase::Snake,
        Some(("camel", _)) => AttributeCase::Camel,
        Some(("pascal", _)) => AttributeCase::Pascal,
        Some((other, place)) => {
            problems.error(
                &place,
                format!("`{other}` is not a way to spell attribute names"),
                "write \"snake\" (`order_id`, the default), \"camel\" (`orderId`) or \"pascal\" (`OrderId`)",
            );
            AttributeCase::Snake
        }
    }
}

/// `separator = "#"` of `[source]` or `[match]`.
pub(crate) fn separator(section: &mut Section<'_>, problems: &mut Problems) -> Option<String> {
    section
        .string("separator", problems)
        .map(|(text, _)| text.to_owned())
}

fn key_attribute(
    file: &SourceFile,
    entry: &Entry<'_>,
    key: &str,
    problems: &mut Problems,
) -> Option<KeyAttribute> {
    if let Some(name) = entry.item.as_str() {
        let attribute = KeyAttribute {
            name: name.to_owned(),
            key_type: KeyType::S,
        };
        return non_empty(attribute, entry, problems);
    }
    let Some(table) = entry.item.as_table_like() else {
        problems.error(
            &entry.place,
            format!(
                "`{key}` in [source] is {}, not an attribute",
                type_name(entry.item)
            ),
            format!("write `{key} = \"PK\"` or `{key} = {{ name = \"PK\", type = \"N\" }}`"),
        );
        return None;
    };
    let mut section = Section::new(file, table, format!("`{key}`"), entry.place.clone());
    let name = section.string("name", problems);
    let key_type = match section.string("type", problems) {
        None | Some(("S", _)) => KeyType::S,
        Some(("N", _)) => KeyType::N,
        Some(("B", _)) => KeyType::B,
        Some((other, place)) => {
            problems.error(
                &place,
                format!("`{other}` is not the type of a key"),
                "keys are \"S\" (string), \"N\" (number) or \"B\" (binary)",
            );
            KeyType::S
        }
    };
    section.finish(problems);
    let Some((name, _)) = name else {
        problems.error(
            &entry.place,
            format!("`{key}` names no attribute"),
            format!("write `{key} = {{ name = \"PK\", type = \"N\" }}`"),
        );
        return None;
    };
    non_empty(
        KeyAttribute {
            name: name.to_owned(),
            key_type,
        },
        entry,
        problems,
    )
}

fn non_empty(
    attribute: KeyAttribute,
    entry: &Entry<'_>,
    problems: &mut Problems,
) -> Option<KeyAttribute> {
    if attribute.name.is_empty() {
        problems.error(
            &entry.place,
            "a key attribute has an empty name",
            "write the attribute's name as the table has it",
        );
        return None;
    }
    Some(attribute)
}

fn ignore(section: &mut Section<'_>, problems: &mut Problems) -> Vec<String> {
    if section.get("ignore").is_none() {
        return DEFAULT_IGNORE.iter().map(|&name| name.to_owned()).collect();
    }
    let mut patterns = Vec::new();
    for (pattern, place) in section.strings("ignore", problems) {
        let name = pattern.strip_suffix('*').unwrap_or(pattern);
        if name.contains('*') || pattern.is_empty() {
            problems.error(
                &place,
                format!("`{pattern}` is not a name, nor a prefix that ends in `*`"),
                "write the attribute's exact name, or a prefix such as \"aws:rep:*\"",
            );
        }
        patterns.push(pattern.to_owned());
    }
    patterns
}
