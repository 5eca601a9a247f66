//! What becomes of a record: its rows, its counts, or a reason.

use std::path::Path;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::util::display::array_value_to_string;
use dynalake_schemas::Catalog;

use super::{Partitioning, Pipeline, Secrets, TableBatch};
use crate::record::{ChangeRecord, Operation, Origin, Reason, SequenceNumber};
use crate::reject::{ReasonCode, Reject};

const LAKE: &str = "database = \"shop\"\n[source]\npartition_key = \"PK\"\nsort_key = \"SK\"\nignore = [\"GSI1PK\", \"aws:rep:*\"]\n";

const ORDER: &str = r#"
entity = "order"
table = "orders"
version = 3
keep_old_image = true
[match]
partition_key = "USER#{user_id}"
sort_key = "ORDER#{order_date}#{order_id}"
[columns]
user_id = "string"
order_date = "date"
order_id = "int"
total = "decimal(12,2)"
lines = "array<struct<sku:string,qty:int>>"
email = { type = "string", transform = "hmac_sha256" }
phone = { type = "string", transform = "mask" }
card = { type = "string", transform = "drop" }
score = { type = "double", lossless = false }
"#;

/// Two entities that only an attribute tells apart.
const LEAD: &str = r#"
entity = "lead"
table = "leads"
version = 1
[match]
partition_key = "P#{person}"
attributes = { kind = "lead" }
[columns]
person = "string"
"#;
const CLIENT: &str = r#"
entity = "client"
table = "clients"
version = 1
on_mismatch = "quarantine"
[match]
partition_key = "P#{person}"
attributes = { kind = "client" }
[columns]
person = "string"
age = "int"
"#;

fn catalog() -> Arc<Catalog> {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("lake.toml", LAKE),
        ("order.toml", ORDER),
        ("lead.toml", LEAD),
        ("client.toml", CLIENT),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Arc::new(load(folder.path()))
}

fn load(folder: &Path) -> Catalog {
    Catalog::load(folder).unwrap_or_else(|problems| panic!("{problems}"))
}

fn pipeline() -> Pipeline {
    let secrets = Secrets {
        hmac_key: Some(b"a secret of the deployment".to_vec()),
    };
    Pipeline::new(catalog(), &secrets, Partitioning::ByDay).unwrap()
}

fn change<'a>(
    operation: Operation,
    keys: &'a str,
    new: Option<&'a str>,
    old: Option<&'a str>,
) -> ChangeRecord<'a> {
    ChangeRecord {
        operation,
        reason: (operation == Operation::Remove).then_some(Reason::User),
        at: 1_000,
        stream: Some("2026-05-01T00:00:00.000"),
        sequence_number: SequenceNumber::parse("111"),
        event_id: Some("e1"),
        origin: Origin::Stream,
        keys: Some(keys.as_bytes()),
        new_image: new.map(str::as_bytes),
        old_image: old.map(str::as_bytes),
        payload: b"",
    }
}

/// `table: column=value …` of every row, without NULLs and without the columns that never differ.
fn rows(pipeline: &mut Pipeline) -> Vec<String> {
    let catalog = Arc::clone(pipeline.catalog());
    let show = |table: &TableBatch| {
        let schema = table.batch.schema();
        (0..table.batch.num_rows())
            .map(|row| {
                let mut line = format!("{}:", catalog.entities[table.entity].table);
                for (field, column) in schema.fields().iter().zip(table.batch.columns()) {
                    let known = ["_at", "_stream", "_seq", "_event_id", "_source", "_schema"];
                    if column.is_valid(row) && !known.contains(&field.name().as_str()) {
                        let value = array_value_to_string(column, row).unwrap();
                        line = format!("{line} {}={value}", field.name());
                    }
                }
                line
            })
            .collect::<Vec<_>>()
    };
    pipeline.finish().unwrap().iter().flat_map(show).collect()
}

fn push(pipeline: &mut Pipeline, record: &ChangeRecord<'_>) -> Result<u32, Reject> {
    pipeline.push(record)
}

