//! Column types as text: for Athena and Glue, for DDL, and as a schema file declares them.

use std::fmt::Write;

use crate::model::ColumnType;

/// The Athena (and Glue) type string: lower case, no blanks, sets as arrays, `json` as string.
///
/// ```
/// use dynalake_schemas::{athena::athena_type, types::parse};
/// let ty = parse("struct<tags:set<string>,raw:json>").expect("a type");
/// assert_eq!(athena_type(&ty), "struct<tags:array<string>,raw:string>");
/// ```
pub fn athena_type(ty: &ColumnType) -> String {
    written(ty, Style::Athena)
}

/// The type as a schema file declares it, with `set` and `json`.
pub fn declared_type(ty: &ColumnType) -> String {
    written(ty, Style::Declared)
}

/// The same as [`athena_type`] for DDL, with the names of struct members between backticks: Hive's
/// parser refuses reserved words such as `date` there.
pub(crate) fn ddl_type(ty: &ColumnType) -> String {
    written(ty, Style::Ddl)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Athena,
    Ddl,
    Declared,
}

fn written(ty: &ColumnType, style: Style) -> String {
    let mut text = String::new();
    write_type(&mut text, ty, style);
    text
}

fn write_type(text: &mut String, ty: &ColumnType, style: Style) {
    match ty {
        ColumnType::Boolean => text.push_str("boolean"),
        ColumnType::Int => text.push_str("int"),
        ColumnType::Bigint => text.push_str("bigint"),
        ColumnType::Double => text.push_str("double"),
        ColumnType::Decimal { precision, scale } => {
            // Writing to a String cannot fail.
            _ = write!(text, "decimal({precision},{scale})");
        }
        ColumnType::Json if style == Style::Declared => text.push_str("json"),
        ColumnType::String(_) | ColumnType::Json => text.push_str("string"),
        ColumnType::Binary => text.push_str("binary"),
        ColumnType::Date(_) => text.push_str("date"),
        ColumnType::Timestamp(_) => text.push_str("timestamp"),
        ColumnType::Array(child) | ColumnType::Set(child) => {
            let is_set = style == Style::Declared && matches!(ty, ColumnType::Set(_));
            text.push_str(if is_set { "set<" } else { "array<" });
            write_type(text, &child.ty, style);
            text.push('>');
        }
        ColumnType::Map { value, .. } => {
            text.push_str("map<string,");
            write_type(text, &value.ty, style);
            text.push('>');
        }
        ColumnType::Struct(members) => {
            text.push_str("struct<");
            let quote = if style == Style::Ddl { "`" } else { "" };
            for (index, member) in members.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                _ = write!(text, "{quote}{}{quote}:", member.name);
                write_type(text, &member.ty, style);
            }
            text.push('>');
        }
    }
}
