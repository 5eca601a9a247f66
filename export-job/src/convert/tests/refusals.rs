//! What is wrong with an export is said with the file's name, and nothing is published.

use super::*;
use crate::export_writer::{gzip, manifest_line, write_manifest};
use crate::manifest::{FILES_NAME, SUMMARY_NAME};

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Rewrites a manifest, with a checksum that fits.
pub(super) fn rewrite(bench: &Bench, manifest: &str, change: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(bench.export.join(manifest)).unwrap();
    write_manifest(&bench.export, manifest, change(text).as_bytes()).unwrap();
}

/// Replaces a data file by other bytes and says so in the manifest.
pub(super) fn replace_data_file(bench: &Bench, path: &Path, bytes: &[u8], items: u64) {
    std::fs::write(path, bytes).unwrap();
    rewrite(bench, FILES_NAME, |text| {
        let line = |line: &str| {
            if !line.contains(&name(path)) {
                return format!("{line}\n");
            }
            let key = format!("{}/data/{}", spec().folder_key(), name(path));
            format!("{}\n", manifest_line(bytes, items, &key).unwrap())
        };
        text.lines().map(line).collect()
    });
}

/// Items that the manifest promises: of one data file, and of all together.
pub(super) fn promised(bench: &Bench, path: &Path) -> (u64, u64) {
    let text = std::fs::read(bench.export.join(FILES_NAME)).unwrap();
    let files = crate::manifest::parse_files(&text, FILES_NAME).unwrap();
    let of_file = files
        .iter()
        .find(|file| file.name == name(path))
        .unwrap()
        .item_count;
    (of_file, files.iter().map(|file| file.item_count).sum())
}

