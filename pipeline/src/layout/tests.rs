use std::sync::Arc;

use arrow::array::{ArrayRef, TimestampMillisecondArray};
use dynalake_schemas::Matcher;
use proptest::prelude::*;

use super::*;
use crate::quarantine::RecordOrigin;
use crate::record::{Origin, SequenceNumber};
use crate::reject::{ReasonCode, Reject};
use crate::store::check_key;

fn entity() -> Entity {
    Entity {
        name: "order".to_owned(),
        table: "orders".to_owned(),
        description: None,
        version: 1,
        matcher: Matcher::default(),
        columns: Vec::new(),
        keep_old_image: false,
    }
}

type Row = (Option<String>, Option<String>, Option<String>, String, i64);

fn batch(rows: &[Row]) -> RecordBatch {
    let text = |pick: fn(&Row) -> Option<&str>| -> ArrayRef {
        Arc::new(StringArray::from(rows.iter().map(pick).collect::<Vec<_>>()))
    };
    let times: Vec<i64> = rows.iter().map(|row| row.4).collect();
    RecordBatch::try_from_iter([
        ("_stream", text(|row| row.0.as_deref())),
        ("_event_id", text(|row| row.1.as_deref())),
        ("_seq", text(|row| row.2.as_deref())),
        ("_pk", text(|row| Some(&row.3))),
        (
            "_at",
            Arc::new(TimestampMillisecondArray::from(times).with_timezone("UTC")),
        ),
    ])
    .unwrap()
}

fn row(event: &str, number: &str) -> Row {
    let number = SequenceNumber::parse(number).unwrap().as_str().to_owned();
    let label = "2026-11-01T00:00:00.000".to_owned();
    (
        Some(label),
        Some(event.to_owned()),
        Some(number),
        "USER#1".to_owned(),
        0,
    )
}

fn quarantined(payload: &[u8]) -> QuarantineEntry {
    let reject = Reject::new(ReasonCode::MalformedRecord, "no sequence number");
    let origin = RecordOrigin::Stream { arn: None };
    QuarantineEntry::new(reject, Origin::Stream, origin, 0, payload.to_vec())
}

#[test]
fn a_change_key_names_table_day_and_the_range_of_sequence_numbers() {
    // Rows are sorted by key, so the numbers are in any order; 9…9 is less than 10…0.
    let rows = [
        row("b", "100000000000000000000004"),
        row("a", "99999999999999999999999"),
    ];
    let key = change_key(&entity(), 20_775, &batch(&rows));
    let expected = "changes/orders/dt=2026-11-18/99999999999999999999999-100000000000000000000004-";
    assert!(key.starts_with(expected), "{key}");
    let digest = key
        .strip_prefix(expected)
        .unwrap()
        .strip_suffix(".parquet")
        .unwrap();
    assert_eq!(digest.len(), 16);
    assert_eq!(key, change_key(&entity(), 20_775, &batch(&rows)));
}

#[test]
fn other_records_have_another_key() {
    let key = |rows: &[Row]| change_key(&entity(), 0, &batch(rows));
    let both = key(&[row("a", "1"), row("b", "3")]);
    assert_ne!(both, key(&[row("a", "1")]));
    assert_ne!(both, key(&[row("a", "1"), row("c", "3")]));
    assert_ne!(both, key(&[row("a", "1"), row("x", "2"), row("b", "3")]));
    let mut other_stream = row("b", "3");
    other_stream.0 = Some("2026-12-01T00:00:00.000".to_owned());
    assert_ne!(both, key(&[row("a", "1"), other_stream]));
    let mut other_item = row("b", "3");
    other_item.3 = "USER#2".to_owned();
    assert_ne!(both, key(&[row("a", "1"), other_item]));
    // Values do not run into each other.
    assert_ne!(
        key(&[row("ab", "1"), row("c", "1")]),
        key(&[row("a", "1"), row("bc", "1")])
    );
}

