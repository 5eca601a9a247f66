//! Items of real tables: under schemas written for them, and under none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dynalake_pipeline::json::members;
use dynalake_pipeline::pipeline::{Partitioning, Pipeline, Secrets};
use dynalake_pipeline::rebuild::rebuild_item;
use dynalake_pipeline::report::Report;
use dynalake_schemas::Catalog;
use dynalake_tests::{corpus, corpus_files, oracle};

use crate::{snapshot, through_parquet};

/// Tables and the rows that each must get.
type Rows = &'static [(&'static str, u64)];

/// A set, its schemas, and the rows that each table must get.
const SETS: &[(&str, &str, Rows)] = &[
    // Told apart by a type attribute.
    (
        "amazon-dynamodb-design-patterns-AnOnlineShop-10",
        "online_shop",
        &[
            ("customers", 3),
            ("orders", 1),
            ("products", 2),
            ("shipments", 2),
            ("unmatched", 8),
        ],
    ),
    // By keys only.
    (
        "seed-battle-royale",
        "battle_royale",
        &[("games", 15), ("players", 520), ("users", 300)],
    ),
    // The type stands at the end of the sort key.
    (
        "amazon-dynamodb-labs-Hospital",
        "hospital",
        &[
            ("medicines", 1),
            ("patients", 1),
            ("treatments", 1),
            ("unmatched", 5),
        ],
    ),
    // ElectroDB.
    (
        "electrodb-taskmanager",
        "taskmanager",
        &[("employees", 150), ("offices", 5), ("tasks", 200)],
    ),
    (
        "aws-dynamodb-examples-ChatSystemSchema",
        "chat",
        &[("messages", 5), ("rooms", 3)],
    ),
    (
        "seed-ladv-employees",
        "employees",
        &[("employees", 1000), ("titles", 2000), ("unmatched", 1000)],
    ),
];

#[test]
fn real_tables_become_typed_tables_and_back() {
    let Some(corpus) = corpus() else { return };
    for (set, schemas, expected) in SETS {
        let folder = dynalake_tests::repository()
            .join("tests/fixtures/schemas")
            .join(schemas);
        let catalog = Catalog::load(&folder).unwrap_or_else(|problems| panic!("{problems}"));
        let path = corpus.join("single-table").join(format!("{set}.jsonl"));
        let report = round_trip(&Arc::new(catalog), &items(&path), &path);
        let rows: BTreeMap<_, _> = report
            .tables
            .iter()
            .map(|(table, counts)| (table.as_str(), counts.rows))
            .collect();
        assert_eq!(rows, expected.iter().copied().collect(), "{set}");
        assert_eq!(report.quarantined, 0, "{set}");
        for (table, counts) in &report.tables {
            assert_eq!(counts.mismatches, BTreeMap::new(), "{set}: {table}");
        }
    }
}

#[test]
fn every_item_of_the_corpus_is_a_row_or_has_a_reason() {
    let Some(corpus) = corpus() else { return };
    let mut seen = 0;
    for folder in ["single-table", "nasty", "exports"] {
        for path in corpus_files(folder).unwrap() {
            if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                let items = items(&path);
                seen += items.len();
                if let Some(catalog) = catalog_for(&items) {
                    round_trip(&Arc::new(catalog), &items, &path);
                }
            }
        }
    }
    assert!(seen > 5000, "only {seen} items in {}", corpus.display());
}

/// The raw items of a file of lines: `{"Item":{…}}`, or the bare item.
fn items(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let wrapped = members(line.as_bytes()).ok().and_then(|members| {
                let (_, item) = members.into_iter().find(|(name, _)| name == "Item")?;
                Some(String::from_utf8(item.to_vec()).unwrap())
            });
            wrapped.unwrap_or_else(|| line.to_owned())
        })
        .collect()
}

/// A catalog without entities, whose partition key is an attribute that all items have.
fn catalog_for(items: &[String]) -> Option<Catalog> {
    let names = |item: &String| -> Vec<String> {
        let members = members(item.as_bytes()).unwrap_or_default();
        members
            .into_iter()
            .map(|(name, _)| name.into_owned())
            .collect()
    };
    let first = names(items.first()?);
    let in_all = |name: &&String| items.iter().all(|item| names(item).contains(name));
    let preferred = ["PK", "pk"].map(str::to_owned);
    let key = preferred.iter().chain(&first).find(in_all)?;
    let folder = tempfile::tempdir().unwrap();
    let lake = format!(
        "database = \"any\"\n[source]\npartition_key = {}\n",
        serde_json::json!(key)
    );
    std::fs::write(folder.path().join("lake.toml"), lake).unwrap();
    Some(Catalog::load(folder.path()).unwrap_or_else(|problems| panic!("{problems}")))
}

/// Every item either becomes a row that rebuilds it exactly, or is rejected with a reason.
fn round_trip(catalog: &Arc<Catalog>, items: &[String], path: &Path) -> Report {
    let mut pipeline = Pipeline::new(
        Arc::clone(catalog),
        &Secrets::default(),
        Partitioning::Whole,
    )
    .unwrap();
    let mut expected = Vec::new();
    for item in items {
        match pipeline.push(&snapshot(item)) {
            Ok(_) => expected.push(oracle::item(item)),
            Err(reject) => assert!(!reject.message.is_empty(), "{}", path.display()),
        }
    }
    let mut rebuilt = Vec::new();
    for table in pipeline.finish().unwrap() {
        for batch in through_parquet(catalog, table.entity, &table.batch) {
            for row in 0..batch.num_rows() {
                let item = rebuild_item(catalog, table.entity, &batch, row).unwrap();
                rebuilt.push(oracle::item(&item));
            }
        }
    }
    expected.sort();
    rebuilt.sort();
    assert!(expected == rebuilt, "items of {} changed", path.display());
    pipeline.take_report()
}
