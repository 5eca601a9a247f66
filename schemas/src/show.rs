//! A catalog for people and programs: every entity with its conditions, and every column with its
//! types and where its value comes from.

use arrow::datatypes::DataType;
use serde::Serialize;

use crate::arrow_schema::arrow_type;
use crate::athena::{athena_type, declared_type};
use crate::lock::nodes;
use crate::model::{
    AttributeName, AttributeTest, Catalog, Column, ColumnSource, Entity, KeyAttribute, KeyType,
    Matcher, OnMismatch, Scalar, Template, Transform,
};

/// A catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownCatalog {
    /// Lake database.
    pub database: String,
    /// Source table, if the schemas name it.
    pub source_table: Option<String>,
    /// Partition key attribute and its type.
    pub partition_key: ShownKey,
    /// Sort key attribute and its type.
    pub sort_key: Option<ShownKey>,
    /// Attributes that are plumbing.
    pub ignore: Vec<String>,
    /// Entities in matching order; the last is the built-in `unmatched`.
    pub entities: Vec<ShownEntity>,
}

/// A key attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownKey {
    /// Attribute name.
    pub name: String,
    /// `S`, `N` or `B`.
    #[serde(rename = "type")]
    pub key_type: &'static str,
}

/// An entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownEntity {
    /// Entity name.
    pub entity: String,
    /// Lake table.
    pub table: String,
    /// Schema version.
    pub version: i32,
    /// What it is.
    pub description: Option<String>,
    /// Its conditions in one line: `PK = USER#{user_id}, SK = METADATA`.
    #[serde(rename = "match")]
    pub matching: String,
    /// Its priority.
    pub priority: i32,
    /// Whether keys alone decide.
    pub by_keys_alone: bool,
    /// Whether old images are kept.
    pub keep_old_image: bool,
    /// Its columns in declared order, dropped ones included.
    pub columns: Vec<ShownColumn>,
}

/// A typed column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownColumn {
    /// Column name.
    pub name: String,
    /// Type as declared.
    #[serde(rename = "type")]
    pub declared_type: String,
    /// Athena type; `None` for a dropped column.
    pub athena_type: Option<String>,
    /// Arrow type; `None` for a dropped column.
    pub arrow_type: Option<String>,
    /// Parquet field id; `None` for a dropped column.
    pub field_id: Option<i32>,
    /// `capture` or `attribute`.
    pub from: &'static str,
    /// Name of the capture or attribute.
    pub source: String,
    /// Whether only the attribute of exactly this name counts.
    pub exact: bool,
    /// Formats that differ from the default: `epoch_s`, or `lines.element.at: epoch_ms`.
    pub format: Option<String>,
    /// `drop`, `mask` or `hmac_sha256`.
    pub transform: Option<&'static str>,
    /// `rest` or `quarantine`.
    pub on_mismatch: &'static str,
    /// Whether values held inexactly stay in `_rest`.
    pub lossless: bool,
}

/// Describes a catalog.
pub fn describe(catalog: &Catalog) -> ShownCatalog {
    let source = &catalog.source;
    let names = KeyNames {
        partition_key: &source.partition_key.name,
        sort_key: source.sort_key.as_ref().map_or("sort key", |key| &key.name),
    };
    ShownCatalog {
        database: catalog.database.clone(),
        source_table: source.table.clone(),
        partition_key: key(&source.partition_key),
        sort_key: source.sort_key.as_ref().map(key),
        ignore: source.ignore.clone(),
        entities: catalog
            .entities
            .iter()
            .map(|shown| entity(shown, &names))
            .collect(),
    }
}

struct KeyNames<'c> {
    partition_key: &'c str,
    sort_key: &'c str,
}

fn key(attribute: &KeyAttribute) -> ShownKey {
    let key_type = match attribute.key_type {
        KeyType::S => "S",
        KeyType::N => "N",
        KeyType::B => "B",
    };
    ShownKey {
        name: attribute.name.clone(),
        key_type,
    }
}

