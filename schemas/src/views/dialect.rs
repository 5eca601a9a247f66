//! How the two engines spell names, literals, types and JSON.

use std::fmt::Write;

use crate::model::{Child, ColumnType, Member};

/// SQL of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect<'a> {
    /// Athena, engine version 3 (Trino's SQL), with the Glue database.
    Athena {
        /// Glue database.
        database: &'a str,
    },
    /// DuckDB, in the default schema.
    DuckDb,
}

/// A name. Names are `[a-z0-9_]+`, so nothing in them needs escaping.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{name}\"")
}

/// A string literal; a quote inside is doubled, in both engines.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Dialect<'_> {
    /// A table or view.
    pub(super) fn table(self, name: &str) -> String {
        match self {
            Self::Athena { database } => format!("{}.{}", identifier(database), identifier(name)),
            Self::DuckDb => identifier(name),
        }
    }

    /// An instant in UTC, given as `YYYY-MM-DD HH:MM:SS.mmm`. Athena reads our instants as timestamps
    /// without a zone, DuckDB as what they are.
    pub(super) fn timestamp(self, text: &str) -> String {
        match self {
            Self::Athena { .. } => format!("TIMESTAMP '{text}'"),
            Self::DuckDb => format!("TIMESTAMPTZ '{text}+00'"),
        }
    }

    /// Binary as base64 text.
    pub(super) fn base64(self, expression: &str) -> String {
        match self {
            Self::Athena { .. } => format!("to_base64({expression})"),
            Self::DuckDb => format!("base64({expression})"),
        }
    }

    /// Any value as JSON text; binary inside becomes base64, NULL stays NULL.
    pub(super) fn json_text(self, expression: &str, ty: &ColumnType) -> String {
        let value = self.without_binary(expression, ty, 0);
        match self {
            Self::Athena { .. } => format!("json_format(CAST({value} AS JSON))"),
            Self::DuckDb => format!("CAST(to_json({value}) AS VARCHAR)"),
        }
    }

    /// The type in queries (DDL of Athena's tables spells types otherwise). `Dialect::Athena`: with
    /// binary as `varchar`, as [`Self::without_binary`] leaves it.
    pub(super) fn type_name(self, ty: &ColumnType) -> String {
        match (self, ty) {
            (_, ColumnType::Boolean) => "BOOLEAN".to_owned(),
            (_, ColumnType::Int) => "INTEGER".to_owned(),
            (_, ColumnType::Bigint) => "BIGINT".to_owned(),
            (_, ColumnType::Double) => "DOUBLE".to_owned(),
            (_, ColumnType::Decimal { precision, scale }) => {
                format!("DECIMAL({precision},{scale})")
            }
            (Self::Athena { .. }, ColumnType::Binary)
            | (_, ColumnType::String(_) | ColumnType::Json) => "VARCHAR".to_owned(),
            (Self::DuckDb, ColumnType::Binary) => "BLOB".to_owned(),
            (_, ColumnType::Date(_)) => "DATE".to_owned(),
            (Self::Athena { .. }, ColumnType::Timestamp(_)) => "TIMESTAMP(3)".to_owned(),
            (Self::DuckDb, ColumnType::Timestamp(_)) => "TIMESTAMPTZ".to_owned(),
            (Self::Athena { .. }, ColumnType::Array(child) | ColumnType::Set(child)) => {
                format!("ARRAY({})", self.type_name(&child.ty))
            }
            (Self::DuckDb, ColumnType::Array(child) | ColumnType::Set(child)) => {
                format!("{}[]", self.type_name(&child.ty))
            }
            (_, ColumnType::Map { value, .. }) => {
                format!("MAP(VARCHAR, {})", self.type_name(&value.ty))
            }
            (_, ColumnType::Struct(members)) => {
                let mut text = match self {
                    Self::Athena { .. } => "ROW(".to_owned(),
                    Self::DuckDb => "STRUCT(".to_owned(),
                };
                for (index, member) in members.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    let ty = self.type_name(&member.ty);
                    // Writing to a String cannot fail.
                    _ = write!(text, "{comma}{} {ty}", identifier(&member.name));
                }
                text.push(')');
                text
            }
        }
    }

    /// The value with every binary in it as base64 text. Athena casts no binary to JSON, and DuckDB
    /// does so in its own spelling. What holds none stays as it is.
    fn without_binary(self, expression: &str, ty: &ColumnType, depth: usize) -> String {
        if !holds_binary(ty) {
            return expression.to_owned();
        }
        match ty {
            ColumnType::Binary => self.base64(expression),
            ColumnType::Array(child) | ColumnType::Set(child) => {
                self.list_without_binary(expression, child, depth)
            }
            ColumnType::Map { value, .. } => self.map_without_binary(expression, value, depth),
            ColumnType::Struct(members) => self.struct_without_binary(expression, members, depth),
            _ => expression.to_owned(),
        }
    }

    fn list_without_binary(self, expression: &str, child: &Child, depth: usize) -> String {
        let element = format!("e{depth}");
        let inner = self.without_binary(&element, &child.ty, depth + 1);
        match self {
            Self::Athena { .. } => format!("transform({expression}, {element} -> {inner})"),
            Self::DuckDb => format!("list_transform({expression}, lambda {element}: {inner})"),
        }
    }

    fn map_without_binary(self, expression: &str, value: &Child, depth: usize) -> String {
        match self {
            Self::Athena { .. } => {
                let (key, element) = (format!("k{depth}"), format!("e{depth}"));
                let inner = self.without_binary(&element, &value.ty, depth + 1);
                format!("transform_values({expression}, ({key}, {element}) -> {inner})")
            }
            Self::DuckDb => {
                let entry = format!("e{depth}");
                let inner =
                    self.without_binary(&format!("{entry}.\"value\""), &value.ty, depth + 1);
                format!(
                    "map_from_entries(list_transform(map_entries({expression}), lambda {entry}: \
                     struct_pack(\"key\" := {entry}.\"key\", \"value\" := {inner})))"
                )
            }
        }
    }

    /// A NULL struct must not become a struct of NULLs.
    fn struct_without_binary(self, expression: &str, members: &[Member], depth: usize) -> String {
        let inner = members.iter().map(|member| {
            let name = identifier(&member.name);
            let value = self.without_binary(&format!("{expression}.{name}"), &member.ty, depth);
            match self {
                Self::Athena { .. } => value,
                Self::DuckDb => format!("{name} := {value}"),
            }
        });
        let inner: Vec<String> = inner.collect();
        let inner = inner.join(", ");
        let value = match self {
            Self::Athena { .. } => {
                let row = self.type_name(&ColumnType::Struct(members.to_vec()));
                format!("CAST(ROW({inner}) AS {row})")
            }
            Self::DuckDb => format!("struct_pack({inner})"),
        };
        format!("CASE WHEN {expression} IS NOT NULL THEN {value} END")
    }
}

fn holds_binary(ty: &ColumnType) -> bool {
    match ty {
        ColumnType::Binary => true,
        ColumnType::Array(child) | ColumnType::Set(child) => holds_binary(&child.ty),
        ColumnType::Map { value, .. } => holds_binary(&value.ty),
        ColumnType::Struct(members) => members.iter().any(|member| holds_binary(&member.ty)),
        _ => false,
    }
}
