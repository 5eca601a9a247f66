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
