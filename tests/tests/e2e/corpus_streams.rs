//! Every stream event that public repositories show, through the real function into a local folder:
//! each item is in a row that rebuilds it exactly, or in quarantine with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

use arrow::array::AsArray as _;
use dynalake_pipeline::json::canonical_item;
use dynalake_pipeline::rebuild::rebuild_item;
use dynalake_schemas::Catalog;
use dynalake_tests::{LambdaError, corpus, corpus_files};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::world::start;

#[test]
fn every_event_of_the_corpus_is_kept_or_refused() {
    let Some(mut files) = corpus_files("streams") else {
        return;
    };
    files.push(corpus().unwrap().join("synthetic/stream-event.json"));
    let (mut rows, mut quarantined, mut refused) = (0, 0, BTreeMap::new());
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|e| e == "json"))
    {
        let text = fs::read(file).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let schemas = folder.path().join("schemas");
        let lake = folder.path().join("lake");
        fs::create_dir(&schemas).unwrap();
        let event: Value = serde_json::from_slice(&text).unwrap_or_default();
        fs::write(schemas.join("lake.toml"), lake_file(&event)).unwrap();
        let variables = [("DYNALAKE_LAKE", &lake), ("DYNALAKE_SCHEMAS", &schemas)]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()));
        let mut function = start(&variables.into()).unwrap_or_else(|e| panic!("{}", e.text()));
        match function.invoke(&text) {
            Ok(answer) => {
                assert_eq!(answer, json!({"batchItemFailures": []}));
                let (kept, away) = check(file, &event, &schemas, &lake);
                rows += kept;
                quarantined += away;
            }
            Err(LambdaError::Function {
                error_type,
                message,
            }) => {
                assert!(!message.is_empty());
                assert!(
                    !lake.exists(),
                    "{}: refused, but something was written",
                    file.display()
                );
                *refused.entry(error_type).or_insert(0) += 1;
            }
            Err(other) => panic!("{}: {other:?}\n{:?}", file.display(), function.log()),
        }
        assert!(function.is_alive(), "{}", file.display());
    }
    println!(
        "{} files: {rows} rows, {quarantined} quarantined, refused {refused:?}",
        files.len()
    );
    assert!(rows >= 40, "{rows}");
}

/// A `lake.toml` for the table of this event: no entities, so that every item is `unmatched`.
fn lake_file(event: &Value) -> String {
    let mut keys = BTreeMap::new();
    for record in event["Records"].as_array().into_iter().flatten() {
        for (name, value) in record["dynamodb"]["Keys"].as_object().into_iter().flatten() {
            let kind = value.as_object().and_then(|tags| tags.keys().next());
            keys.entry(name.clone())
                .or_insert_with(|| kind.cloned().unwrap_or_default());
        }
    }
    let mut text = "database = \"corpus\"\n[source]\n".to_owned();
    let mut keys = keys
        .into_iter()
        .take(2)
        .filter(|(_, kind)| ["S", "N", "B"].contains(&&**kind));
    let mut line = |role: &str, key: Option<(String, String)>| {
        if let Some((name, kind)) = key {
            text.extend([
                role,
                " = { name = ",
                &json!(name).to_string(),
                ", type = \"",
                &kind,
                "\" }\n",
            ]);
        }
    };
    line(
        "partition_key",
        keys.next().or_else(|| Some(("PK".into(), "S".into()))),
    );
    line("sort_key", keys.next());
    text
}

/// Compares what was written with the event; gives the numbers of rows and quarantined records.
fn check(file: &Path, event: &Value, schemas: &Path, lake: &Path) -> (usize, usize) {
    let records = event["Records"].as_array().unwrap();
    let catalog = Catalog::load(schemas).unwrap();
    let items: BTreeSet<String> = records
        .iter()
        .filter_map(|record| record["dynamodb"].get("NewImage"))
        .filter_map(|image| canonical_item(&serde_json::to_vec(image).unwrap()).ok())
        .collect();
    let mut rows = 0;
    let mut found = BTreeSet::new();
    for object in objects(&lake.join("changes/unmatched")) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(object).unwrap());
        for batch in reader.unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let operations = batch
                .column_by_name("_op")
                .unwrap()
                .as_string::<i32>()
                .clone();
            for row in 0..batch.num_rows() {
                rows += 1;
                if operations.value(row) != "REMOVE" {
                    found.insert(
                        rebuild_item(&catalog, catalog.entities.len() - 1, &batch, row).unwrap(),
                    );
                }
            }
        }
    }
    let lines: Vec<Value> = objects(&lake.join("quarantine"))
        .iter()
        .flat_map(|path| {
            fs::read_to_string(path)
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    assert_eq!(rows + lines.len(), records.len(), "{}", file.display());
    assert!(
        found.is_subset(&items),
        "{}: a row holds another item",
        file.display()
    );
    for line in &lines {
        assert!(line["reason"].is_string());
        let payload: Value = serde_json::from_str(line["payload"].as_str().unwrap()).unwrap();
        assert!(
            records.contains(&payload),
            "{}: the payload is whole",
            file.display()
        );
        if let Some(image) = payload["dynamodb"].get("NewImage") {
            found.extend(canonical_item(&serde_json::to_vec(image).unwrap()));
        }
    }
    assert_eq!(found, items, "{}: an item is lost", file.display());
    (rows, lines.len())
}

/// The files of the day folders of a table.
fn objects(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(days) = fs::read_dir(folder) else {
        return vec![];
    };
    days.flat_map(|day| fs::read_dir(day.unwrap().path()).unwrap())
        .map(|object| object.unwrap().path())
        .collect()
}
