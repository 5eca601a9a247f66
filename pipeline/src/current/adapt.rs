//! Rows written under an older schema, as rows of the table's schema now.
//!
//! Columns and struct members are found by name. What an old file does not have is NULL; what has been
//! widened since (`int` to `bigint`, a decimal with more digits) is converted; anything else is an
//! error, never a silent NULL.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Fields, SchemaRef};

/// A column that does not fit: its name, its type, and the type it should have.
pub(super) struct Misfit {
    pub(super) column: String,
    pub(super) found: String,
    pub(super) expected: String,
}

/// The batch with exactly the columns of `schema`.
pub(super) fn adapt(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Misfit> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| {
            let misfit = |found: &DataType| Misfit {
                column: field.name().clone(),
                found: found.to_string(),
                expected: field.data_type().to_string(),
            };
            match batch.column_by_name(field.name()) {
                Some(column) => {
                    array(column, field.data_type()).ok_or_else(|| misfit(column.data_type()))
                }
                None if field.is_nullable() => {
                    Ok(new_null_array(field.data_type(), batch.num_rows()))
                }
                None => Err(misfit(&DataType::Null)),
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| Misfit {
        column: "(all)".to_owned(),
        found: error.to_string(),
        expected: "the table's schema".to_owned(),
    })
}

fn array(from: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    if from.data_type() == to {
        return Some(Arc::clone(from));
    }
    match to {
        DataType::Struct(fields) => {
            let from = from.as_struct_opt()?;
            let columns = members(from, fields)?;
            let nulls = from.nulls().cloned();
            let array =
                StructArray::try_new_with_length(fields.clone(), columns, nulls, from.len())
                    .ok()?;
            Some(Arc::new(array))
        }
        DataType::List(element) => {
            let from = from.as_list_opt::<i32>()?;
            let values = array(from.values(), element.data_type())?;
            let (offsets, nulls) = (from.offsets().clone(), from.nulls().cloned());
            Some(Arc::new(
                ListArray::try_new(Arc::clone(element), offsets, values, nulls).ok()?,
            ))
        }
        DataType::Map(entries, sorted) => {
            let from = from.as_map_opt()?;
            let DataType::Struct(fields) = entries.data_type() else {
                return None;
            };
            // Keys and values by position: readers differ in what they call them.
            let columns = fields
                .iter()
                .zip(from.entries().columns())
                .map(|(field, column)| array(column, field.data_type()))
                .collect::<Option<Vec<_>>>()?;
            let structs = StructArray::try_new(fields.clone(), columns, None).ok()?;
            let (offsets, nulls) = (from.offsets().clone(), from.nulls().cloned());
            let entries = Arc::clone(entries);
            Some(Arc::new(
                MapArray::try_new(entries, offsets, structs, nulls, *sorted).ok()?,
            ))
        }
        scalar if widens(from.data_type(), scalar) => cast_with_options(
            from,
            scalar,
            &CastOptions {
                safe: false,
                ..Default::default()
            },
        )
        .ok(),
        _ => None,
    }
}

fn members(from: &StructArray, fields: &Fields) -> Option<Vec<ArrayRef>> {
    fields
        .iter()
        .map(|field| match from.column_by_name(field.name()) {
            Some(column) => array(column, field.data_type()),
            None => Some(new_null_array(field.data_type(), from.len())),
        })
        .collect()
}

/// Whether every value of one type is a value of the other.
fn widens(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Int32, DataType::Int64) => true,
        (DataType::Decimal128(p, s), DataType::Decimal128(to_p, to_s)) => s == to_s && p <= to_p,
        _ => false,
    }
}
