//! Rows as JSON, CSV or a table.

use std::io;

use arrow::array::{Array, ArrayRef, RecordBatch};

use crate::args::RowFormat;
use crate::cell;
use crate::output::{Align, Printer, Sheet};

/// Longest cell of a table, in characters; JSON and CSV are never cut.
const CELL: usize = 60;
/// Columns that say how a row came into the lake: not in tables unless asked for.
const SNAPSHOT_HIDDEN: [&str; 9] = [
    "_op",
    "_reason",
    "_at",
    "_stream",
    "_seq",
    "_event_id",
    "_source",
    "_schema",
    "_old",
];
const CHANGES_HIDDEN: [&str; 5] = ["_stream", "_seq", "_event_id", "_source", "_schema"];
/// Columns that are left out of tables where they are all NULL.
const OPTIONAL: [&str; 3] = ["_reason", "_rest", "_old"];

/// Prints rows in one format.
pub(in crate::commands) struct RowWriter {
    format: RowFormat,
    columns: Vec<String>,
    rows: u64,
}

impl RowWriter {
    /// Begins the output. `columns`: names to print, in order.
    pub(in crate::commands) fn begin(
        format: RowFormat,
        columns: Vec<String>,
        printer: &mut Printer,
    ) -> io::Result<Self> {
        match format {
            RowFormat::Table => {}
            RowFormat::Json => printer.raw("[")?,
            RowFormat::Csv => {
                let header: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
                printer.raw(&header.join(","))?;
                printer.raw("\n")?;
            }
        }
        Ok(Self {
            format,
            columns,
            rows: 0,
        })
    }

    /// Prints the rows of a batch (not of a table: see [`table`]).
    pub(in crate::commands) fn write(
        &mut self,
        batch: &RecordBatch,
        printer: &mut Printer,
    ) -> io::Result<()> {
        let arrays: Vec<Option<&ArrayRef>> = self
            .columns
            .iter()
            .map(|name| batch.column_by_name(name))
            .collect();
        let mut line = String::new();
        for row in 0..batch.num_rows() {
            line.clear();
            match self.format {
                RowFormat::Table => {}
                RowFormat::Json => {
                    line.push_str(if self.rows == 0 { "\n" } else { ",\n" });
                    line.push('{');
                    for (index, (name, array)) in self.columns.iter().zip(&arrays).enumerate() {
                        if index > 0 {
                            line.push(',');
                        }
                        cell::string(name, &mut line);
                        line.push(':');
                        match array {
                            Some(array) => cell::json(array, row, &mut line),
                            None => line.push_str("null"),
                        }
                    }
                    line.push('}');
                }
                RowFormat::Csv => {
                    for (index, array) in arrays.iter().enumerate() {
                        if index > 0 {
                            line.push(',');
                        }
                        // NULL is nothing, the empty text is "".
                        if let Some(text) = array.and_then(|array| cell::text(array, row)) {
                            line.push_str(&quoted(&text));
                        }
                    }
                    line.push('\n');
                }
            }
            self.rows += 1;
            printer.raw(&line)?;
        }
        Ok(())
    }

    /// Ends the output and gives the number of rows.
    pub(in crate::commands) fn end(self, printer: &mut Printer) -> io::Result<u64> {
        if self.format == RowFormat::Json {
            printer.raw(if self.rows == 0 { "]\n" } else { "\n]\n" })?;
        }
        Ok(self.rows)
    }
}

/// A CSV field, quoted where needed.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']) && text.trim() == text;
    if plain {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('"', "\"\""))
    }
}

/// Rows as a table for people. `columns`: names; `asked`: they were asked for, so all are shown.
pub(in crate::commands) fn table(
    batches: &[RecordBatch],
    columns: &[String],
    asked: bool,
    changes: bool,
) -> Sheet {
    let hidden: &[&str] = if changes {
        &CHANGES_HIDDEN
    } else {
        &SNAPSHOT_HIDDEN
    };
    let is_empty = |name: &str| {
        batches.iter().all(|batch| {
            batch
                .column_by_name(name)
                .is_none_or(|array| array.null_count() == array.len())
        })
    };
    let mut shown: Vec<&String> = columns
        .iter()
        .filter(|name| {
            let name = name.as_str();
            asked || !(hidden.contains(&name) || (OPTIONAL.contains(&name) && is_empty(name)))
        })
        .collect();
    if changes && !asked {
        // What happened and when comes first, what has no column last.
        let rank = |name: &str| match name {
            "_at" => 0,
            "_op" => 1,
            "_reason" => 2,
            "_rest" | "_old" => 4,
            _ => 3,
        };
        shown.sort_by_key(|name| rank(name));
    } else if !asked {
        shown.sort_by_key(|name| *name == "_rest");
    }
    let align = |name: &str| {
        let array = batches.iter().find_map(|batch| batch.column_by_name(name));
        match array {
            Some(array) if array.data_type().is_numeric() => Align::Right,
            _ => Align::Left,
        }
    };
    let mut sheet = Sheet::new(shown.iter().map(|name| (name.as_str(), align(name))));
    for batch in batches {
        for row in 0..batch.num_rows() {
            sheet.row(shown.iter().map(|name| {
                let text = batch
                    .column_by_name(name)
                    .and_then(|array| cell::text(array, row));
                text.map_or_else(String::new, |text| {
                    if text.is_empty() {
                        "\"\"".to_owned()
                    } else {
                        cut(text)
                    }
                })
            }));
        }
    }
    sheet
}

fn cut(text: String) -> String {
    match text.char_indices().nth(CELL) {
        Some((end, _)) => {
            let mut short = text;
            short.truncate(end);
            short.push('…');
            short
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_are_quoted_where_needed() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted(""), "\"\"");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"hi\""), "\"say \"\"hi\"\"\"");
        assert_eq!(quoted("two\nlines"), "\"two\nlines\"");
        assert_eq!(quoted(" padded"), "\" padded\"");
        assert_eq!(quoted("緑茶"), "緑茶");
    }

    #[test]
    fn long_cells_are_cut_between_characters() {
        assert_eq!(cut("茶".repeat(CELL)), "茶".repeat(CELL));
        assert_eq!(
            cut("茶".repeat(CELL + 1)),
            format!("{}…", "茶".repeat(CELL))
        );
    }
}
