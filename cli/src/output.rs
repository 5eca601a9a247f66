//! All output of the command. Data goes to stdout, everything else to stderr; text from the lake is
//! sanitised wherever people read it; colour never carries a meaning of its own.

use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, LineStyle, Table};
use serde::Serialize;

use crate::exit::Failure;
use crate::sanitize;

/// A table for people, before it is laid out.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    header: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// Side to which a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

impl Sheet {
    /// An empty table with these columns.
    pub(crate) fn new<T: Into<String>>(header: impl IntoIterator<Item = (T, Align)>) -> Self {
        let header = header
            .into_iter()
            .map(|(name, align)| (name.into(), align))
            .collect();
        Self {
            header,
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells are sanitised when printed.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// No rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Where output goes.
pub(crate) struct Printer {
    out: BufWriter<Stdout>,
    err: Stderr,
    bold_out: bool,
    color_err: bool,
}

impl Printer {
    /// A printer on the process's stdout and stderr. `plain`: no colour (`NO_COLOR`).
    pub(crate) fn new(plain: bool) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            bold_out: out.is_terminal() && !plain,
            color_err: err.is_terminal() && !plain,
            out: BufWriter::new(out),
            err,
        }
    }

    /// Whether a person watches stderr (for progress bars).
    pub(crate) fn is_watched(&self) -> bool {
        self.err.is_terminal()
    }

    /// A line for people, sanitised.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        writeln!(self.out, "{}", sanitize::inline(text.as_ref()))
    }

    /// Lines of our own for people, sanitised but for their ends.
    pub(crate) fn block(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        writeln!(self.out, "{}", sanitize::block(text.as_ref()))
    }

    /// Text for programs, as it is.
    pub(crate) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// A JSON document for programs.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    /// A table for people.
    pub(crate) fn table(&mut self, sheet: &Sheet) -> io::Result<()> {
        let table = self.layout(sheet);
        writeln!(self.out, "{}", table.trim_fmt())
    }

    /// A table of rows for people; one block per row when the terminal is too narrow for a line.
    pub(crate) fn rows(&mut self, sheet: &Sheet) -> io::Result<()> {
        let table = self.layout(sheet);
        let needed: usize = table
            .column_max_content_widths()
            .iter()
            .map(|width| usize::from(*width) + 2)
            .sum();
        if table
            .width()
            .is_none_or(|width| needed <= usize::from(width) + 2)
        {
            return writeln!(self.out, "{}", table.trim_fmt());
        }
        let names = sheet.header.iter().map(|(name, _)| name.chars().count());
        let indent = names.max().unwrap_or(0);
        for (number, row) in sheet.rows.iter().enumerate() {
            writeln!(self.out, "── row {} ──", number + 1)?;
            for ((name, _), cell) in sheet.header.iter().zip(row) {
                if !cell.is_empty() {
                    writeln!(self.out, "{name:indent$}  {}", sanitize::inline(cell))?;
                }
            }
        }
        Ok(())
    }

    fn layout(&self, sheet: &Sheet) -> Table {
        let mut table = Table::new();
        table
            .load_style(NOTHING.header_separator(LineStyle::none().fill('─').junction('─')))
            .set_content_arrangement(ContentArrangement::Disabled);
        if !self.bold_out {
            table.force_no_tty();
        }
        table.set_header(sheet.header.iter().map(|(name, align)| {
            let cell = Cell::new(sanitize::inline(name)).set_alignment(alignment(*align));
            if self.bold_out {
                cell.add_attribute(Attribute::Bold)
            } else {
                cell
            }
        }));
        for row in &sheet.rows {
            table.add_row(sheet.header.iter().zip(row).map(|((_, align), cell)| {
                Cell::new(sanitize::inline(cell)).set_alignment(alignment(*align))
            }));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table
    }

    /// A remark on stderr.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        self.say(&sanitize::block(text.as_ref()));
    }

    /// A warning on stderr.
    pub(crate) fn warning(&mut self, text: impl AsRef<str>) {
        let label = self.label("warning", "33");
        drop(writeln!(
            self.err,
            "{label} {}",
            sanitize::block(text.as_ref())
        ));
    }

    /// A failure with its hints, on stderr.
    pub(crate) fn failure(&mut self, failure: &Failure) {
        let label = self.label("error", "31");
        drop(writeln!(
            self.err,
            "{label} {}",
            sanitize::block(&failure.message)
        ));
        for hint in &failure.hints {
            let label = self.label("hint", "36");
            self.say(&format!("  {label} {}", sanitize::block(hint)));
        }
    }

    /// A line on stderr, after what was said on stdout before it. Nothing can be done about a closed
    /// stderr, and a closed stdout is noticed at its next line.
    fn say(&mut self, line: &str) {
        drop(self.out.flush());
        drop(writeln!(self.err, "{line}"));
    }

    fn label(&self, text: &str, color: &str) -> String {
        if self.color_err {
            format!("\u{1b}[1;{color}m{text}:\u{1b}[0m")
        } else {
            format!("{text}:")
        }
    }

    /// Writes what is still buffered.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn alignment(align: Align) -> CellAlignment {
    match align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    }
}

/// A number with thousands separated, for people.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size in bytes, for people: three significant digits, binary units.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let (mut whole, mut rest, mut unit) = (value, 0, "B");
    for next in UNITS {
        if whole < 1024 {
            break;
        }
        (whole, rest, unit) = (whole / 1024, whole % 1024, next);
    }
    if whole >= 100 {
        format!("{whole} {unit}")
    } else {
        format!("{whole}.{} {unit}", rest * 10 / 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_readable() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000), "1,000");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(734_003_200), "700 MiB");
        assert_eq!(bytes(u64::MAX), "16383 PiB");
    }
}
