use std::collections::BTreeSet;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimestampMillisecondType};
use arrow::util::display::array_value_to_string;
use dynalake_schemas::Catalog;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::lambda::Invocation;
use crate::lambda::process::caught;
use crate::pipeline::Secrets;
use crate::quarantine::from_jsonl;
use crate::rebuild::rebuild_item;
use crate::store::Store;
use crate::stream::lambda;

const ARN: &str =
    "arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-11-01T00:00:00.000";
/// 2026-11-18T12:06:40Z.
const SECOND: i64 = 1_795_003_600;
const RECEIVED_MS: i64 = SECOND * 1_000 + 2_500;

fn catalog() -> Arc<Catalog> {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "lake.toml",
        "database = \"shop\"\n[source]\ntable = \"shop\"\npartition_key = \"PK\"\nsort_key = \"SK\"\n",
    );
    write(
        "order.toml",
        r#"
entity = "order"
table = "orders"
version = 1
[match]
partition_key = "USER#{user_id}"
sort_key = "ORDER#{order_id}"
[columns]
user_id = "string"
order_id = "string"
total = "decimal(12,2)"
"#,
    );
    Arc::new(Catalog::load(folder.path()).unwrap())
}

fn context(lake: &Path) -> Context {
    Context::new(catalog(), Secrets::default(), Store::local(lake)).unwrap()
}

