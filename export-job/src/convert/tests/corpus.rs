//! Exports made by others. Skipped with a message where the corpus is not there.

use dynalake_pipeline::json::canonical_item;
use dynalake_pipeline::rebuild::rebuild_item;

use super::*;
use crate::format::{DataFormat, LineReader};
use crate::manifest::{Summary, parse_files};
use crate::state::StateKind;

fn corpus() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let given = std::env::var_os("DYNALAKE_CORPUS").map(PathBuf::from);
    let beside = here
        .ancestors()
        .skip(1)
        .take(3)
        .map(|folder| folder.join("../shared/corpus"));
    let found = given
        .into_iter()
        .chain(beside)
        .find(|folder| folder.is_dir());
    if found.is_none() {
        println!("skipped: no corpus (../shared/corpus or DYNALAKE_CORPUS)");
    }
    found
}

/// Folders below the corpus that hold a summary manifest.
fn exports(corpus: &Path) -> Vec<PathBuf> {
    tree(corpus)
        .keys()
        .filter_map(|name| name.strip_suffix("/manifest-summary.json"))
        .map(|name| corpus.join(name))
        .collect()
}

/// The items of an export in canonical spelling, sorted.
fn exported(export: &Path) -> Vec<String> {
    let mut items = Vec::new();
    for (name, bytes) in tree(&export.join("data")) {
        let mut lines = LineReader::new(DataFormat::of_file(&name).unwrap());
        let mut reader = crate::data_file::DataFileReader::new(bytes.as_slice());
        while let Some((_, line)) = reader.next_line().unwrap() {
            let json = lines.json(line).unwrap();
            let item = crate::line::snapshot(json, 0).unwrap().new_image.unwrap();
            items.push(canonical_item(item).unwrap());
        }
    }
    items.sort();
    items
}

/// The items that the rows of `unmatched` give back, sorted.
fn rebuilt(catalog: &Catalog, lake: &Path) -> Vec<String> {
    let index = catalog.unmatched_index();
    let mut items = Vec::new();
    for path in tree(&lake.join("snapshot/unmatched")).keys() {
        let file = std::fs::File::open(lake.join("snapshot/unmatched").join(path)).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file)
            .unwrap()
            .build()
            .unwrap()
        {
            let batch = batch.unwrap();
            items.extend(
                (0..batch.num_rows()).map(|row| rebuild_item(catalog, index, &batch, row).unwrap()),
            );
        }
    }
    items.sort();
    items
}

#[test]
fn manifests_of_other_tools_are_read_or_refused() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("exports/MacHu-GWU-aws_dynamodb_io-project");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let full = Summary::parse(&read("full_export_data.manifest-summary.json"), "s").unwrap();
    assert_eq!(
        (full.table.as_str(), full.item_count),
        ("ProductCatalog", 8)
    );
    let incremental = Summary::parse(&read("incr_export_data.manifest-summary.json"), "s");
    assert_eq!(
        incremental.unwrap().label,
        "20230918T170000Z-20230919T040000Z"
    );
    let texts = corpus.join("exports/awslabs-amazon-dynamodb-tools/manifest-validator-texts.json");
    let texts: Vec<String> = serde_json::from_slice(&std::fs::read(texts).unwrap()).unwrap();
    assert!(texts.len() > 20);
    for text in texts {
        // None of them has all that a real manifest has.
        let summary = Summary::parse(text.as_bytes(), "summary").unwrap_err();
        let files = parse_files(text.as_bytes(), "files").unwrap_err();
        assert!(
            summary.refusal().is_some() && files.refusal().is_some(),
            "{summary} {files}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_export_of_the_corpus_is_converted_or_refused_for_what_it_is() {
    let Some(corpus) = corpus() else { return };
    let (mut converted, mut incremental) = (0, 0);
    for export in exports(&corpus) {
        let lake = tempfile::tempdir().unwrap();
        let name = export.display().to_string();
        let keys = if name.contains("scylla") {
            "partition_key = \"id\"\n"
        } else {
            "partition_key = \"PK\"\nsort_key = \"SK\"\n"
        };
        let catalog = catalog_with(&format!("database = \"x\"\n[source]\n{keys}"), &[]);
        let outcome = run_into(&export, lake.path(), &catalog, &ConvertOptions::default()).await;
        if name.contains("incremental") {
            // Its rows wait to be rolled; no reader sees them.
            let report = outcome.unwrap();
            assert_eq!(
                (report.kind, report.accounted(), report.quarantined),
                (StateKind::Incremental, report.items, 0),
                "{name}"
            );
            assert!(rows(lake.path(), "unmatched").is_empty());
            let deltas = tree(&lake.path().join("deltas/unmatched"));
            assert!(deltas.keys().all(|key| key.contains(&report.export_id)));
            assert!(!deltas.is_empty() && report.items > 0, "{name}");
            incremental += 1;
        } else {
            let report = outcome.unwrap();
            assert_eq!(
                (report.accounted(), report.quarantined),
                (report.items, 0),
                "{name}"
            );
            assert_eq!(
                report.tables["unmatched"].counts.rows, report.items,
                "{name}"
            );
            assert_eq!(rebuilt(&catalog, lake.path()), exported(&export), "{name}");
            converted += 1;
        }
    }
    assert!(
        converted >= 3 && incremental >= 2,
        "{converted} {incremental}"
    );
}
