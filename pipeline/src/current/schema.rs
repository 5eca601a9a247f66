//! The schema of a table as its files have it: for readers that have no schema folder at hand.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

/// A schema that rows of all these files can be read as: every column and struct member of any of
/// them, of the wider type. `Err` names the column whose types do not go together.
pub(crate) fn unite<'s>(
    schemas: impl Iterator<Item = &'s SchemaRef>,
) -> Result<Option<SchemaRef>, String> {
    let mut united: Option<SchemaRef> = None;
    for schema in schemas {
        united = Some(match united {
            None => Arc::clone(schema),
            Some(ours) if ours.fields() == schema.fields() => ours,
            Some(ours) => Arc::new(Schema::new(fields(ours.fields(), schema.fields())?)),
        });
    }
    Ok(united)
}

fn fields(ours: &Fields, theirs: &Fields) -> Result<Fields, String> {
    let mut all: Vec<Arc<Field>> = Vec::with_capacity(ours.len());
    for field in ours {
        all.push(match theirs.find(field.name()) {
            Some((_, other)) => Arc::new(merged(field, other)?),
            None => Arc::new(field.as_ref().clone().with_nullable(true)),
        });
    }
    for field in theirs
        .iter()
        .filter(|field| ours.find(field.name()).is_none())
    {
        all.push(Arc::new(field.as_ref().clone().with_nullable(true)));
    }
    Ok(all.into())
}

fn merged(ours: &Field, theirs: &Field) -> Result<Field, String> {
    let ty = types(ours.data_type(), theirs.data_type()).map_err(|inner| match inner {
        inner if inner.is_empty() => ours.name().clone(),
        inner => format!("{}.{inner}", ours.name()),
    })?;
    Ok(ours
        .clone()
        .with_data_type(ty)
        .with_nullable(ours.is_nullable() || theirs.is_nullable()))
}

fn types(ours: &DataType, theirs: &DataType) -> Result<DataType, String> {
    match (ours, theirs) {
        (ours, theirs) if ours == theirs => Ok(ours.clone()),
        (DataType::Int32, DataType::Int64) | (DataType::Int64, DataType::Int32) => {
            Ok(DataType::Int64)
        }
        (DataType::Decimal128(p, s), DataType::Decimal128(q, t)) if s == t => {
            Ok(DataType::Decimal128(*p.max(q), *s))
        }
        (DataType::Struct(ours), DataType::Struct(theirs)) => {
            Ok(DataType::Struct(fields(ours, theirs)?))
        }
        (DataType::List(ours), DataType::List(theirs)) => {
            Ok(DataType::List(Arc::new(merged(ours, theirs)?)))
        }
        (DataType::Map(ours, sorted), DataType::Map(theirs, _)) => {
            Ok(DataType::Map(Arc::new(merged(ours, theirs)?), *sorted))
        }
        _ => Err(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: Vec<(&str, DataType)>) -> SchemaRef {
        let fields: Vec<Field> = fields
            .into_iter()
            .map(|(name, ty)| Field::new(name, ty, false))
            .collect();
        Arc::new(Schema::new(fields))
    }

    #[test]
    fn columns_of_all_files_are_there_in_their_wider_type() {
        let inner = |fields: Vec<Field>| DataType::Struct(fields.into());
        let old = schema(vec![
            ("a", DataType::Int32),
            (
                "s",
                inner(vec![Field::new("x", DataType::Decimal128(5, 2), true)]),
            ),
        ]);
        let new = schema(vec![
            ("b", DataType::Utf8),
            ("a", DataType::Int64),
            (
                "s",
                inner(vec![
                    Field::new("x", DataType::Decimal128(9, 2), true),
                    Field::new("y", DataType::Utf8, true),
                ]),
            ),
        ]);
        let united = unite([&old, &new].into_iter()).unwrap().unwrap();
        let shown: Vec<String> = united
            .fields()
            .iter()
            .map(|f| format!("{} {}", f.name(), f.data_type()))
            .collect();
        assert_eq!(shown[0], "a Int64");
        assert!(
            shown[1].contains("Decimal128(9, 2)") && shown[1].contains("\"y\""),
            "{shown:?}"
        );
        assert_eq!(shown[2], "b Utf8");
        assert!(united.field(2).is_nullable());
    }

    #[test]
    fn types_that_do_not_go_together_name_their_column() {
        let text = schema(vec![("a", DataType::Utf8)]);
        let number = schema(vec![("a", DataType::Int32)]);
        assert_eq!(unite([&text, &number].into_iter()).unwrap_err(), "a");
    }
}
