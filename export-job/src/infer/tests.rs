//! What is inferred from the corpus, and that it converts without a mismatch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dynalake_pipeline::json::canonical_item;
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::rebuild::rebuild_item;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::export_writer::{ExportSpec, write_full_export};
use crate::options::{ConvertOptions, NoProgress};
use crate::source::Source;

fn corpus() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let given = std::env::var_os("DYNALAKE_CORPUS").map(PathBuf::from);
    let beside = here.ancestors().skip(1).take(3);
    let beside = beside.map(|folder| folder.join("../shared/corpus"));
    let found = given.into_iter().chain(beside).find(|it| it.is_dir());
    if found.is_none() {
        println!("skipped: no corpus (../shared/corpus or DYNALAKE_CORPUS)");
    }
    found
}

fn items(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let items = text.lines().filter(|line| !line.trim().is_empty());
    items
        .map(|line| {
            let members = dynalake_pipeline::json::members(line.as_bytes()).unwrap();
            let (_, item) = members.iter().find(|(name, _)| name == "Item").unwrap();
            String::from_utf8(item.to_vec()).unwrap()
        })
        .collect()
}

fn inferred(items: &[String]) -> Result<Inferred, InferError> {
    let mut inference = Inference::new(InferOptions {
        database: "app".to_owned(),
        ..InferOptions::default()
    });
    loop {
        for item in items {
            if !inference.item(item.as_bytes()) {
                break;
            }
        }
        if inference.next_pass()? == Then::Done {
            return inference.finish();
        }
    }
}

/// The entity types that a reader of the sets finds, by hand, and their items.
const EXPECTED: [(&str, &str); 16] = [
    (
        "amazon-dynamodb-design-patterns-AnOnlineShop-10",
        "customer 3, invoice 1, order 1, order_item 2, product 2, shipment 2, warehouse 2, warehouse_item 3",
    ),
    (
        "amazon-dynamodb-design-patterns-AnOnlineShop-2",
        "customer 1",
    ),
    (
        "amazon-dynamodb-design-patterns-AnOnlineShop-5",
        "customer 1, product 1, warehouse 1, warehouse_item 1",
    ),
    (
        "amazon-dynamodb-design-patterns-AnOnlineShop-8",
        "customer 3, invoice 1, order 1, order_item 2, product 2, warehouse 2, warehouse_item 3",
    ),
    ("amazon-dynamodb-design-patterns-DeviceStateLog-7", "d 11"),
    (
        "amazon-dynamodb-labs-ACL",
        "group 1, privilege 2, role 1, user 1",
    ),
    ("amazon-dynamodb-labs-CartModel", "app 5"),
    (
        "amazon-dynamodb-labs-Hospital",
        "activity 1, admission 1, doctor 1, medicine 1, nurse 1, patient 1, room 1, treatment 1",
    ),
    (
        "amazon-dynamodb-labs-banking",
        "account 2, customer 1, purchase 1, transaction 4",
    ),
    ("aws-dynamodb-examples-ChatSystemSchema", "room 3, user 5"),
    (
        "aws-dynamodb-examples-ComplaintManagementSchema",
        "comm 5, metadata 4",
    ),
    (
        "aws-dynamodb-examples-ConnectedVehiclesSchema",
        "feature 3, id 1, id_f 2, id_vin 1, preferences 2, vin 1, vin_f 1, vin_id 1",
    ),
    (
        "aws-dynamodb-examples-GamePlayerProfilesSchema",
        "activity 3, equipment 3, friends 1, item 3, metadata 1, task 3",
    ),
    ("electrodb-taskmanager", "employee 150, office 5, task 200"),
    ("seed-battle-royale", "game 15, game_user 520, user 300"),
    (
        "seed-ladv-employees",
        "current_title 1000, e 1000, previous_title 1000, state 1000",
    ),
];

/// Converts an export of the items with the files, and gives back what the rows tell of them.
async fn converted(files: &[(String, String)], items: &[String]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let schemas = folder.path().join("schemas");
    std::fs::create_dir(&schemas).unwrap();
    for (name, text) in files {
        std::fs::write(schemas.join(name), text).unwrap();
    }
    let catalog = Arc::new(Catalog::load(&schemas).unwrap());
    let spec = ExportSpec::new("app", 1_794_983_200_000);
    let export = write_full_export(&folder.path().join("bucket"), &spec, items).unwrap();
    let lake = folder.path().join("lake");
    let report = crate::convert(
        &Source::local(&export).unwrap(),
        &dynalake_pipeline::store::Store::local(&lake),
        Arc::clone(&catalog),
        &Secrets::default(),
        &ConvertOptions {
            spool: Some(folder.path().to_owned()),
            ..ConvertOptions::default()
        },
        Arc::new(NoProgress),
    )
    .await
    .unwrap();
    assert_eq!(report.quarantined, 0);
    let mut rebuilt = Vec::new();
    for (index, entity) in catalog.entities.iter().enumerate() {
        if let Some(outcome) = report.tables.get(&entity.table) {
            let counts = format!("{:?}", outcome.counts.mismatches);
            assert!(
                ["0", "{}"].contains(&counts.as_str()),
                "{}: {counts}",
                entity.table
            );
        }
        let mut folders = vec![lake.join("snapshot").join(&entity.table)];
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(next).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let file = std::fs::File::open(path).unwrap();
                let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
                for batch in reader.build().unwrap() {
                    let batch = batch.unwrap();
                    let rows = 0..batch.num_rows();
                    rebuilt.extend(
                        rows.map(|row| rebuild_item(&catalog, index, &batch, row).unwrap()),
                    );
                }
            }
        }
    }
    rebuilt.sort();
    rebuilt
}