#[test]
fn rows_without_sequence_number_are_told_apart_by_key_and_time() {
    let plain = |pk: &str, at| (None, None, None, pk.to_owned(), at);
    let key = |row| change_key(&entity(), 0, &batch(&[row]));
    assert!(key(plain("USER#1", 0)).starts_with("changes/orders/dt=1970-01-01/0-0-"));
    assert_ne!(key(plain("USER#1", 0)), key(plain("USER#2", 0)));
    assert_ne!(key(plain("USER#1", 0)), key(plain("USER#1", 1)));
}

#[test]
fn a_snapshot_key_names_export_data_file_and_part() {
    let label = export_label(1_795_003_600_999).unwrap();
    assert_eq!(
        snapshot_key("orders", &label, "01795000000000-0a1b2c3d-2w5f4q7zsm6h", 3),
        "snapshot/orders/export=20261118T120640Z/01795000000000-0a1b2c3d-2w5f4q7zsm6h-00003.parquet"
    );
}

#[test]
fn a_quarantine_key_follows_the_records_not_what_is_said_about_them() {
    let first = quarantine_key(0, &[quarantined(b"{}")]);
    assert!(first.starts_with("quarantine/dt=1970-01-01/"), "{first}");
    assert!(first.strip_suffix(".jsonl").is_some());
    let mut other_words = quarantined(b"{}");
    other_words.message = "another sentence".to_owned();
    other_words.source = Origin::Replay;
    assert_eq!(quarantine_key(0, &[other_words]), first);
    assert_ne!(quarantine_key(0, &[quarantined(b"{ }")]), first);
    assert_ne!(quarantine_key(1, &[quarantined(b"{}")]), first);
    assert_ne!(
        quarantine_key(0, &[quarantined(b"{}"), quarantined(b"{}")]),
        first
    );
}

#[test]
fn days_are_those_of_utc_and_never_leave_four_digit_years() {
    for (at_ms, text) in [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (DAY_MS - 1, "1970-01-01"),
        (DAY_MS, "1970-01-02"),
        (1_709_164_800_000, "2024-02-29"),
        (253_402_300_799_999, "9999-12-31"),
        (253_402_300_800_000, "9999-12-31"),
        (i64::MAX, "9999-12-31"),
        (i64::MIN, "0000-01-01"),
        (-62_167_219_200_000, "0000-01-01"),
    ] {
        assert_eq!(day_text(day_of(at_ms)), text, "{at_ms}");
    }
    assert_eq!(export_label(0).unwrap(), "19700101T000000Z");
    assert_eq!(export_label(i64::MAX), None);
    assert_eq!(export_label(253_402_300_800_000), None);
}

fn is_safe(key: &str) -> bool {
    let name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(['_', '.'])
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.=".contains(c))
    };
    key.len() <= 1_024 && key.split('/').all(name) && check_key(key).is_ok()
}

fn any_row() -> impl Strategy<Value = Row> {
    let text = || proptest::option::of(any::<String>());
    let number = proptest::option::of("[0-9]{1,40}")
        .prop_map(|number| Some(SequenceNumber::parse(&number?)?.as_str().to_owned()));
    (text(), text(), number, any::<String>(), any::<i64>())
}

proptest! {
    #[test]
    fn keys_are_safe_whatever_the_records_hold(
        rows in prop::collection::vec(any_row(), 0..5),
        day in any::<i32>(),
        data_file in any::<String>(),
        part in any::<u32>(),
        payload in any::<Vec<u8>>(),
    ) {
        let change = change_key(&entity(), day, &batch(&rows));
        prop_assert!(is_safe(&change), "{}", change);
        let snapshot = snapshot_key("orders", "20261118T070640Z", &data_file, part);
        prop_assert!(is_safe(&snapshot), "{}", snapshot);
        let quarantine = quarantine_key(day, &[quarantined(&payload)]);
        prop_assert!(is_safe(&quarantine), "{}", quarantine);
    }

    #[test]
    fn data_files_never_share_a_name(left in ".{0,200}", right in "[._a-z/ ]{0,4}") {
        for other in [right.as_str(), &format!("{left}{right}"), &left.to_lowercase()] {
            if left != *other {
                prop_assert_ne!(
                    snapshot_key("t", "l", &left, 0),
                    snapshot_key("t", "l", other, 0)
                );
            }
        }
    }
}
