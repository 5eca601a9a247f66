//! The inverse of decoding: a row back into the item it came from.
//!
//! What `_rest` holds comes from there; the key attributes from `_pk` and `_sk`; everything else from
//! its column. Exact for every item, save what the schema knowingly gives up (transforms,
//! `lossless = false`).

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dynalake_schemas::{
    AttributeName, Catalog, Child, ColumnSource, ColumnType, KeyAttribute, KeyType, Member,
    StringFormat, TimeFormat, naming, row_columns,
};

use crate::json::{canonical_value, members, write_escaped};
use crate::number;
use crate::time;

/// The item of a row, as canonical DynamoDB JSON ([`crate::json::canonical_item`]).
///
/// `batch` has the columns of [`dynalake_schemas::Entity::arrow_schema`], found by name; a column
/// that is missing (written by an older schema) is NULL.
///
/// # Errors
/// A sentence when the row is a REMOVE (there is no item) or does not have the table's schema.
pub fn rebuild_item(
    catalog: &Catalog,
    entity: usize,
    batch: &RecordBatch,
    row: usize,
) -> Result<String, String> {
    let entity = catalog.entities.get(entity).ok_or("no such entity")?;
    if text(batch, row_columns::OP, row).as_deref() == Some("REMOVE") {
        return Err("a REMOVE row has no item".to_owned());
    }
    let mut attributes = BTreeMap::new();
    if let Some(rest) = text(batch, row_columns::REST, row) {
        for (name, value) in members(rest.as_bytes()).map_err(|e| e.to_string())? {
            let value = canonical_value(value).map_err(|e| e.to_string())?;
            attributes.insert(name.into_owned(), value);
        }
    }
    let keys = [
        (Some(&catalog.source.partition_key), row_columns::PK),
        (catalog.source.sort_key.as_ref(), row_columns::SK),
    ];
    for (key, column) in keys {
        if let (Some(KeyAttribute { name, key_type }), Some(text)) = (key, text(batch, column, row))
        {
            let tag = match key_type {
                KeyType::S => "S",
                KeyType::N => "N",
                KeyType::B => "B",
            };
            attributes
                .entry(name.clone())
                .or_insert_with(|| tagged(tag, &text));
        }
    }
    // A column that was filled by way of the naming function does not tell the attribute's name; the
    // attribute is here already, under its own.
    let wanted = |source: &ColumnSource, attribute: &str| matches!(source, ColumnSource::Attribute(name) if primary(name) == attribute);
    let derived: BTreeSet<String> = attributes
        .keys()
        .filter(|name| {
            !entity
                .columns
                .iter()
                .any(|column| wanted(&column.source, name))
        })
        .map(|name| naming::column_name(name))
        .collect();
    for column in entity
        .columns
        .iter()
        .filter(|column| column.transform.is_none())
    {
        let ColumnSource::Attribute(name) = &column.source else {
            continue;
        };
        if matches!(name, AttributeName::Named(name) if derived.contains(&naming::column_name(name)))
        {
            continue;
        }
        let Some(array) = batch.column_by_name(&column.name) else {
            continue;
        };
        if !attributes.contains_key(primary(name))
            && let Some(value) = value_text(&column.ty, array, row)?
        {
            attributes.insert(primary(name).to_owned(), value);
        }
    }
    Ok(object(attributes))
}

fn text(batch: &RecordBatch, row_column: usize, row: usize) -> Option<String> {
    let name = row_columns::ALL.get(row_column)?.name;
    let array = batch.column_by_name(name)?.as_string_opt::<i32>()?;
    (row < array.len() && array.is_valid(row)).then(|| array.value(row).to_owned())
}

/// The attribute that a column alone stands for.
fn primary(name: &AttributeName) -> &str {
    match name {
        AttributeName::Exact(name) | AttributeName::Named(name) => name,
    }
}

fn tagged(tag: &str, text: &str) -> String {
    let mut out = format!("{{\"{tag}\":");
    write_escaped(text, &mut out);
    out.push('}');
    out
}

fn object(members: BTreeMap<String, String>) -> String {
    let mut out = String::from("{");
    for (name, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        write_escaped(&name, &mut out);
        out.push(':');
        out.push_str(&value);
    }
    out.push('}');
    out
}

/// The AttributeValue of a column's value; `None` for NULL.
fn value_text(ty: &ColumnType, array: &ArrayRef, row: usize) -> Result<Option<String>, String> {
    if row >= array.len() || array.is_null(row) {
        return Ok(None);
    }
    let value = match ty {
        ColumnType::Array(child) => {
            let elements = list_values(child, array, row)?;
            Some(format!("{{\"L\":[{}]}}", elements.join(",")))
        }
        ColumnType::Set(child) => Some(set_text(child, array, row)?),
        ColumnType::Map { value, .. } => map_text(value, array, row)?,
        ColumnType::Struct(members) => match array.as_struct_opt() {
            Some(array) => Some(format!("{{\"M\":{}}}", struct_text(members, array, row)?)),
            None => None,
        },
        ColumnType::Json => array
            .as_string_opt::<i32>()
            .map(|a| a.value(row).to_owned()),
        scalar => scalar_text(scalar, array, row).map(|(tag, text)| match tag {
            "BOOL" => format!("{{\"BOOL\":{text}}}"),
            tag => tagged(tag, &text),
        }),
    };
    value
        .map(Some)
        .ok_or_else(|| format!("a column does not have the type {ty:?}"))
}

