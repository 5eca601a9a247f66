//! Nothing is lost: random items under random schemas go through the real pipeline into Parquet, are
//! read back, rebuilt, and compared with what `serde_dynamo` understood of the same text.

mod corpus;
mod generate;
mod ion;

use std::sync::Arc;

use arrow::array::RecordBatch;
use dynalake_pipeline::encode::encode_batch;
use dynalake_pipeline::pipeline::{Partitioning, Pipeline, Secrets};
use dynalake_pipeline::rebuild::rebuild_item;
use dynalake_pipeline::record::{ChangeRecord, Operation, Origin};
use dynalake_schemas::Catalog;
use dynalake_tests::oracle;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

/// An export's item as the pipeline takes it.
fn snapshot(item: &str) -> ChangeRecord<'_> {
    ChangeRecord {
        operation: Operation::Snapshot,
        reason: None,
        at: 1_777_000_000_000,
        stream: None,
        sequence_number: None,
        event_id: None,
        origin: Origin::FullExport,
        keys: None,
        new_image: Some(item.as_bytes()),
        old_image: None,
        payload: item.as_bytes(),
    }
}

/// Every row of a batch after a trip through Parquet.
fn through_parquet(catalog: &Catalog, entity: usize, batch: &RecordBatch) -> Vec<RecordBatch> {
    let bytes = encode_batch(&catalog.entities[entity], batch).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
    reader.build().unwrap().collect::<Result<_, _>>().unwrap()
}

/// The number `n` in a key `I#n`.
fn number_in_key(text: &str) -> usize {
    match &oracle::item(text)["PK"] {
        oracle::Plain::S(key) => key.trim_start_matches("I#").parse().unwrap(),
        other => panic!("a key of another type: {other:?}"),
    }
}

/// Decodes items, and gives the rebuilt texts by the number that each item carries in its key.
fn there_and_back(catalog: &Arc<Catalog>, items: &[String]) -> Vec<String> {
    let mut pipeline = Pipeline::new(
        Arc::clone(catalog),
        &Secrets::default(),
        Partitioning::Whole,
    )
    .unwrap();
    for item in items {
        let rows = pipeline.push(&snapshot(item));
        assert_eq!(rows, Ok(1), "{item}");
    }
    let mut rebuilt = vec![String::new(); items.len()];
    for table in pipeline.finish().unwrap() {
        for batch in through_parquet(catalog, table.entity, &table.batch) {
            for row in 0..batch.num_rows() {
                let item = rebuild_item(catalog, table.entity, &batch, row).unwrap();
                let number = number_in_key(&item);
                rebuilt[number] = item;
            }
        }
    }
    rebuilt
}

proptest! {
    #[test]
    fn every_item_is_rebuilt_exactly_from_its_row(case in generate::case()) {
        let catalog = Arc::new(case.catalog);
        let rebuilt = there_and_back(&catalog, &case.items);
        for (given, rebuilt) in case.items.iter().zip(&rebuilt) {
            prop_assert_eq!(oracle::item(given), oracle::item(rebuilt), "{} became {}", given, rebuilt);
        }
    }

    #[test]
    fn spelling_and_order_change_no_byte(case in generate::case(), seed: u64) {
        let catalog = Arc::new(case.catalog);
        let encode = |items: &[String]| {
            let mut pipeline =
                Pipeline::new(Arc::clone(&catalog), &Secrets::default(), Partitioning::Whole).unwrap();
            for item in items {
                pipeline.push(&snapshot(item)).unwrap();
            }
            let batches = pipeline.finish().unwrap();
            batches
                .iter()
                .map(|table| encode_batch(&catalog.entities[table.entity], &table.batch).unwrap())
                .collect::<Vec<_>>()
        };
        let respelled: Vec<String> =
            case.items.iter().rev().map(|item| generate::respell(item, seed)).collect();
        prop_assert_eq!(encode(&case.items), encode(&respelled));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), case in generate::case()) {
        let mut pipeline =
            Pipeline::new(Arc::new(case.catalog), &Secrets::default(), Partitioning::Whole).unwrap();
        let mut record = snapshot("");
        record.new_image = Some(&bytes);
        prop_assert!(pipeline.push(&record).is_err());
        for item in &case.items {
            // A text cut anywhere is rejected, and leaves no trace in the rows that follow.
            let cut = item.len() / 2;
            if item.is_char_boundary(cut) {
                prop_assert!(pipeline.push(&snapshot(&item[..cut])).is_err());
            }
            prop_assert_eq!(pipeline.push(&snapshot(item)), Ok(1));
        }
        let rows: usize = pipeline.finish().unwrap().iter().map(|table| table.batch.num_rows()).sum();
        prop_assert_eq!(rows, case.items.len());
    }
}

#[test]
fn items_at_the_limits_are_rebuilt() {
    let deep = format!(
        r#"{}{{"S":"底"}}{}"#,
        r#"{"M":{"a":{"L":["#.repeat(16),
        "]}}}".repeat(16)
    );
    let wide: Vec<String> = (0..5000)
        .map(|n| format!(r#""n{n}":{{"N":"{n}"}}"#))
        .collect();
    let long = "長".repeat(400 * 1024 / 3);
    let numbers = [
        "1",
        "-0",
        "1E+125",
        "-1E-130",
        "9007199254740993",
        "0.10",
        "99999999999999999999999999999999999999",
    ];
    let numbers: Vec<String> = numbers
        .iter()
        .map(|n| format!(r#"{{"N":"{n}"}}"#))
        .collect();
    let values = [
        deep,
        format!(r#"{{"M":{{{}}}}}"#, wide.join(",")),
        format!(r#"{{"S":"{long}"}}"#),
        format!(r#"{{"L":[{}]}}"#, numbers.join(",")),
        r#"{"S":"\u0000\n\ud83d\ude00\u2028"}"#.to_owned(),
    ];
    for schema in generate::SAMPLE_TYPES {
        let catalog = Arc::new(generate::one_column(schema));
        let items: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(n, value)| format!(r#"{{"PK":{{"S":"I#{n}"}},"value":{value}}}"#))
            .collect();
        for (given, rebuilt) in items.iter().zip(there_and_back(&catalog, &items)) {
            assert_eq!(oracle::item(given), oracle::item(&rebuilt), "as {schema}");
        }
    }
}