/// A record of the stream; `second` is its creation time, `item` an order's total.
fn record(name: &str, key: &str, number: u64, second: Option<i64>, total: &str) -> String {
    let (partition, sort) = key.split_once('/').unwrap();
    let keys = format!(r#""PK":{{"S":"{partition}"}},"SK":{{"S":"{sort}"}}"#);
    let time = second
        .map(|second| format!(r#""ApproximateCreationDateTime":{second},"#))
        .unwrap_or_default();
    let image = if name == "REMOVE" {
        String::new()
    } else {
        format!(r#""NewImage":{{{keys},"total":{total}}},"#)
    };
    format!(
        r#"{{"eventID":"e{number}","eventName":"{name}","eventSource":"aws:dynamodb",
        "dynamodb":{{{time}"Keys":{{{keys}}},{image}"SequenceNumber":"{number}",
        "StreamViewType":"NEW_AND_OLD_IMAGES"}},"eventSourceARN":"{ARN}"}}"#
    )
}

fn order(name: &str, order: &str, number: u64) -> String {
    let total = format!(r#"{{"N":"{number}.50"}}"#);
    record(
        name,
        &format!("USER#1/ORDER#{order}"),
        number,
        Some(SECOND),
        &total,
    )
}

fn invocation(event: &str) -> Invocation<'_> {
    Invocation {
        event,
        request_id: "r1",
        now_ms: RECEIVED_MS,
        deadline_ms: i64::MAX,
    }
}

fn event(records: &[String]) -> String {
    format!(r#"{{"Records":[{}]}}"#, records.join(","))
}

/// One record of each kind: rows of two tables, two quarantined.
fn mixed() -> Vec<String> {
    let expired = order("REMOVE", "2", 104).replacen(
        '{',
        r#"{"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"#,
        1,
    );
    vec![
        order("INSERT", "1", 99),
        order("MODIFY", "1", 100),
        order("REMOVE", "1", 101),
        record(
            "INSERT",
            "PRODUCT#1/META",
            102,
            Some(SECOND),
            r#"{"SS":["b","a"]}"#,
        ),
        record(
            "INSERT",
            "USER#1/ORDER#9",
            103,
            Some(SECOND),
            r#"{"N":"x"}"#,
        ),
        expired,
        r#"{"eventID":"e105","dynamodb":{"Keys":{}},"eventSourceARN":"eventsource_arn"}"#
            .to_owned(),
    ]
}

async fn run(context: &Context, records: &[String]) -> Summary {
    handle(
        event(records).as_bytes(),
        RECEIVED_MS,
        context,
        Origin::Stream,
    )
    .await
    .unwrap()
}

/// Keys and bytes of all objects.
fn objects(lake: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![lake.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let key = path
                    .strip_prefix(lake)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.insert(key, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

fn batches(lake: &Path, prefix: &str) -> Vec<RecordBatch> {
    objects(lake)
        .into_iter()
        .filter(|(key, _)| key.starts_with(prefix))
        .flat_map(|(_, bytes)| {
            let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
            reader.build().unwrap().map(Result::unwrap)
        })
        .collect()
}

/// All rows of all tables as text.
fn rows(lake: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches(lake, "changes/") {
        let schema = batch.schema();
        // Instants are shown as numbers: Arrow needs a time zone database to name them.
        let instant = |column: &ArrayRef| match column.data_type() {
            DataType::Timestamp(..) => cast(column, &DataType::Int64).unwrap(),
            _ => Arc::clone(column),
        };
        let columns: Vec<ArrayRef> = batch.columns().iter().map(instant).collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(schema.fields()).map(|(column, field)| {
                format!(
                    "{}={}",
                    field.name(),
                    array_value_to_string(column, row).unwrap()
                )
            });
            rows.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    rows.sort();
    rows
}

fn column(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(name).unwrap();
    (0..batch.num_rows())
        .map(|row| {
            column
                .is_valid(row)
                .then(|| array_value_to_string(column, row).unwrap())
        })
        .collect()
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values
        .iter()
        .map(|value| Some((*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn an_event_becomes_rows_of_its_tables_and_quarantined_records() {
    let lake = TempDir::new().unwrap();
    let context = context(lake.path());
    let summary = run(&context, &mixed()).await;
    assert_eq!(summary.report.records, 7);
    assert_eq!(summary.report.quarantined, 2);
    assert_eq!(summary.report.tables["orders"].rows, 4);
    assert_eq!(summary.report.tables["unmatched"].rows, 1);
    assert_eq!(summary.unmatched_table, "unmatched");
    assert_eq!(summary.lag_ms, Some(2_500));
    // What the summary names is what is there.
    let there = objects(lake.path());
    let named: BTreeSet<(String, u64)> = summary
        .objects
        .iter()
        .map(|object| (object.key.clone(), object.bytes))
        .collect();
    let found = there
        .iter()
        .map(|(key, bytes)| (key.clone(), bytes.len().try_into().unwrap()));
    assert_eq!(named, found.collect());
    assert_eq!(there.len(), 3);

    let orders = batches(lake.path(), "changes/orders/dt=2026-11-18/99-104-").remove(0);
    assert_eq!(
        column(&orders, "_op"),
        some(&["INSERT", "MODIFY", "REMOVE", "REMOVE"])
    );
    let reasons = column(&orders, "_reason");
    assert_eq!(reasons[2..], some(&["user", "ttl"]));
    assert_eq!(column(&orders, "total")[..2], some(&["99.50", "100.50"]));
    assert_eq!(
        column(&orders, "_stream"),
        some(&["2026-11-01T00:00:00.000"; 4])
    );
    assert_eq!(
        column(&orders, "_event_id"),
        some(&["e99", "e100", "e101", "e104"])
    );
    assert_eq!(column(&orders, "_source"), some(&["stream"; 4]));
    let unmatched = batches(lake.path(), "changes/unmatched/").remove(0);
    let item = rebuild_item(
        context.catalog(),
        context.catalog().unmatched_index(),
        &unmatched,
        0,
    );
    let expected = r#"{"PK":{"S":"PRODUCT#1"},"SK":{"S":"META"},"total":{"SS":["a","b"]}}"#;
    assert_eq!(item.unwrap(), expected);
}

#[tokio::test]
async fn quarantined_records_are_whole_and_say_where_they_come_from() {
    let lake = TempDir::new().unwrap();
    let records = mixed();
    run(&context(lake.path()), &records).await;
    let quarantined = objects(lake.path())
        .into_iter()
        .find(|(key, _)| key.starts_with("quarantine/dt=2026-11-18/"))
        .map(|(_, bytes)| from_jsonl(&bytes).unwrap())
        .unwrap();
    assert_eq!(quarantined.len(), 2);
    let [number, envelope] = quarantined.as_slice() else {
        panic!()
    };
    assert_eq!(number.payload, records[4].as_bytes());
    assert_eq!(number.path.as_deref(), Some("NewImage.total"));
    assert_eq!(number.event_id.as_deref(), Some("e103"));
    assert_eq!(number.sequence_number.as_deref(), Some("103"));
    assert_eq!(number.at, SECOND * 1_000);
    assert_eq!(
        number.origin,
        RecordOrigin::Stream {
            arn: Some(ARN.to_owned())
        }
    );
    assert_eq!(envelope.payload, records[6].as_bytes());
    assert_eq!(envelope.path.as_deref(), Some("dynamodb.SequenceNumber"));
    // Without a creation time it takes the newest one of its batch.
    assert_eq!(envelope.at, SECOND * 1_000);
    assert_eq!(envelope.event_id.as_deref(), Some("e105"));
}

#[tokio::test]
async fn the_same_event_writes_the_same_objects() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    run(&context(first.path()), &mixed()).await;
    let once = objects(first.path());
    run(&context(first.path()), &mixed()).await;
    assert_eq!(objects(first.path()), once);
    // On another machine, at another time.
    let text = event(&mixed());
    let later = RECEIVED_MS + 86_400_000;
    handle(
        text.as_bytes(),
        later,
        &context(second.path()),
        Origin::Stream,
    )
    .await
    .unwrap();
    assert_eq!(objects(second.path()), once);
}

#[tokio::test]
async fn a_failure_record_of_s3_gives_the_objects_of_its_event() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let text = event(&mixed());
    run(&context(first.path()), &mixed()).await;
    let report = serde_json::json!({
        "version": "1.0",
        "DDBStreamBatchInfo": {"streamArn": ARN},
        "payload": text,
    });
    let report = report.to_string();
    let context = context(second.path());
    handle(report.as_bytes(), RECEIVED_MS, &context, Origin::Replay)
        .await
        .unwrap();
    let keys = |lake: &TempDir| objects(lake.path()).into_keys().collect::<Vec<_>>();
    assert_eq!(keys(&first), keys(&second));
    let replayed = batches(second.path(), "changes/orders/").remove(0);
    assert_eq!(column(&replayed, "_source"), some(&["replay"; 4]));
}

#[tokio::test]
async fn an_absent_time_is_the_newest_of_its_batch_else_the_time_of_receipt() {
    let times = |lake: &Path| {
        let mut times: Vec<i64> = batches(lake, "changes/orders/")
            .iter()
            .flat_map(|batch| {
                let column = batch.column_by_name("_at").unwrap();
                column
                    .as_primitive::<TimestampMillisecondType>()
                    .values()
                    .to_vec()
            })
            .collect();
        times.sort_unstable();
        times
    };
    let total = r#"{"N":"1"}"#;
    let of = |number, second| {
        record(
            "INSERT",
            &format!("USER#1/ORDER#{number}"),
            number,
            second,
            total,
        )
    };
    let lake = TempDir::new().unwrap();
    let old = SECOND - 86_400;
    run(
        &context(lake.path()),
        &[of(1, None), of(2, Some(SECOND)), of(3, Some(old))],
    )
    .await;
    let newest = SECOND * 1_000;
    assert_eq!(times(lake.path()), [old * 1_000, newest, newest]);
    // One object per day.
    let keys: Vec<String> = objects(lake.path()).into_keys().collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert!(
        keys[0].starts_with("changes/orders/dt=2026-11-17/3-3-"),
        "{keys:?}"
    );
    assert!(
        keys[1].starts_with("changes/orders/dt=2026-11-18/1-2-"),
        "{keys:?}"
    );

    let lake = TempDir::new().unwrap();
    let summary = run(&context(lake.path()), &[of(1, None)]).await;
    assert_eq!(times(lake.path()), [RECEIVED_MS]);
    assert_eq!(summary.lag_ms, None);
}

#[tokio::test]
async fn a_put_that_fails_fails_the_invocation_and_a_retry_completes_it() {
    let (lake, whole) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // A file where the table's folder should be.
    std::fs::create_dir_all(lake.path().join("changes")).unwrap();
    std::fs::write(lake.path().join("changes/orders"), "").unwrap();
    let context = context(lake.path());
    let outcome = lambda::invoke(invocation(&event(&mixed())), &context).await;
    let diagnostic = outcome.result.unwrap_err();
    assert_eq!(diagnostic.error_type, "dynalake.Store");
    let message = diagnostic.error_message;
    assert!(
        message.starts_with("1 of 3 objects were not stored"),
        "{message}"
    );
    assert!(
        message.contains("changes/orders/dt=2026-11-18/99-104-"),
        "{message}"
    );
    // The others are stored already, and stay as they are.
    let partial = objects(lake.path());
    assert_eq!(partial.len(), 3);

    std::fs::remove_file(lake.path().join("changes/orders")).unwrap();
    run(&context, &mixed()).await;
    run(&self::context(whole.path()), &mixed()).await;
    let complete = objects(lake.path());
    assert_eq!(complete, objects(whole.path()));
    assert!(
        partial
            .iter()
            .all(|(key, bytes)| { bytes.is_empty() || complete.get(key) == Some(bytes) })
    );
}

#[tokio::test]
async fn events_of_another_table_are_refused_whole() {
    let lake = TempDir::new().unwrap();
    let foreign = order("INSERT", "2", 2).replace("table/shop", "table/shop-dev");
    let records = [order("INSERT", "1", 1), foreign];
    let text = event(&records);
    let context = context(lake.path());
    let failed = handle(text.as_bytes(), 0, &context, Origin::Stream)
        .await
        .unwrap_err();
    assert_eq!(failed.error_type(), "dynalake.SourceTable");
    let message = failed.chain();
    assert!(
        message.contains("`shop-dev`") && message.contains("`shop`"),
        "{message}"
    );
    assert!(objects(lake.path()).is_empty());
    // One name per stage.
    let renamed = context.with_source_table("shop-dev");
    let text = event(&records[1..]);
    assert!(
        handle(text.as_bytes(), 0, &renamed, Origin::Stream)
            .await
            .is_ok()
    );
    assert_eq!(objects(lake.path()).len(), 1);
}

#[tokio::test]
async fn a_stream_without_new_images_is_refused_whole() {
    let lake = TempDir::new().unwrap();
    let keys_only = order("REMOVE", "1", 2).replace("NEW_AND_OLD_IMAGES", "KEYS_ONLY");
    let text = event(&[order("INSERT", "1", 1), keys_only]);
    let outcome = lambda::invoke(invocation(&text), &context(lake.path())).await;
    assert_eq!(
        outcome.result.unwrap_err().error_type,
        "dynalake.StreamViewType"
    );
    assert!(objects(lake.path()).is_empty());
}

#[tokio::test]
async fn an_empty_batch_writes_nothing_and_succeeds() {
    let lake = TempDir::new().unwrap();
    let outcome = lambda::invoke(invocation(&event(&[])), &context(lake.path())).await;
    assert!(outcome.result.unwrap().batch_item_failures.is_empty());
    assert!(
        outcome.log[0].contains("\"records\":0"),
        "{:?}",
        outcome.log
    );
    assert!(objects(lake.path()).is_empty());
}

#[tokio::test]
async fn a_panic_fails_its_invocation_only_and_says_nothing_of_the_event() {
    let lake = TempDir::new().unwrap();
    let broken = context(lake.path()).with_clock(|| panic!("SECRET"));
    let event_text = event(&[]);
    let outcome = caught(lambda::invoke(invocation(&event_text), &broken)).await;
    assert_eq!(outcome.log, [""; 0]);
    let diagnostic = outcome.result.unwrap_err();
    assert_eq!(diagnostic.error_type, "dynalake.Panic");
    assert!(
        !diagnostic.error_message.contains("SECRET"),
        "{}",
        diagnostic.error_message
    );
    let outcome = lambda::invoke(invocation(&event(&mixed())), &context(lake.path())).await;
    assert!(outcome.result.is_ok());
}

#[tokio::test]
async fn ten_thousand_records_are_one_batch() {
    let lake = TempDir::new().unwrap();
    let pad = "x".repeat(250);
    let records: Vec<String> = (1..=10_000)
        .map(|number| {
            record(
                "INSERT",
                &format!("USER#{}/ORDER#{number}", number % 97),
                number,
                Some(SECOND),
                &format!(r#"{{"N":"1"}},"note":{{"S":"{pad}"}}"#),
            )
        })
        .collect();
    assert!(event(&records).len() > 6_000_000);
    let summary = run(&context(lake.path()), &records).await;
    assert_eq!(summary.report.tables["orders"].rows, 10_000);
    assert_eq!(objects(lake.path()).len(), 1);
}

/// Records with rising sequence numbers, some of which come twice.
fn any_records() -> impl Strategy<Value = Vec<String>> {
    let name = prop_oneof![
        Just("INSERT"),
        Just("MODIFY"),
        Just("REMOVE"),
        Just("OTHER")
    ];
    let key = prop_oneof![
        Just("USER#1/ORDER#1"),
        Just("USER#1/ORDER#2"),
        Just("USER#2/ORDER#1"),
        Just("PRODUCT#1/META"),
    ];
    let total = prop_oneof![
        Just(r#"{"N":"1.5"}"#),
        Just(r#"{"N":"1.555"}"#),
        Just(r#"{"S":"many"}"#),
        Just(r#"{"M":{"a":{"L":[{"NULL":true}]}}}"#),
        Just(r#"{"X":1}"#),
        Just("7"),
    ];
    let change = (name, key, -2_i64..2, total, prop::bool::weighted(0.2));
    prop::collection::vec(change, 1..20).prop_map(|changes| {
        let mut records = Vec::new();
        for (number, (name, key, day, total, twice)) in (95..).zip(changes) {
            let record = record(name, key, number, Some(SECOND + day * 86_400), total);
            records.extend(std::iter::repeat_n(record, 1 + usize::from(twice)));
        }
        records
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_split_into_batches_gives_the_same_rows(
        records in any_records(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let (whole, split) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let summary = block_on(run(&context(whole.path()), &records));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(records.len())).collect();
        cuts.extend([0, records.len()]);
        cuts.sort_unstable();
        let context = context(split.path());
        let mut parts = Report::default();
        for ends in cuts.windows(2) {
            parts.merge(&block_on(run(&context, &records[ends[0]..ends[1]])).report);
        }
        prop_assert_eq!(&parts, &summary.report);
        // A part that comes twice replaces itself, so that sets are compared.
        let set = |lake: &TempDir| rows(lake.path()).into_iter().collect::<BTreeSet<_>>();
        prop_assert_eq!(set(&whole), set(&split));
        // Every record is in a row or in quarantine.
        let in_rows: u64 = summary.report.tables.values().map(|t| t.rows - t.extra_tombstones).sum();
        let count = u64::try_from(records.len()).unwrap();
        prop_assert_eq!(in_rows + summary.report.quarantined, count);
    }

    #[test]
    fn any_bytes_are_handled_or_refused(bytes in any::<Vec<u8>>()) {
        let lake = TempDir::new().unwrap();
        let outcome = block_on(handle(&bytes, 0, &context(lake.path()), Origin::Stream));
        prop_assert!(outcome.is_err());
        prop_assert!(objects(lake.path()).is_empty());
    }

    #[test]
    fn any_damage_to_an_event_is_accounted_for(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let lake = TempDir::new().unwrap();
        let mut bytes = event(&mixed()).into_bytes();
        let length = bytes.len();
        for (at, byte) in damage {
            bytes[at.index(length)] = byte;
        }
        if let Ok(summary) = block_on(handle(&bytes, 0, &context(lake.path()), Origin::Stream)) {
            let rows = summary.report.tables.values().map(|t| t.rows - t.extra_tombstones);
            prop_assert_eq!(rows.sum::<u64>() + summary.report.quarantined, summary.report.records);
        }
    }
}