fn entities(report: &InferReport) -> String {
    let mut found: Vec<String> = report
        .entities
        .iter()
        .map(|entity| format!("{} {}", entity.name, entity.items))
        .collect();
    found.sort();
    found.join(", ")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_set_of_the_corpus_is_told_apart_and_comes_back_whole() {
    let Some(corpus) = corpus() else { return };
    let mut hits = 0;
    for (name, expected) in EXPECTED {
        let items = items(&corpus.join(format!("single-table/{name}.jsonl")));
        let found = inferred(&items).unwrap();
        if entities(&found.report) == expected {
            hits += 1;
        } else {
            println!("{name}: {}\n  for {expected}", entities(&found.report));
        }
        assert_eq!(
            found.report.unmatched + found.report.unreadable,
            0,
            "{name}"
        );
        let mut whole: Vec<String> = items
            .iter()
            .map(|item| canonical_item(item.as_bytes()).unwrap())
            .collect();
        whole.sort();
        assert_eq!(converted(&found.files, &items).await, whole, "{name}");
        let doubled: Vec<String> = items.iter().chain(&items).cloned().collect();
        assert_eq!(inferred(&doubled).unwrap().files, found.files, "{name}");
        let reversed: Vec<String> = items.iter().rev().cloned().collect();
        assert_eq!(inferred(&reversed).unwrap().files, found.files, "{name}");
    }
    assert_eq!(hits, EXPECTED.len());
}

fn files_of(items: &[&str]) -> (InferReport, String) {
    let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
    let found = inferred(&items).unwrap();
    let text: Vec<&str> = found.files.iter().map(|(_, text)| text.as_str()).collect();
    (found.report, text.join("\n"))
}

#[test]
fn the_values_of_an_attribute_are_no_entity_types_and_that_is_said() {
    let item = |n: u32, status: &str| {
        format!(
            r#"{{"PK":{{"S":"ORDER#{n}"}},"SK":{{"S":"{status}#2026-01-0{n}"}},"status":{{"S":"{status}"}}}}"#
        )
    };
    let items = [item(1, "OPEN"), item(2, "DONE"), item(3, "OPEN")];
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    let (report, _) = files_of(&items);
    assert_eq!(entities(&report), "order 3");
    assert!(
        report.rejected.iter().any(|it| it.contains("`status`")),
        "{report:?}"
    );
}

#[test]
fn types_are_the_tightest_that_lose_nothing() {
    let (_, text) = files_of(&[
        r#"{"pk":{"S":"U#1"},"n":{"N":"1"},"big":{"N":"3000000000"},"price":{"N":"10.25"},"createdAt":{"N":"1700000000"},"mixed":{"S":"a"},"tags":{"SS":["a"]},"address":{"M":{"zipCode":{"S":"1"}}},"email":{"S":"a@example.com"},"day":{"S":"2026-01-01"}}"#,
        r#"{"pk":{"S":"U#2"},"n":{"N":"2"},"big":{"N":"1"},"price":{"N":"1000"},"createdAt":{"N":"1700000001"},"mixed":{"N":"1"},"lines":{"L":[{"M":{"qty":{"N":"1"}}}]},"day":{"S":"2026-01-02"}}"#,
    ]);
    for line in [
        "n = \"int\"",
        "big = \"bigint\"",
        "price = \"decimal(6,2)\"",
        "created_at = { type = \"timestamp\", format = \"epoch_s\" }",
        "mixed = \"json\"",
        "tags = \"set<string>\"",
        "address = \"struct<zip_code:string>\"",
        "lines = \"array<struct<qty:int>>\"",
        "# may be personal data",
        "day = \"date\"",
        "partition_key = \"U#{u_id}\"",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn versions_of_one_item_do_not_hide_keys_with_the_usual_names() {
    let (report, text) = files_of(&[
        r#"{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#2026-01-01#7"},"n":{"N":"1"}}"#,
        r#"{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#2026-01-01#7"},"n":{"N":"2"}}"#,
    ]);
    assert_eq!(report.sort_key.as_deref(), Some("SK"));
    assert!(text.contains("ORDER#{order_date}#{order_id}"), "{text}");
}