pub(super) async fn refused(bench: &Bench, kind: RefusalKind, file: &str) -> String {
    let error = bench.convert().await.unwrap_err();
    let message = error.to_string();
    assert_eq!(error.refusal(), Some(kind), "{message}");
    assert!(message.contains(file), "{message} should name {file}");
    assert!(!bench.is_complete(), "{message}");
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_file_that_differs_from_its_md5() {
    let bench = Bench::new();
    let file = bench.data_files().remove(2);
    let other = gzip(format!("{{\"Item\":{STRANGER}}}\n").as_bytes()).unwrap();
    std::fs::write(&file, other).unwrap();
    refused(&bench, RefusalKind::Checksum, &name(&file)).await;
    // Nothing of that file is in the lake, not even its good lines.
    let stem = name(&file).replace(".json.gz", "");
    assert!(tree(&bench.lake()).keys().all(|key| !key.contains(&stem)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_data_file_even_if_the_manifest_knows_no_better() {
    let bench = Bench::new();
    let file = bench.data_files().remove(0);
    let (items, _) = promised(&bench, &file);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let message = refused(&bench, RefusalKind::DamagedFile, &name(&file)).await;
    assert!(message.contains("ends too early"), "{message}");
    replace_data_file(&bench, &file, &whole[..whole.len() - 4], items);
    refused(&bench, RefusalKind::DamagedFile, &name(&file)).await;
    replace_data_file(&bench, &file, b"{\"Item\":{}}\n", items);
    refused(&bench, RefusalKind::DamagedFile, &name(&file)).await;
    replace_data_file(&bench, &file, b"", items);
    refused(&bench, RefusalKind::DamagedFile, &name(&file)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_file_with_another_number_of_items() {
    for difference in [-1, 1] {
        let bench = Bench::new();
        let file = bench.data_files().remove(0);
        let (items, _) = promised(&bench, &file);
        let lines = items.checked_add_signed(difference).unwrap();
        let line = |n: u64| {
            format!(
                "{{\"Item\":{}}}
",
                user(n.try_into().unwrap())
            )
        };
        let text = (0..lines).map(line).collect::<Vec<_>>().concat();
        replace_data_file(&bench, &file, &gzip(text.as_bytes()).unwrap(), items);
        let message = refused(&bench, RefusalKind::CountMismatch, &name(&file)).await;
        let expected = format!("holds {lines} items but the manifest says {items}");
        assert!(message.contains(&expected), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_before_anything_is_written() {
    let bench = Bench::new();
    let file = bench.data_files().remove(3);
    std::fs::remove_file(&file).unwrap();
    refused(&bench, RefusalKind::MissingFile, &name(&file)).await;
    std::fs::remove_file(bench.export.join(FILES_NAME)).unwrap();
    refused(&bench, RefusalKind::MissingFile, FILES_NAME).await;
    std::fs::remove_file(bench.export.join(SUMMARY_NAME)).unwrap();
    refused(&bench, RefusalKind::NoExport, SUMMARY_NAME).await;
    assert!(!bench.lake().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_that_differ_from_checksum_or_total() {
    let bench = Bench::new();
    rewrite(&bench, SUMMARY_NAME, |text| {
        text.replace("\"itemCount\":62", "\"itemCount\":63")
    });
    refused(&bench, RefusalKind::CountMismatch, FILES_NAME).await;
    for manifest in [FILES_NAME, SUMMARY_NAME] {
        let bench = Bench::new();
        let path = bench.export.join(manifest);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text} ")).unwrap();
        refused(&bench, RefusalKind::Checksum, manifest).await;
        assert!(!bench.lake().exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_versions_and_other_tables() {
    let summary = |from: &'static str, to: &'static str| {
        let bench = Bench::new();
        rewrite(&bench, SUMMARY_NAME, |text| text.replace(from, to));
        bench
    };
    let bench = summary("2020-06-30", "2029-06-30");
    refused(&bench, RefusalKind::UnknownVersion, SUMMARY_NAME).await;
    let bench = summary("table/shop\"", "table/other\"");
    let message = refused(&bench, RefusalKind::OtherTable, SUMMARY_NAME).await;
    assert!(
        message.contains("`other`") && message.contains("`shop`"),
        "{message}"
    );
    let any_table = catalog_with(&LAKE_TOML.replace("table = \"shop\"\n", ""), &[USER_TOML]);
    run_into(&bench.export, &bench.lake(), &any_table, &bench.options())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_no_item_are_quarantined_with_their_number() {
    let bench = Bench::new();
    let file = bench.data_files().remove(1);
    let good = "{\"Item\":{\"PK\":{\"S\":\"USER#1\"},\"SK\":{\"S\":\"PROFILE\"}}}\n";
    let lines = [
        good.as_bytes(),
        b"not json\n{\"Item\":{}}\n{\"Keys\":{}}\n\xff\x01",
    ]
    .concat();
    replace_data_file(&bench, &file, &gzip(&lines).unwrap(), 5);
    let (_, total) = promised(&bench, &file);
    rewrite(&bench, SUMMARY_NAME, |text| {
        text.replace("\"itemCount\":62", &format!("\"itemCount\":{total}"))
    });
    let report = bench.convert().await.unwrap();
    assert_eq!((report.items, report.accounted()), (total, total));
    let mut found = Vec::new();
    for key in &report.quarantine_objects {
        let text = std::fs::read(bench.lake().join(key)).unwrap();
        for entry in dynalake_pipeline::quarantine::from_jsonl(&text).unwrap() {
            let origin = entry.origin.to_string();
            if origin.contains(&name(&file)) {
                found.push((
                    origin.rsplit(' ').next().unwrap().to_owned(),
                    entry.reason.as_str(),
                ));
            }
        }
    }
    let expected = [
        ("2", "malformed_json"),
        ("3", "bad_key"),
        ("4", "malformed_record"),
        ("5", "malformed_json"),
    ];
    assert_eq!(
        found,
        expected.map(|(line, reason)| (line.to_owned(), reason))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_export_of_the_same_second() {
    let bench = Bench::new();
    bench.convert().await.unwrap();
    let other = ExportSpec::new("shop", EXPORT_TIME + 1);
    let bucket = bench.folder.path().join("bucket");
    let export = write_full_export(&bucket, &other, [STRANGER]).unwrap();
    let before = tree(&bench.lake());
    let error = run_into(&export, &bench.lake(), &catalog(), &bench.options())
        .await
        .unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::SameSecond), "{error}");
    assert!(error.to_string().contains(LABEL), "{error}");
    assert!(tree(&bench.lake()) == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_was_never_finished_makes_way_when_told() {
    let bench = Bench::new();
    let stopping = ConvertOptions {
        stop_after_puts: Some(9),
        ..bench.options()
    };
    assert!(matches!(
        bench.run(&stopping).await,
        Err(ExportError::Stopped)
    ));
    let other = ExportSpec::new("shop", EXPORT_TIME + 1);
    let bucket = bench.folder.path().join("bucket");
    let export = write_full_export(&bucket, &other, [STRANGER]).unwrap();
    let lake = bench.lake();
    let error = run_into(&export, &lake, &catalog(), &bench.options())
        .await
        .unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::SameSecond), "{error}");
    let replacing = ConvertOptions {
        replace: true,
        ..bench.options()
    };
    run_into(&export, &lake, &catalog(), &replacing)
        .await
        .unwrap();
    let fresh = bench.folder.path().join("fresh");
    run_into(&export, &fresh, &catalog(), &bench.options())
        .await
        .unwrap();
    let rows_and_state = |lake: &Path| {
        let mut tree = tree(lake);
        tree.retain(|key, _| !key.starts_with("quarantine/"));
        tree
    };
    assert!(rows_and_state(&lake) == rows_and_state(&fresh));
    // Finished, it does not make way.
    let error = bench.run(&replacing).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::SameSecond), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_without_its_secret_before_anything_is_read() {
    let bench = Bench::new();
    let email = "email = { type = \"string\", transform = \"hmac_sha256\" }";
    let catalog = catalog_with(LAKE_TOML, &[&format!("{USER_TOML}{email}\n")]);
    let error = run_into(&bench.export, &bench.lake(), &catalog, &bench.options())
        .await
        .unwrap_err();
    assert!(matches!(error, ExportError::Setup(_)), "{error}");
    assert!(!bench.lake().exists());
}
