//! Flat views: every column of a plain type, as Amazon QuickSight and spreadsheets take them.
//!
//! Structs are laid out as columns `parent_child`, at every depth. Arrays and maps become JSON text,
//! binary becomes base64 text. Numbers, decimals among them, days and instants stay what they are.

use std::collections::BTreeSet;

use super::ViewColumn;
use super::dialect::{Dialect, identifier};
use crate::athena::athena_type;
use crate::model::{ColumnType, Entity};
use crate::row_columns;

/// Longest name of a column in QuickSight.
const MAX_NAME: usize = 128;

/// A column and the expression that fills it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlatColumn {
    pub(super) column: ViewColumn,
    expression: String,
}

/// The columns of a flat view, in the order of the table's.
pub(super) fn columns(entity: &Entity, dialect: Dialect<'_>) -> Vec<FlatColumn> {
    let mut flattening = Flattening::new(entity, dialect);
    for column in entity.stored_columns() {
        let expression = format!("t.{}", identifier(&column.name));
        if let ColumnType::Struct(members) = &column.ty {
            for member in members {
                let expression = format!("{expression}.{}", identifier(&member.name));
                flattening.nested(
                    &format!("{}_{}", column.name, member.name),
                    &expression,
                    &member.ty,
                );
            }
        } else {
            flattening.push(column.name.clone(), &expression, &column.ty);
        }
    }
    let mut columns = flattening.columns;
    columns.extend(row_columns::ALL.iter().map(|column| FlatColumn {
        column: ViewColumn {
            name: column.name.to_owned(),
            glue_type: column.kind.athena_type().to_owned(),
        },
        expression: format!("t.{}", identifier(column.name)),
    }));
    columns
}

/// The query of `<table>_flat`, over the view of the current state.
pub(super) fn query(entity: &Entity, columns: &[FlatColumn], dialect: Dialect<'_>) -> String {
    let lines: Vec<String> = columns
        .iter()
        .map(|FlatColumn { column, expression }| {
            let name = identifier(&column.name);
            if *expression == format!("t.{name}") {
                format!("  {expression}")
            } else {
                format!("  {expression} AS {name}")
            }
        })
        .collect();
    let table = dialect.table(&entity.table);
    format!("SELECT\n{}\nFROM {table} AS t", lines.join(",\n"))
}

struct Flattening<'a> {
    dialect: Dialect<'a>,
    columns: Vec<FlatColumn>,
    taken: BTreeSet<String>,
}

impl<'a> Flattening<'a> {
    /// Columns that are flat already keep their names, wherever they stand.
    fn new(entity: &Entity, dialect: Dialect<'a>) -> Self {
        let flat = entity
            .stored_columns()
            .filter(|column| !matches!(column.ty, ColumnType::Struct(_)))
            .map(|column| column.name.clone());
        let row = row_columns::ALL.iter().map(|column| column.name.to_owned());
        Self {
            dialect,
            columns: Vec::new(),
            taken: flat.chain(row).collect(),
        }
    }

    fn nested(&mut self, name: &str, expression: &str, ty: &ColumnType) {
        if let ColumnType::Struct(members) = ty {
            for member in members {
                let expression = format!("{expression}.{}", identifier(&member.name));
                self.nested(&format!("{name}_{}", member.name), &expression, &member.ty);
            }
            return;
        }
        let name = self.free_name(name);
        self.push(name, expression, ty);
    }

    /// The name, or with the first free number (`address_city_2`).
    fn free_name(&mut self, wanted: &str) -> String {
        let cut = |room: usize| wanted.get(..room).unwrap_or(wanted);
        let mut name = cut(MAX_NAME).to_owned();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            let suffix = format!("_{number}");
            name = format!("{}{suffix}", cut(MAX_NAME - suffix.len()));
            number += 1;
        }
        name
    }

    fn push(&mut self, name: String, expression: &str, ty: &ColumnType) {
        let text = "string".to_owned();
        let (expression, glue_type) = match ty {
            ColumnType::Array(_) | ColumnType::Set(_) | ColumnType::Map { .. } => {
                (self.dialect.json_text(expression, ty), text)
            }
            ColumnType::Binary => (self.dialect.base64(expression), text),
            plain => (expression.to_owned(), athena_type(plain)),
        };
        self.columns.push(FlatColumn {
            column: ViewColumn { name, glue_type },
            expression,
        });
    }
}
