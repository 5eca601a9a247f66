//! Counts of the pipeline for people.

use std::collections::BTreeMap;

use dynalake_pipeline::report::TableReport;

use crate::exit::Outcome;
use crate::output::{Align, Printer, Sheet, number};

/// Rows per table, and what is to be said of their values.
pub(super) fn counts_sheet<'a>(
    tables: impl IntoIterator<Item = (&'a str, &'a TableReport)>,
) -> Sheet {
    let mut sheet = Sheet::new([
        ("table", Align::Left),
        ("rows", Align::Right),
        ("mismatches", Align::Right),
        ("inexact", Align::Right),
        ("undeclared", Align::Right),
    ]);
    for (table, counts) in tables {
        let [mismatches, inexact, undeclared] = value_counts(counts);
        sheet.row([
            table.to_owned(),
            number(counts.rows),
            mismatches,
            inexact,
            undeclared,
        ]);
    }
    sheet
}

/// Values that did not fit, fit only in part, or have no column; all of them are in `_rest`.
pub(super) fn value_counts(counts: &TableReport) -> [String; 3] {
    [&counts.mismatches, &counts.inexact, &counts.undeclared]
        .map(|by_column| number(by_column.values().sum()))
}

/// How many records went to quarantine, by reason.
pub(super) fn quarantine_lines(
    reasons: &BTreeMap<String, u64>,
    printer: &mut Printer,
) -> Outcome<()> {
    for (reason, count) in reasons {
        printer.line(format!("quarantined, {reason}: {}", number(*count)))?;
    }
    Ok(())
}