const P1: &str = r#"{"PK":{"S":"P#1"},"SK":{"S":"A"}}"#;
const P1_LEAD: &str = r#"{"PK":{"S":"P#1"},"SK":{"S":"A"},"kind":{"S":"lead"}}"#;
const P1_CLIENT: &str =
    r#"{"PK":{"S":"P#1"},"SK":{"S":"A"},"kind":{"S":"client"},"age":{"N":"7"}}"#;
const O1: &str = r#"{"PK":{"S":"USER#u"},"SK":{"S":"ORDER#2026-05-01#7"}}"#;

#[test]
fn an_item_that_becomes_another_entity_leaves_a_tombstone_behind() {
    let mut pipeline = pipeline();
    let record = change(Operation::Modify, P1, Some(P1_CLIENT), Some(P1_LEAD));
    assert_eq!(push(&mut pipeline, &record), Ok(2));
    assert_eq!(
        rows(&mut pipeline),
        [
            "clients: _pk=P#1 _sk=A _op=MODIFY _rest={\"kind\":{\"S\":\"client\"}} person=1 age=7",
            "leads: _pk=P#1 _sk=A _op=REMOVE _reason=moved person=1",
        ]
    );
    let report = pipeline.take_report();
    assert_eq!(report.records, 1);
    assert_eq!(report.tables["leads"].extra_tombstones, 1);
    assert_eq!(report.tables["clients"].extra_tombstones, 0);
    assert_eq!(report.tables["clients"].undeclared["kind"], 1);
}

#[test]
fn without_an_old_image_every_entity_the_keys_allow_gets_the_tombstone() {
    let mut pipeline = pipeline();
    assert_eq!(
        push(&mut pipeline, &change(Operation::Remove, P1, None, None)),
        Ok(3)
    );
    assert_eq!(
        push(&mut pipeline, &change(Operation::Remove, O1, None, None)),
        Ok(1)
    );
    assert_eq!(
        push(
            &mut pipeline,
            &change(Operation::Modify, P1, Some(P1_LEAD), None)
        ),
        Ok(3)
    );
    let rows = rows(&mut pipeline);
    let count = |start: &str, part: &str| {
        rows.iter()
            .filter(|row| row.starts_with(start) && row.contains(part))
            .count()
    };
    assert_eq!(count("orders:", "_op=REMOVE _reason=user"), 1);
    assert_eq!(count("leads:", "_op=REMOVE _reason=user"), 1);
    assert_eq!(count("clients:", "_op=REMOVE _reason=user"), 1);
    assert_eq!(count("unmatched:", "_op=REMOVE _reason=user"), 1);
    assert_eq!(count("leads:", "_op=MODIFY"), 1);
    assert_eq!(count("clients:", "_reason=moved"), 1);
    assert_eq!(count("unmatched:", "_reason=moved"), 1);
}

#[test]
fn a_delete_is_routed_by_its_old_image_alone() {
    let mut pipeline = pipeline();
    let mut record = change(Operation::Remove, P1, None, Some(P1_LEAD));
    record.reason = Some(Reason::Ttl);
    assert_eq!(push(&mut pipeline, &record), Ok(1));
    assert_eq!(
        rows(&mut pipeline),
        ["leads: _pk=P#1 _sk=A _op=REMOVE _reason=ttl person=1"]
    );
}

#[test]
fn what_no_entity_takes_is_whole_in_unmatched() {
    let mut pipeline = pipeline();
    let item = r#"{"SK":{"S":"A"},"PK":{"S":"P#1"},"kind":{"N":"1"},"GSI1PK":{"S":"g"}}"#;
    push(
        &mut pipeline,
        &change(Operation::Insert, P1, Some(item), None),
    )
    .unwrap();
    assert_eq!(
        rows(&mut pipeline),
        [
            "unmatched: _pk=P#1 _sk=A _op=INSERT _rest={\"GSI1PK\":{\"S\":\"g\"},\"kind\":{\"N\":\"1\"}}"
        ]
    );
    // Plumbing is kept but is no drift.
    let undeclared = &pipeline.take_report().tables["unmatched"].undeclared;
    assert_eq!(undeclared.keys().collect::<Vec<_>>(), ["kind"]);
}

