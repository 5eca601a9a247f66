//! What is known of an entity's columns before any item is seen.

use dynalake_schemas::{
    AttributeName, Catalog, ColumnSource, ColumnType, Entity, OnMismatch, StringFormat, TimeFormat,
    Transform,
};

use super::names::Names;

/// How one entity's items become rows.
#[derive(Debug)]
pub(crate) struct EntityPlan {
    pub(crate) names: Names,
    pub(crate) columns: Vec<ColumnPlan>,
    /// Column paths for the report, by [`Node::path`].
    pub(crate) paths: Vec<String>,
    pub(crate) keep_old_image: bool,
    pub(crate) version: i32,
}

/// How one column is filled.
#[derive(Debug)]
pub(crate) struct ColumnPlan {
    pub(crate) name: String,
    /// Index in [`dynalake_schemas::Matcher::captures`]; `None` for an attribute.
    pub(crate) capture: Option<usize>,
    pub(crate) node: Node,
    pub(crate) transform: Option<Transform>,
    pub(crate) on_mismatch: OnMismatch,
    pub(crate) lossless: bool,
    /// Position among the columns of the file; `None` for a dropped one.
    pub(crate) stored: Option<usize>,
}

/// A column or a part of one.
#[derive(Debug)]
pub(crate) struct Node {
    /// Index of its path in [`EntityPlan::paths`].
    pub(crate) path: usize,
    pub(crate) kind: Kind,
}

/// What a node reads.
#[derive(Debug)]
pub(crate) enum Kind {
    Boolean,
    Int,
    Bigint,
    Double,
    Decimal { precision: u8, scale: i32 },
    Text,
    NumberText,
    Binary,
    Date(TimeFormat),
    Timestamp(TimeFormat),
    Array(Box<Node>),
    Set(Box<Node>),
    Map(Box<Node>),
    Struct { names: Names, members: Vec<Node> },
    Json,
}

impl EntityPlan {
    pub(crate) fn new(catalog: &Catalog, entity: &Entity) -> Self {
        let mut paths = Vec::new();
        let mut stored = 0;
        let mut wanted = Vec::new();
        let columns = entity
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                let capture = match &column.source {
                    ColumnSource::Capture(capture) => Some(*capture),
                    ColumnSource::Attribute(name) => {
                        wanted.push((index, name.clone()));
                        None
                    }
                };
                let dropped = column.transform == Some(Transform::Drop);
                let position = stored;
                stored += usize::from(!dropped);
                ColumnPlan {
                    name: column.name.clone(),
                    capture,
                    node: Node::new(&column.ty, &column.name, &mut paths),
                    transform: column.transform,
                    on_mismatch: column.on_mismatch,
                    lossless: column.lossless,
                    stored: (!dropped).then_some(position),
                }
            })
            .collect();
        Self {
            names: Names::new(wanted, &catalog.source.ignore),
            columns,
            paths,
            keep_old_image: entity.keep_old_image,
            version: entity.version,
        }
    }
}

impl Node {
    fn new(ty: &ColumnType, path: &str, paths: &mut Vec<String>) -> Self {
        let index = paths.len();
        paths.push(path.to_owned());
        let mut child = |ty: &ColumnType, suffix: &str| {
            Box::new(Self::new(ty, &format!("{path}{suffix}"), paths))
        };
        let kind = match ty {
            ColumnType::Boolean => Kind::Boolean,
            ColumnType::Int => Kind::Int,
            ColumnType::Bigint => Kind::Bigint,
            ColumnType::Double => Kind::Double,
            ColumnType::Decimal { precision, scale } => Kind::Decimal {
                precision: *precision,
                scale: i32::from(*scale),
            },
            ColumnType::String(StringFormat::Text) => Kind::Text,
            ColumnType::String(StringFormat::Number) => Kind::NumberText,
            ColumnType::Binary => Kind::Binary,
            ColumnType::Date(format) => Kind::Date(format.clone()),
            ColumnType::Timestamp(format) => Kind::Timestamp(format.clone()),
            ColumnType::Array(element) => Kind::Array(child(&element.ty, "[]")),
            ColumnType::Set(element) => Kind::Set(child(&element.ty, "[]")),
            ColumnType::Map { value, .. } => Kind::Map(child(&value.ty, "{}")),
            ColumnType::Struct(members) => {
                let wanted: Vec<(usize, AttributeName)> = members
                    .iter()
                    .map(|member| member.attribute.clone())
                    .enumerate()
                    .collect();
                let members = members
                    .iter()
                    .map(|member| Self::new(&member.ty, &format!("{path}.{}", member.name), paths))
                    .collect();
                Kind::Struct {
                    names: Names::new(wanted, &[]),
                    members,
                }
            }
            ColumnType::Json => Kind::Json,
        };
        Self { path: index, kind }
    }
}
