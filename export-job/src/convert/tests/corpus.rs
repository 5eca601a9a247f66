//! Exports made by others. Skipped with a message where the corpus is not there.

use dynalake_pipeline::json::canonical_item;
use dynalake_pipeline::rebuild::rebuild_item;
use dynalake_pipeline::record::Operation;
use dynalake_pipeline::reject::{ReasonCode, Reject};

use super::*;
use crate::export_writer::line_in;
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

/// A line of a full export, or of an incremental one, as the record that it becomes from either format:
/// its operation and its new image in canonical spelling.
fn read_line(full: bool, line: &str) -> Result<(Operation, Option<String>), Reject> {
    let read = |format| {
        let line = line_in(format, line).unwrap();
        let mut lines = LineReader::new(format);
        let json = lines.json(line.as_bytes())?;
        let record = if full {
            crate::line::snapshot(json, 0)
        } else {
            crate::line::change(json, 0)
        }?;
        let image = record.new_image.map(canonical_item).transpose()?;
        Ok::<_, Reject>((record.operation, image))
    };
    let (json, ion) = (read(DataFormat::Json), read(DataFormat::Ion));
    match (&json, &ion) {
        (Err(json), Err(ion)) => assert_eq!(json.code, ion.code, "{line}: {json}, {ion}"),
        _ => assert_eq!(json, ion, "{line}"),
    }
    json
}

#[test]
fn lines_of_other_tools_are_read_or_rejected_in_either_format() {
    use Operation::{Modify, Remove};

    let Some(corpus) = corpus() else { return };
    let lines = "exports/awslabs-amazon-dynamodb-tools/incremental-parser-lines.jsonl";
    let text = std::fs::read_to_string(corpus.join(lines)).unwrap();
    let outcomes: Vec<_> = text.lines().map(|line| read_line(false, line)).collect();
    let (last, good) = outcomes.split_last().unwrap();
    // `NewImage` is null, or there is no image at all: the item is gone.
    let operations: Vec<_> = good.iter().map(|read| read.as_ref().unwrap().0).collect();
    assert_eq!(
        operations,
        [Modify, Modify, Modify, Modify, Remove, Remove, Remove]
    );
    assert_eq!(
        last.as_ref().unwrap_err().message,
        "the line has no member `Keys`"
    );
    // The parser that these are from takes lines of the other kind for an error, too.
    for line in text.lines() {
        assert_eq!(
            read_line(true, line).unwrap_err().code,
            ReasonCode::MalformedRecord
        );
    }
    let items = corpus.join("exports/olpa-streaming_json/examples/dynamodb/fixture");
    let mut read = 0;
    for text in tree(&items).into_values() {
        let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let (operation, image) = read_line(true, &document.to_string()).unwrap();
        let expected = canonical_item(document["Item"].to_string().as_bytes()).unwrap();
        assert_eq!((operation, image), (Operation::Snapshot, Some(expected)));
        read += 1;
    }
    assert_eq!(read, 2);
}

#[test]
fn numbers_are_what_dynamodb_returns_in_either_format() {
    let Some(corpus) = corpus() else { return };
    let text = std::fs::read_to_string(corpus.join("synthetic/numbers.tsv")).unwrap();
    let mut read = 0;
    for line in text.lines().skip(1) {
        let (given, stored) = line.split_once('\t').unwrap();
        let outcome = read_line(true, &format!(r#"{{"Item":{{"n":{{"N":"{given}"}}}}}}"#));
        if stored.starts_with("ERROR") {
            assert_eq!(
                outcome.unwrap_err().code,
                ReasonCode::MalformedAttributeValue,
                "{given}"
            );
        } else {
            let expected = format!(r#"{{"n":{{"N":"{stored}"}}}}"#);
            assert_eq!(outcome.unwrap().1, Some(expected), "{given}");
        }
        read += 1;
    }
    assert!(read > 20);
}

#[test]
fn no_file_of_the_corpus_is_left_out() {
    let Some(corpus) = corpus() else { return };
    for folder in ["exports", "synthetic"] {
        let files = tree(&corpus.join(folder));
        let exports: Vec<_> = files
            .keys()
            .filter_map(|name| name.strip_suffix("/manifest-summary.json"))
            .filter_map(|name| name.rsplit_once('/'))
            .map(|(beside, _)| format!("{beside}/"))
            .collect();
        for name in files.keys() {
            let of_an_export = exports.iter().any(|export| name.starts_with(export));
            let known = [
                // The tests above.
                "manifest-summary.json",
                "manifest-validator-texts.json",
                "incremental-parser-lines.jsonl",
                "all-types-dynamodb.json",
                "book-dynamodb.json",
                "numbers.tsv",
                // Records of streams: the tests of the envelope and of the function.
                "stream-event.json",
                "failure-dest-s3.json",
                "failure-dest-sqs.json",
                "kinesis-payloads.jsonl",
                // What made them.
                "generate.py",
            ];
            let known = known.iter().any(|known| name.ends_with(known));
            assert!(of_an_export || known, "{name} is tried by no test");
        }
    }
}
