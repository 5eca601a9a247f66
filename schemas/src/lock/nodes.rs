//! An entity's stored columns and all their parts, flat, by path: `lines`, `lines.element`,
//! `lines.element.sku`, `attrs.key`, `attrs.value`.

use crate::model::{
    AttributeName, ColumnSource, ColumnType, Entity, StringFormat, TimeFormat, Transform,
};
use crate::naming::column_name;

/// A column or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) path: String,
    pub(crate) id: i32,
    pub(crate) kind: Kind,
    /// The attribute, where it was named; `{x}` for the capture of that name.
    pub(crate) reads: Option<String>,
    pub(crate) format: Option<String>,
    pub(crate) transform: Option<String>,
}

/// The physical type of a node, without its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Int,
    Bigint,
    Double,
    Decimal { precision: u8, scale: i8 },
    String,
    Binary,
    Date,
    Timestamp,
    Array,
    Set,
    Map,
    Struct,
    Json,
}

const SIMPLE: [(&str, Kind); 13] = [
    ("boolean", Kind::Boolean),
    ("int", Kind::Int),
    ("bigint", Kind::Bigint),
    ("double", Kind::Double),
    ("string", Kind::String),
    ("binary", Kind::Binary),
    ("date", Kind::Date),
    ("timestamp", Kind::Timestamp),
    ("array", Kind::Array),
    ("set", Kind::Set),
    ("map", Kind::Map),
    ("struct", Kind::Struct),
    ("json", Kind::Json),
];

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Self::Decimal { precision, scale } = self {
            return write!(f, "decimal({precision},{scale})");
        }
        let name = SIMPLE
            .iter()
            .find(|(_, kind)| kind == self)
            .map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl Kind {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some((_, kind)) = SIMPLE.iter().find(|(name, _)| *name == text) {
            return Some(*kind);
        }
        match crate::types::parse(text) {
            Ok(ColumnType::Decimal { precision, scale }) => {
                Some(Self::Decimal { precision, scale })
            }
            _ => None,
        }
    }
}

/// The nodes of an entity, parents before their parts, in declared order.
pub(crate) fn nodes(entity: &Entity) -> Vec<Node> {
    let mut nodes = Vec::new();
    for column in entity.stored_columns() {
        let reads = match &column.source {
            ColumnSource::Capture(_) => Some(format!("{{{}}}", column.name)),
            ColumnSource::Attribute(attribute) => reads(attribute),
        };
        let at = nodes.len();
        push(&mut nodes, &column.name, column.field_id, &column.ty, reads);
        if let Some(node) = nodes.get_mut(at) {
            node.transform = column.transform.map(|transform| {
                match transform {
                    Transform::Drop => "drop",
                    Transform::Mask => "mask",
                    Transform::HmacSha256 => "hmac_sha256",
                }
                .to_owned()
            });
        }
    }
    nodes
}

/// The attribute where it is not the one of the column's own name.
pub(super) fn reads(attribute: &AttributeName) -> Option<String> {
    match attribute {
        AttributeName::Named(name) if column_name(name) == *name => None,
        AttributeName::Exact(name) | AttributeName::Named(name) => Some(name.clone()),
    }
}

fn push(nodes: &mut Vec<Node>, path: &str, id: i32, ty: &ColumnType, reads: Option<String>) {
    let (kind, format) = kind_and_format(ty);
    nodes.push(Node {
        path: path.to_owned(),
        id,
        kind,
        reads,
        format,
        transform: None,
    });
    match ty {
        ColumnType::Array(child) | ColumnType::Set(child) => {
            push(
                nodes,
                &format!("{path}.element"),
                child.field_id,
                &child.ty,
                None,
            );
        }
        ColumnType::Map { key_id, value } => {
            let key = ColumnType::String(StringFormat::Text);
            push(nodes, &format!("{path}.key"), *key_id, &key, None);
            push(
                nodes,
                &format!("{path}.value"),
                value.field_id,
                &value.ty,
                None,
            );
        }
        ColumnType::Struct(members) => {
            for member in members {
                let path = format!("{path}.{}", member.name);
                push(
                    nodes,
                    &path,
                    member.field_id,
                    &member.ty,
                    self::reads(&member.attribute),
                );
            }
        }
        _ => {}
    }
}

fn kind_and_format(ty: &ColumnType) -> (Kind, Option<String>) {
    let kind = match ty {
        ColumnType::Boolean => Kind::Boolean,
        ColumnType::Int => Kind::Int,
        ColumnType::Bigint => Kind::Bigint,
        ColumnType::Double => Kind::Double,
        ColumnType::Decimal { precision, scale } => Kind::Decimal {
            precision: *precision,
            scale: *scale,
        },
        ColumnType::String(_) => Kind::String,
        ColumnType::Binary => Kind::Binary,
        ColumnType::Date(_) => Kind::Date,
        ColumnType::Timestamp(_) => Kind::Timestamp,
        ColumnType::Array(_) => Kind::Array,
        ColumnType::Set(_) => Kind::Set,
        ColumnType::Map { .. } => Kind::Map,
        ColumnType::Struct(_) => Kind::Struct,
        ColumnType::Json => Kind::Json,
    };
    (kind, format_text(ty))
}

/// The format as a schema file writes it; `None` for the default.
fn format_text(ty: &ColumnType) -> Option<String> {
    let text = match ty {
        ColumnType::String(StringFormat::Number) => "number",
        ColumnType::Date(format) | ColumnType::Timestamp(format) => match format {
            TimeFormat::Iso8601 => return None,
            TimeFormat::EpochSeconds => "epoch_s",
            TimeFormat::EpochMillis => "epoch_ms",
            TimeFormat::EpochMicros => "epoch_us",
            TimeFormat::Pattern(pattern) => pattern,
        },
        _ => return None,
    };
    Some(text.to_owned())
}