/// Tag and text of a scalar that is not NULL.
fn scalar_text(ty: &ColumnType, array: &ArrayRef, row: usize) -> Option<(&'static str, String)> {
    Some(match ty {
        ColumnType::Boolean => ("BOOL", array.as_boolean_opt()?.value(row).to_string()),
        ColumnType::Int => (
            "N",
            array
                .as_primitive_opt::<Int32Type>()?
                .value(row)
                .to_string(),
        ),
        ColumnType::Bigint => (
            "N",
            array
                .as_primitive_opt::<Int64Type>()?
                .value(row)
                .to_string(),
        ),
        ColumnType::Double => {
            let value = array.as_primitive_opt::<Float64Type>()?.value(row);
            ("N", number::canonical(&format!("{value:e}")).ok()?)
        }
        ColumnType::Decimal { scale, .. } => {
            let value = array.as_primitive_opt::<Decimal128Type>()?.value(row);
            ("N", number::canonical(&format!("{value}e-{scale}")).ok()?)
        }
        ColumnType::String(format) => {
            let tag = if *format == StringFormat::Number {
                "N"
            } else {
                "S"
            };
            (tag, array.as_string_opt::<i32>()?.value(row).to_owned())
        }
        ColumnType::Binary => (
            "B",
            STANDARD.encode(array.as_binary_opt::<i32>()?.value(row)),
        ),
        ColumnType::Date(format) => {
            let days = array.as_primitive_opt::<Date32Type>()?.value(row);
            match format {
                TimeFormat::Iso8601 => ("S", time::format_date(days)?),
                TimeFormat::Pattern(pattern) => ("S", time::format_days(days, pattern)?),
                epoch => ("N", epoch_text(i64::from(days) * time::DAY_MS, epoch)?),
            }
        }
        ColumnType::Timestamp(format) => {
            let millis = array
                .as_primitive_opt::<TimestampMillisecondType>()?
                .value(row);
            match format {
                TimeFormat::Iso8601 => ("S", time::format_iso8601(millis)?),
                TimeFormat::Pattern(pattern) => ("S", time::format_millis(millis, pattern)?),
                epoch => ("N", epoch_text(millis, epoch)?),
            }
        }
        ColumnType::Array(_)
        | ColumnType::Set(_)
        | ColumnType::Map { .. }
        | ColumnType::Struct(_)
        | ColumnType::Json => return None,
    })
}

fn epoch_text(millis: i64, format: &TimeFormat) -> Option<String> {
    let exponent = match format {
        TimeFormat::EpochSeconds => -3,
        TimeFormat::EpochMillis => 0,
        _ => 3,
    };
    number::canonical(&format!("{millis}e{exponent}")).ok()
}

const NULL: &str = "{\"NULL\":true}";

fn list_values(child: &Child, array: &ArrayRef, row: usize) -> Result<Vec<String>, String> {
    let list = array.as_list_opt::<i32>().ok_or("a column is not a list")?;
    let values = list.value(row);
    (0..values.len())
        .map(|at| Ok(value_text(&child.ty, &values, at)?.unwrap_or_else(|| NULL.to_owned())))
        .collect()
}

fn set_text(child: &Child, array: &ArrayRef, row: usize) -> Result<String, String> {
    let list = array.as_list_opt::<i32>().ok_or("a column is not a list")?;
    let values = list.value(row);
    let mut out = match child.ty {
        ColumnType::String(_) => String::from("{\"SS\":["),
        ColumnType::Binary => String::from("{\"BS\":["),
        _ => String::from("{\"NS\":["),
    };
    for at in 0..values.len() {
        if at > 0 {
            out.push(',');
        }
        let (_, text) = scalar_text(&child.ty, &values, at).ok_or("a set holds NULL")?;
        write_escaped(&text, &mut out);
    }
    out.push_str("]}");
    Ok(out)
}

fn map_text(value: &Child, array: &ArrayRef, row: usize) -> Result<Option<String>, String> {
    let Some(map) = array.as_map_opt() else {
        return Ok(None);
    };
    let entries = map.value(row);
    let (keys, values) = (entries.column(0), entries.column(1));
    let Some(keys) = keys.as_string_opt::<i32>() else {
        return Ok(None);
    };
    let mut found = BTreeMap::new();
    for at in 0..entries.len() {
        let value = value_text(&value.ty, values, at)?.unwrap_or_else(|| NULL.to_owned());
        found.insert(keys.value(at).to_owned(), value);
    }
    Ok(Some(format!("{{\"M\":{}}}", object(found))))
}

fn struct_text(members: &[Member], array: &StructArray, row: usize) -> Result<String, String> {
    let mut found = BTreeMap::new();
    for member in members {
        if let Some(column) = array.column_by_name(&member.name)
            && let Some(value) = value_text(&member.ty, column, row)?
        {
            found.insert(primary(&member.attribute).to_owned(), value);
        }
    }
    Ok(object(found))
}
