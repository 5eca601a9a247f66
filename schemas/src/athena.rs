//! Column types as Athena and Glue are told.

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
    let mut text = String::new();
    write_type(&mut text, ty, "");
    text
}

/// The same for DDL, with the names of struct members between backticks: Hive's parser refuses
/// reserved words such as `date` there.
pub(crate) fn ddl_type(ty: &ColumnType) -> String {
    let mut text = String::new();
    write_type(&mut text, ty, "`");
    text
}

fn write_type(text: &mut String, ty: &ColumnType, quote: &str) {
    match ty {
        ColumnType::Boolean => text.push_str("boolean"),
        ColumnType::Int => text.push_str("int"),
        ColumnType::Bigint => text.push_str("bigint"),
        ColumnType::Double => text.push_str("double"),
        ColumnType::Decimal { precision, scale } => {
            // Writing to a String cannot fail.
            _ = write!(text, "decimal({precision},{scale})");
        }
        ColumnType::String(_) | ColumnType::Json => text.push_str("string"),
        ColumnType::Binary => text.push_str("binary"),
        ColumnType::Date(_) => text.push_str("date"),
        ColumnType::Timestamp(_) => text.push_str("timestamp"),
        ColumnType::Array(child) | ColumnType::Set(child) => {
            text.push_str("array<");
            write_type(text, &child.ty, quote);
            text.push('>');
        }
        ColumnType::Map { value, .. } => {
            text.push_str("map<string,");
            write_type(text, &value.ty, quote);
            text.push('>');
        }
        ColumnType::Struct(members) => {
            text.push_str("struct<");
            for (index, member) in members.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                _ = write!(text, "{quote}{}{quote}:", member.name);
                write_type(text, &member.ty, quote);
            }
            text.push('>');
        }
    }
}