#[test]
fn transformed_values_are_nowhere_in_the_clear() {
    let mut pipeline = pipeline();
    let secret = r#""email":{"S":"a@example.com"},"phone":{"N":"5551234"},"card":{"S":"4111"}"#;
    let item = format!(r#"{{"PK":{{"S":"USER#u"}},"SK":{{"S":"ORDER#2026-05-01#7"}},{secret}}}"#);
    push(
        &mut pipeline,
        &change(Operation::Modify, O1, Some(&item), Some(&item)),
    )
    .unwrap();
    push(
        &mut pipeline,
        &change(Operation::Remove, O1, None, Some(&item)),
    )
    .unwrap();
    let rows = rows(&mut pipeline).join("\n");
    for clear in ["a@example.com", "5551234", "4111"] {
        assert!(!rows.contains(clear), "{clear} in {rows}");
    }
    // HMAC-SHA-256 of the text under the key, worked out elsewhere.
    let hash = "email=2f23a9399e55f05514c247269be45f29cac4aa84063183d7192ea6a1dd9d1ba6";
    assert!(rows.contains(hash), "{rows}");
    assert!(rows.contains("phone=***"), "{rows}");
    assert!(
        rows.contains(r#"_old={"PK""#) && rows.contains(r#""phone":{"S":"***"}"#),
        "{rows}"
    );

    // Two attributes that both look like the column: keeping either could show the other.
    let twice = format!(
        r#"{{"PK":{{"S":"USER#u"}},"SK":{{"S":"ORDER#2026-05-01#7"}},"Email":{{"S":"x"}},"eMail":{{"S":"y"}},{secret}}}"#
    );
    let reject = push(
        &mut pipeline,
        &change(Operation::Modify, O1, Some(&twice), None),
    )
    .unwrap_err();
    assert_eq!(reject.code, ReasonCode::Mismatch);
}

#[test]
fn a_missing_secret_is_an_error_at_the_start() {
    let error = Pipeline::new(catalog(), &Secrets::default(), Partitioning::ByDay)
        .err()
        .unwrap();
    assert!(error.contains("`email` of entity `order`"), "{error}");
    assert!(error.contains("DYNALAKE_HMAC_KEY"), "{error}");
}

#[test]
fn what_does_not_fit_is_null_counted_and_kept() {
    let mut pipeline = pipeline();
    let item = r#"{"PK":{"S":"USER#u"},"SK":{"S":"ORDER#2026-05-01#seven"},"total":{"N":"123.456"},"score":{"N":"0.10000000000000000001"},
        "lines":{"L":[{"M":{"sku":{"S":"a"},"qty":{"N":"1.5"}}},{"M":{"sku":{"S":"b"},"gift":{"BOOL":true}}},{"NULL":true}]}}"#;
    let keys = r#"{"PK":{"S":"USER#u"},"SK":{"S":"ORDER#2026-05-01#seven"}}"#;
    push(
        &mut pipeline,
        &change(Operation::Insert, keys, Some(item), None),
    )
    .unwrap();
    let rows = rows(&mut pipeline);
    assert!(rows[0].contains(r#""total":{"N":"123.456"}"#), "{rows:?}");
    assert!(
        rows[0].contains("lines=[{sku: a, qty: }, {sku: b, qty: }, ]"),
        "{rows:?}"
    );
    assert!(!rows[0].contains(" total="), "{rows:?}");
    assert!(
        rows[0].contains("score=0.1") && !rows[0].contains("\"score\""),
        "{rows:?}"
    );
    let table = &pipeline.take_report().tables["orders"];
    let counts = |map: &std::collections::BTreeMap<String, u64>| {
        map.iter()
            .map(|(path, count)| format!("{path}={count}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        counts(&table.mismatches),
        "lines[].qty=1 order_id=1 total=1"
    );
    assert_eq!(counts(&table.inexact), "lines[]=2 score=1");
}

#[test]
fn a_quarantined_record_leaves_no_half_row_and_no_count() {
    let mut pipeline = pipeline();
    push(
        &mut pipeline,
        &change(Operation::Insert, P1, Some(P1_CLIENT), None),
    )
    .unwrap();
    let old = r#"{"PK":{"S":"P#1"},"SK":{"S":"A"},"kind":{"S":"client"},"age":{"S":"seven"},"x":{"S":""}}"#;
    let reject = push(
        &mut pipeline,
        &change(Operation::Modify, P1, Some(old), Some(P1_LEAD)),
    )
    .unwrap_err();
    assert_eq!(reject.code, ReasonCode::Mismatch);
    assert_eq!(reject.path.as_deref(), Some("NewImage.age"));
    assert_eq!(reject.entity.as_deref(), Some("client"));
    push(
        &mut pipeline,
        &change(Operation::Modify, P1, Some(P1_CLIENT), Some(P1_CLIENT)),
    )
    .unwrap();
    // But the lead is a lead no more, and the record after this one does not say it again.
    let rows = rows(&mut pipeline);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(
        rows[2],
        "leads: _pk=P#1 _sk=A _op=REMOVE _reason=moved person=1"
    );
    let report = pipeline.take_report();
    assert_eq!((report.records, report.quarantined), (3, 1));
    assert_eq!(report.quarantine_reasons["mismatch"], 1);
    assert!(!report.tables["clients"].undeclared.contains_key("x"));
    assert_eq!(
        (
            report.tables["leads"].rows,
            report.tables["leads"].extra_tombstones
        ),
        (1, 1)
    );
    assert_eq!(report.tables["clients"].rows, 2);
}

#[test]
fn keys_decide_and_must_agree() {
    let mut pipeline = pipeline();
    let cases = [
        (r#"{"PK":{"S":"P#1"}}"#, None, "Keys.SK"),
        (r#"{"PK":{"S":""},"SK":{"S":"A"}}"#, None, "Keys.PK"),
        (r#"{"PK":{"BOOL":true},"SK":{"S":"A"}}"#, None, "Keys.PK"),
        (P1, Some(r#"{"PK":{"S":"P#2"},"SK":{"S":"A"}}"#), "NewImage"),
        (P1, Some(r#"{"PK":{"S":"P#1"}}"#), "NewImage.SK"),
    ];
    for (keys, new, path) in cases {
        let reject = push(
            &mut pipeline,
            &change(Operation::Insert, keys, new.or(Some(P1)), None),
        );
        let reject = reject.unwrap_err();
        assert_eq!(
            (reject.code, reject.path.as_deref()),
            (ReasonCode::BadKey, Some(path)),
            "{keys}"
        );
    }
    // A key of another type than declared is no loss: its text is in `_pk`, its type in `_rest`.
    let number = r#"{"PK":{"N":"1.0"},"SK":{"S":"A"}}"#;
    push(
        &mut pipeline,
        &change(Operation::Insert, number, Some(number), None),
    )
    .unwrap();
    assert_eq!(
        rows(&mut pipeline),
        ["unmatched: _pk=1 _sk=A _op=INSERT _rest={\"PK\":{\"N\":\"1\"}}"]
    );
}

#[test]
fn rows_are_sorted_by_key_and_sequence_number_and_split_by_day() {
    let mut pipeline = pipeline();
    let day = crate::time::DAY_MS;
    let sequence = [
        "100",
        "99",
        "9999999999999999999999",
        "10000000000000000000000",
    ];
    for (number, at) in sequence.iter().zip([1, 2, 3, day]) {
        let mut record = change(Operation::Modify, P1, Some(P1_LEAD), Some(P1_LEAD));
        record.sequence_number = SequenceNumber::parse(number);
        record.at = at;
        push(&mut pipeline, &record).unwrap();
    }
    let batches = pipeline.finish().unwrap();
    assert_eq!(
        batches.iter().map(|b| b.day).collect::<Vec<_>>(),
        [Some(0), Some(1)]
    );
    let numbers: Vec<_> = batches[0].batch["_seq"]
        .as_string::<i32>()
        .iter()
        .flatten()
        .collect();
    assert!(
        numbers.is_sorted() && numbers.iter().all(|n| n.len() == 40),
        "{numbers:?}"
    );
    assert!(numbers[0].ends_with("099") && numbers[2].ends_with("99999"));
}
