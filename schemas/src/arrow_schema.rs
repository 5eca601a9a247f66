//! The Arrow schema of an entity's table: row columns, then typed columns.
//!
//! Names inside nested types are those of the Parquet format (`element`, `key_value`, `key`,
//! `value`), and every field carries its id as `PARQUET:field_id`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use crate::model::{Child, Column, ColumnType, Entity, Transform};
use crate::row_columns;

/// Metadata key under which the Parquet writer looks for a field's id.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

impl Entity {
    /// The schema of the table's files: [`row_columns::ALL`], then [`Entity::stored_columns`].
    pub fn arrow_schema(&self) -> SchemaRef {
        let mut fields: Vec<FieldRef> = row_columns::ALL
            .iter()
            .map(|column| {
                field(
                    column.name,
                    column.kind.arrow_type(),
                    column.nullable,
                    column.field_id,
                )
            })
            .collect();
        fields.extend(
            self.stored_columns()
                .map(|column| field(&column.name, arrow_type(&column.ty), true, column.field_id)),
        );
        Arc::new(Schema::new(fields))
    }

    /// The typed columns that are in files and tables, in order: all but [`Transform::Drop`].
    pub fn stored_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns
            .iter()
            .filter(|column| column.transform != Some(Transform::Drop))
    }
}

/// The Arrow type of a column type.
pub fn arrow_type(ty: &ColumnType) -> DataType {
    match ty {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Int => DataType::Int32,
        ColumnType::Bigint => DataType::Int64,
        ColumnType::Double => DataType::Float64,
        ColumnType::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale),
        ColumnType::String(_) | ColumnType::Json => DataType::Utf8,
        ColumnType::Binary => DataType::Binary,
        ColumnType::Date(_) => DataType::Date32,
        ColumnType::Timestamp(_) => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        ColumnType::Array(child) | ColumnType::Set(child) => {
            DataType::List(child_field("element", child))
        }
        ColumnType::Map { key_id, value } => {
            let key = field("key", DataType::Utf8, false, *key_id);
            let entries = Fields::from(vec![key, child_field("value", value)]);
            // The repeated group between a map and its keys has no id of its own.
            let entries = Field::new("key_value", DataType::Struct(entries), false);
            DataType::Map(Arc::new(entries), false)
        }
        ColumnType::Struct(members) => DataType::Struct(
            members
                .iter()
                .map(|member| field(&member.name, arrow_type(&member.ty), true, member.field_id))
                .collect(),
        ),
    }
}

fn child_field(name: &str, child: &Child) -> FieldRef {
    field(name, arrow_type(&child.ty), true, child.field_id)
}

fn field(name: &str, data_type: DataType, nullable: bool, field_id: i32) -> FieldRef {
    let metadata = HashMap::from([(FIELD_ID_KEY.to_owned(), field_id.to_string())]);
    Arc::new(Field::new(name, data_type, nullable).with_metadata(metadata))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{catalog, ecommerce};

    fn id(field: &Field) -> i32 {
        field.metadata()[FIELD_ID_KEY].parse().unwrap()
    }

    /// Every field with an id, in order, parents first.
    fn collect(fields: &Fields, into: &mut Vec<FieldRef>) {
        for field in fields {
            if field.name() != "key_value" {
                into.push(Arc::clone(field));
            }
            match field.data_type() {
                DataType::Struct(inner) => collect(inner, into),
                DataType::List(inner) | DataType::Map(inner, _) => {
                    collect(&Fields::from(vec![Arc::clone(inner)]), into);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn row_columns_come_first_and_every_field_has_its_own_id() {
        for entity in catalog(&ecommerce()).entities {
            let schema = entity.arrow_schema();
            let names: Vec<&str> = schema
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect();
            let expected: Vec<&str> = row_columns::ALL
                .iter()
                .map(|column| column.name)
                .chain(entity.stored_columns().map(|column| column.name.as_str()))
                .collect();
            assert_eq!(names, expected);
            for (index, column) in row_columns::ALL.iter().enumerate() {
                let field = schema.field(index);
                assert_eq!(
                    (id(field), field.is_nullable()),
                    (column.field_id, column.nullable)
                );
            }
            assert!(
                schema
                    .fields()
                    .iter()
                    .skip(row_columns::COUNT)
                    .all(|field| field.is_nullable())
            );
            let mut fields = Vec::new();
            collect(schema.fields(), &mut fields);
            let mut ids: Vec<i32> = fields.iter().map(|field| id(field)).collect();
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), count, "{}", entity.name);
        }
        assert_eq!(row_columns::ALL[row_columns::REST].name, "_rest");
        assert_eq!(row_columns::ALL[row_columns::OLD].name, "_old");
    }

    #[test]
    fn nested_fields_are_called_as_in_parquet() {
        let ty = arrow_type(&crate::types::parse("array<map<string,set<int>>>").unwrap());
        let DataType::List(element) = ty else {
            panic!()
        };
        assert_eq!(
            (element.name().as_str(), element.is_nullable()),
            ("element", true)
        );
        let DataType::Map(entries, false) = element.data_type() else {
            panic!()
        };
        assert_eq!(
            (entries.name().as_str(), entries.is_nullable()),
            ("key_value", false)
        );
        let DataType::Struct(fields) = entries.data_type() else {
            panic!()
        };
        assert_eq!(
            (fields[0].name().as_str(), fields[0].is_nullable()),
            ("key", false)
        );
        assert_eq!(
            (fields[1].name().as_str(), fields[1].is_nullable()),
            ("value", true)
        );
    }
}
