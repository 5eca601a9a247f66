//! Exports in Amazon Ion become what the same items become from JSON.

use super::refusals::{name, promised, refused, replace_data_file, rewrite};
use super::*;
use crate::export_writer::gzip;
use crate::manifest::{FILES_NAME, SUMMARY_NAME};

fn ion(spec: ExportSpec) -> ExportSpec {
    ExportSpec {
        format: DataFormat::Ion,
        ..spec
    }
}

/// The lake of an export in a format, without what names its data files or holds its lines.
async fn lake_of(spec: &ExportSpec, items: &[String], options: &ConvertOptions) -> Tree {
    let bench = Bench::with(spec, items);
    let options = ConvertOptions {
        spool: bench.options().spool,
        ..options.clone()
    };
    let report = bench.run(&options).await.unwrap();
    assert_eq!(report.accounted(), report.items);
    let mut lake = tree(&bench.lake());
    let record = format!("{}.json", spec.format.suffix());
    lake.retain(|key, _| !key.ends_with(&record) && !key.starts_with("quarantine/"));
    lake
}

type Tree = BTreeMap<String, Vec<u8>>;

#[tokio::test(flavor = "multi_thread")]
async fn the_lake_is_the_same_byte_for_byte() {
    let options = ConvertOptions::default();
    let items = items();
    let from_json = lake_of(&spec(), &items, &options).await;
    let from_ion = lake_of(&ion(spec()), &items, &options).await;
    assert!(from_json.len() > 10);
    assert_eq!(
        from_json.keys().collect::<Vec<_>>(),
        from_ion.keys().collect::<Vec<_>>()
    );
    assert!(from_json == from_ion);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_groups_and_objects_end_at_the_same_items() {
    let note = |number: u32| {
        let text: String = (0..40)
            .map(|n| char::from(b'a' + u8::try_from((number * 31 + n * n) % 26).unwrap()))
            .collect();
        format!(
            r#"{{"PK":{{"S":"USER#u{number}"}},"SK":{{"S":"ORDER#o{number}"}},"note":{{"S":"{}\n"}},"rest":{{"L":[{{"N":"{}"}},{{"NULL":true}}]}}}}"#,
            text.repeat(10),
            number * 100
        )
    };
    let items: Vec<String> = (0..8_000).map(note).collect();
    let options = ConvertOptions {
        workers: NonZeroUsize::new(1),
        memory_mb: 1,
        object_mb: 1,
        ..ConvertOptions::default()
    };
    let spec = ExportSpec {
        data_files: 1,
        ..spec()
    };
    let from_json = lake_of(&spec, &items, &options).await;
    let from_ion = lake_of(&ion(spec), &items, &options).await;
    let groups = |lake: &Tree| {
        let (key, bytes) = lake
            .iter()
            .find(|(key, _)| key.starts_with("snapshot/orders/"))
            .unwrap();
        let bytes = bytes::Bytes::from(bytes.clone());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        (key.clone(), reader.metadata().num_row_groups())
    };
    assert!(groups(&from_json).1 > 2, "{:?}", groups(&from_json));
    assert!(from_json == from_ion);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_quarantined_as_it_stands() {
    let bench = Bench::with(&ion(spec()), &items());
    let file = bench.data_files().remove(1);
    let lines = [
        "$ion_1_0 {Item:{PK:\"USER#1\",SK:\"PROFILE\"}}",
        "",
        "$ion_1_0 {Item:{PK:\"USER#2\",SK:\"PROFILE\",age:2026-11-18T}}",
        "$ion_1_0 {Item:{PK:\"USER#3\",SK:\"PROFILE\",age:[1.,x]}}",
        "$ion_1_0 {Item:{PK:\"USER#4\",SK:\"PROFILE\",PK:\"USER#5\"}}",
        "$ion_1_0 {Record:{Keys:{PK:\"USER#6\",SK:\"PROFILE\"}}}",
        "{\"Item\":{\"PK\":{\"S\":\"USER#7\"},\"SK\":{\"S\":\"PROFILE\"}}}",
        "$ion_1_0 {Item:{PK:\"USER#8\"",
    ];
    let text = format!("{}\n", lines.join("\n"));
    replace_data_file(&bench, &file, &gzip(text.as_bytes()).unwrap(), 7);
    let (_, total) = promised(&bench, &file);
    rewrite(&bench, SUMMARY_NAME, |text| {
        text.replace("\"itemCount\":62", &format!("\"itemCount\":{total}"))
    });
    let report = bench.convert().await.unwrap();
    assert_eq!((report.items, report.quarantined), (total, 6));
    let mut found = Vec::new();
    for key in &report.quarantine_objects {
        let text = std::fs::read(bench.lake().join(key)).unwrap();
        for entry in dynalake_pipeline::quarantine::from_jsonl(&text).unwrap() {
            let origin = entry.origin.to_string();
            let line: usize = origin.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(origin.contains(&name(&file)), "{origin}");
            assert_eq!(entry.payload, lines[line - 1].as_bytes());
            let path = entry.path.unwrap_or_default();
            found.push((line, entry.reason.as_str(), path));
        }
    }
    let expected = [
        (3, "malformed_attribute_value", "Item.age"),
        (4, "malformed_attribute_value", "Item.age[1]"),
        (5, "malformed_attribute_value", "Item.PK"),
        (6, "malformed_record", ""),
        (7, "malformed_ion", ""),
        (8, "malformed_ion", ""),
    ];
    assert_eq!(
        found,
        expected.map(|(line, reason, path)| (line, reason, path.to_owned()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn data_files_in_the_other_format_are_refused() {
    for (spec, other) in [(spec(), "ION"), (ion(spec()), "DYNAMODB_JSON")] {
        let says = spec.format.as_str();
        // The summary says one thing, the names of the data files another.
        let bench = Bench::with(&spec, &items());
        rewrite(&bench, SUMMARY_NAME, |text| text.replace(says, other));
        let message = refused(&bench, RefusalKind::OtherFormat, FILES_NAME).await;
        assert!(message.contains(other), "{message}");
        assert!(message.contains(spec.format.suffix()), "{message}");
        assert!(!bench.lake().exists());
        // The names fit, the content does not.
        let bench = Bench::with(&spec, &items());
        let file = bench.data_files().remove(0);
        let line = if other == "ION" {
            "\n$ion_1_0 {Item:{PK:\"a\",SK:\"b\"}}\n"
        } else {
            "\n {\"Item\":{\"PK\":{\"S\":\"a\"},\"SK\":{\"S\":\"b\"}}}\n"
        };
        let (items, _) = promised(&bench, &file);
        let lines = gzip(line.repeat(items.try_into().unwrap()).as_bytes()).unwrap();
        replace_data_file(&bench, &file, &lines, items);
        let message = refused(&bench, RefusalKind::OtherFormat, &name(&file)).await;
        assert!(
            message.contains(&format!("its first line is in {other}")),
            "{message}"
        );
        assert!(message.contains(says), "{message}");
    }
}