fn entity(entity: &Entity, names: &KeyNames<'_>) -> ShownEntity {
    ShownEntity {
        entity: entity.name.clone(),
        table: entity.table.clone(),
        version: entity.version,
        description: entity.description.clone(),
        matching: matching(&entity.matcher, names),
        priority: entity.matcher.priority,
        by_keys_alone: entity.matcher.by_keys_alone(),
        keep_old_image: entity.keep_old_image,
        columns: entity
            .columns
            .iter()
            .map(|shown| column(entity, shown))
            .collect(),
    }
}

fn matching(matcher: &Matcher, names: &KeyNames<'_>) -> String {
    let mut parts = Vec::new();
    let alternatives = |templates: &[Template]| {
        templates
            .iter()
            .map(|template| template.text.as_str())
            .collect::<Vec<_>>()
            .join(" | ")
    };
    for (name, templates) in [
        (names.partition_key, &matcher.partition_key),
        (names.sort_key, &matcher.sort_key),
    ] {
        if !templates.is_empty() {
            parts.push(format!("{name} = {}", alternatives(templates)));
        }
    }
    for condition in &matcher.attributes {
        let attribute = &condition.attribute;
        parts.push(match &condition.test {
            AttributeTest::OneOf(values) => {
                let values: Vec<String> = values.iter().map(scalar).collect();
                format!("{attribute} = {}", values.join(" | "))
            }
            AttributeTest::Exists(true) => format!("{attribute} present"),
            AttributeTest::Exists(false) => format!("{attribute} absent"),
            AttributeTest::Prefix(prefix) => format!("{attribute} begins with \"{prefix}\""),
            AttributeTest::Suffix(suffix) => format!("{attribute} ends with \"{suffix}\""),
        });
    }
    if parts.is_empty() {
        "everything else".to_owned()
    } else {
        parts.join(", ")
    }
}

fn scalar(value: &Scalar) -> String {
    match value {
        Scalar::S(text) => format!("\"{text}\""),
        Scalar::N(number) => number.clone(),
        Scalar::Bool(value) => value.to_string(),
    }
}

fn column(entity: &Entity, column: &Column) -> ShownColumn {
    let (from, source, exact) = match &column.source {
        ColumnSource::Capture(_) => ("capture", column.name.clone(), true),
        ColumnSource::Attribute(AttributeName::Exact(name)) => ("attribute", name.clone(), true),
        ColumnSource::Attribute(AttributeName::Named(name)) => ("attribute", name.clone(), false),
    };
    let is_stored = column.transform != Some(Transform::Drop);
    ShownColumn {
        name: column.name.clone(),
        declared_type: declared_type(&column.ty),
        athena_type: is_stored.then(|| athena_type(&column.ty)),
        arrow_type: is_stored.then(|| arrow_text(&arrow_type(&column.ty))),
        field_id: is_stored.then_some(column.field_id),
        from,
        source,
        exact,
        format: formats(entity, &column.name),
        transform: column.transform.map(|transform| match transform {
            Transform::Drop => "drop",
            Transform::Mask => "mask",
            Transform::HmacSha256 => "hmac_sha256",
        }),
        on_mismatch: match column.on_mismatch {
            OnMismatch::Rest => "rest",
            OnMismatch::Quarantine => "quarantine",
        },
        lossless: column.lossless,
    }
}

/// Formats of a column and its parts.
fn formats(entity: &Entity, column: &str) -> Option<String> {
    let formats: Vec<String> = nodes(entity)
        .into_iter()
        .filter(|node| node.path.split('.').next() == Some(column))
        .filter_map(|node| {
            let format = node.format?;
            Some(if node.path == column {
                format
            } else {
                format!("{}: {format}", node.path)
            })
        })
        .collect();
    (!formats.is_empty()).then(|| formats.join(", "))
}

/// The Arrow type without field ids.
fn arrow_text(ty: &DataType) -> String {
    match ty {
        DataType::List(element) => format!("List<{}>", arrow_text(element.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{}: {}", field.name(), arrow_text(field.data_type())))
                .collect();
            format!("Struct<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let types: Vec<String> = fields
                    .iter()
                    .map(|field| arrow_text(field.data_type()))
                    .collect();
                format!("Map<{}>", types.join(", "))
            }
            other => format!("Map<{}>", arrow_text(other)),
        },
        other => other.to_string(),
    }
}
