//! The text of `lake.lock`: TOML, one line per column, the same text for the same schemas.

use std::collections::BTreeMap;
use std::fmt::Write;

use toml_edit::{Document, Item, TableLike, Value};

use super::nodes::{Kind, Node};
use super::{Lock, LockedColumn, LockedDrop, LockedTable};
use crate::problem::line_of;
use crate::row_columns::FIRST_TYPED_ID;

/// Version of the file's own format.
const FORMAT: i64 = 1;

const HEADER: &str = "\
# The columns of the lake's files, with the field ids they keep for ever.
# Written by `dynalake schemas lock`: commit it with the schemas, read it in reviews, do not edit it.
";

/// Line (0: the whole file) and what is wrong.
type Fault = (usize, String);

impl Lock {
    pub(crate) fn to_text(&self) -> String {
        let mut text = HEADER.to_owned();
        // Writing to a String cannot fail.
        _ = writeln!(
            text,
            "format = {FORMAT}\ndatabase = {}",
            quoted(&self.database)
        );
        for (name, table) in &self.tables {
            _ = writeln!(text, "\n[table.{name}]\nentity = {}", quoted(&table.entity));
            _ = writeln!(
                text,
                "version = {}\nnext_id = {}",
                table.version, table.next_id
            );
            if table.retired {
                text.push_str("retired = true\n");
            }
            if let Some(matching) = &table.matching {
                _ = writeln!(text, "match = {}", quoted(matching));
            }
            text.push_str("columns = [\n");
            for column in &table.columns {
                write_column(&mut text, column);
            }
            text.push_str("]\n");
            if !table.dropped.is_empty() {
                text.push_str("dropped = [\n");
                for column in &table.dropped {
                    write_drop(&mut text, column);
                }
                text.push_str("]\n");
            }
        }
        text
    }

    /// Reads the text back.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let document = Document::parse(text).map_err(|error| {
            (
                line(text, error.span()),
                error.message().replace('\n', ", "),
            )
        })?;
        let root = document.as_table();
        match root.get("format").and_then(Item::as_integer) {
            Some(FORMAT) => {}
            Some(other) => {
                return Err((
                    0,
                    format!("format {other} is of a newer version of dynalake"),
                ));
            }
            None => return Err((0, "it does not say its `format`".to_owned())),
        }
        let database = string(root, "database").ok_or((0, "it names no `database`".to_owned()))?;
        let mut tables = BTreeMap::new();
        for (name, item) in root
            .get("table")
            .and_then(Item::as_table_like)
            .into_iter()
            .flat_map(|tables| tables.iter())
        {
            let table = item
                .as_table_like()
                .ok_or_else(|| (line(text, item.span()), format!("`{name}` is not a table")))?;
            let locked = parse_table(text, table)
                .map_err(|(at, what)| (at, format!("table `{name}`: {what}")))?;
            tables.insert(name.to_owned(), locked);
        }
        Ok(Self { database, tables })
    }
}

fn write_column(text: &mut String, LockedColumn { node, removed }: &LockedColumn) {
    let Node {
        path,
        id,
        kind,
        reads,
        format,
        transform,
    } = node;
    _ = write!(
        text,
        "    {{ id = {id}, path = {}, type = \"{kind}\"",
        quoted(path)
    );
    for (key, value) in [
        ("reads", reads),
        ("format", format),
        ("transform", transform),
    ] {
        if let Some(value) = value {
            _ = write!(text, ", {key} = {}", quoted(value));
        }
    }
    if *removed {
        text.push_str(", removed = true");
    }
    text.push_str(" },\n");
}

fn write_drop(text: &mut String, column: &LockedDrop) {
    _ = write!(text, "    {{ path = {}", quoted(&column.path));
    if let Some(reads) = &column.reads {
        _ = write!(text, ", reads = {}", quoted(reads));
    }
    if column.removed {
        text.push_str(", removed = true");
    }
    text.push_str(" },\n");
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn parse_table(text: &str, table: &dyn TableLike) -> Result<LockedTable, Fault> {
    let missing = |key: &str| (0, format!("`{key}` is missing or not of its type"));
    let mut columns = Vec::new();
    let listed = table
        .get("columns")
        .and_then(Item::as_array)
        .ok_or_else(|| missing("columns"))?;
    for value in listed {
        let column = value
            .as_inline_table()
            .and_then(|column| parse_column(column))
            .ok_or_else(|| {
                (
                    line(text, value.span()),
                    "a column is not of the form it was written in".into(),
                )
            })?;
        columns.push(column);
    }
    let next_id = integer(table, "next_id").ok_or_else(|| missing("next_id"))?;
    let above_all = columns.iter().all(|column| column.node.id < next_id);
    if next_id < FIRST_TYPED_ID || !above_all {
        return Err((
            0,
            "`next_id` is not above the ids of all columns".to_owned(),
        ));
    }
    Ok(LockedTable {
        entity: string(table, "entity").ok_or_else(|| missing("entity"))?,
        version: integer(table, "version").ok_or_else(|| missing("version"))?,
        next_id,
        retired: boolean(table, "retired"),
        matching: string(table, "match"),
        columns,
        dropped: parse_dropped(text, table)?,
    })
}

/// Locks of before the list have none.
fn parse_dropped(text: &str, table: &dyn TableLike) -> Result<Vec<LockedDrop>, Fault> {
    let Some(item) = table.get("dropped") else {
        return Ok(Vec::new());
    };
    let fault = |span| {
        let what = "`dropped` is not of the form it was written in";
        (line(text, span), what.to_owned())
    };
    let listed = item.as_array().ok_or_else(|| fault(item.span()))?;
    listed
        .iter()
        .map(|value| {
            let column = value.as_inline_table().ok_or_else(|| fault(value.span()))?;
            Ok(LockedDrop {
                path: string(column, "path").ok_or_else(|| fault(value.span()))?,
                reads: string(column, "reads"),
                removed: boolean(column, "removed"),
            })
        })
        .collect()
}

fn parse_column(column: &dyn TableLike) -> Option<LockedColumn> {
    let node = Node {
        path: string(column, "path")?,
        id: integer(column, "id").filter(|id| *id >= FIRST_TYPED_ID)?,
        kind: Kind::parse(&string(column, "type")?)?,
        reads: string(column, "reads"),
        format: string(column, "format"),
        transform: string(column, "transform"),
    };
    Some(LockedColumn {
        node,
        removed: boolean(column, "removed"),
    })
}

fn string(table: &dyn TableLike, key: &str) -> Option<String> {
    table.get(key).and_then(Item::as_str).map(str::to_owned)
}

fn integer(table: &dyn TableLike, key: &str) -> Option<i32> {
    table
        .get(key)
        .and_then(Item::as_integer)
        .and_then(|value| i32::try_from(value).ok())
}

fn boolean(table: &dyn TableLike, key: &str) -> bool {
    table.get(key).and_then(Item::as_bool).unwrap_or_default()
}

fn line(text: &str, span: Option<std::ops::Range<usize>>) -> usize {
    span.map_or(0, |span| line_of(text, span.start))
}
