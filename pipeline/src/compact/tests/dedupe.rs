//! One row per change, wherever batches are cut.

use arrow::array::{ArrayRef, Int32Array, StringArray, TimestampMillisecondArray};

use super::super::dedupe::Dedupe;
use super::*;

/// (`_pk`, `_seq`, `_stream`, `_at`, `_schema`, `_event_id`)
type Line = (
    &'static str,
    Option<&'static str>,
    &'static str,
    i64,
    i32,
    &'static str,
);

fn batch(lines: &[Line]) -> RecordBatch {
    let rows = lines.len();
    let text = |f: fn(&Line) -> Option<&'static str>| -> ArrayRef {
        Arc::new(lines.iter().map(f).collect::<StringArray>())
    };
    let none = || -> ArrayRef { Arc::new(StringArray::new_null(rows)) };
    let at = TimestampMillisecondArray::from_iter_values(lines.iter().map(|line| line.3));
    let columns: Vec<ArrayRef> = vec![
        text(|line| Some(line.0)),
        none(),
        text(|_| Some("MODIFY")),
        none(),
        Arc::new(at.with_timezone("UTC")),
        text(|line| Some(line.2)),
        text(|line| line.1),
        text(|line| Some(line.5)),
        text(|_| Some("stream")),
        Arc::new(Int32Array::from_iter_values(
            lines.iter().map(|line| line.4),
        )),
        none(),
        none(),
    ];
    let fields: Vec<_> = row_columns::ALL
        .iter()
        .map(|column| {
            arrow::datatypes::Field::new(column.name, column.kind.arrow_type(), column.nullable)
        })
        .collect();
    RecordBatch::try_new(Arc::new(arrow::datatypes::Schema::new(fields)), columns).unwrap()
}

fn deduped(batches: Vec<RecordBatch>) -> (Vec<Row>, u64, u64) {
    let mut dedupe = Dedupe::new(batches.into_iter().map(Ok));
    let mut rows = Vec::new();
    while let Some(batch) = dedupe.next_batch().unwrap() {
        assert!(batch.num_rows() > 0);
        rows.extend((0..batch.num_rows()).map(|row| texts(&batch, row)));
    }
    (rows, dedupe.read, dedupe.duplicates)
}

#[test]
fn the_greatest_time_stays_then_the_newest_schema_then_the_first() {
    let lines: [Line; 12] = [
        ("a", Some("1"), "s", 5, 1, "first"),
        ("a", Some("1"), "s", 9, 1, "greatest"),
        ("a", Some("1"), "t", 1, 1, "other stream"),
        ("a", Some("1"), "s", 7, 1, "x"),
        ("b", Some("1"), "s", 5, 1, "x"),
        ("b", Some("1"), "s", 5, 2, "newest"),
        ("b", Some("1"), "s", 5, 2, "x"),
        ("b", Some("2"), "s", 5, 1, "later"),
        // Without a number: the same only if all is.
        ("c", None, "s", 5, 1, "c1"),
        ("c", None, "s", 6, 1, "c1"),
        ("c", None, "s", 5, 1, "c1"),
        ("c", None, "s", 5, 1, "c2"),
    ];
    let expected = [
        "greatest",
        "other stream",
        "newest",
        "later",
        "c1",
        "c1",
        "c2",
    ];
    let whole = deduped(vec![batch(&lines)]);
    let events: Vec<&str> = whole
        .0
        .iter()
        .map(|row| row["_event_id"].as_str())
        .collect();
    assert_eq!(events, expected);
    assert_eq!((whole.1, whole.2), (12, 5));
    // Cut anywhere, once and twice.
    for cut in 0..=lines.len() {
        for other in cut..=lines.len() {
            let parts = [&lines[..cut], &lines[cut..other], &lines[other..]];
            let parts = parts
                .iter()
                .filter(|part| !part.is_empty())
                .map(|part| batch(part))
                .collect();
            assert_eq!(deduped(parts), whole, "{cut} {other}");
        }
    }
    assert_eq!(deduped(Vec::new()), (Vec::new(), 0, 0));
}
