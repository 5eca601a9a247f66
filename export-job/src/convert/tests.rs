//! Whole conversions of exports made by the writer and of those in the corpus, on local folders.

mod commit;
mod corpus;
mod ion;
mod parts;
mod refusals;
mod resume;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use arrow::array::AsArray;
use arrow::datatypes::TimestampMillisecondType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;

use super::*;
use crate::export_writer::{ExportSpec, write_full_export};
use crate::format::DataFormat;
use crate::options::NoProgress;
use crate::state::complete_key;

/// 2026-11-18T06:26:40Z.
const EXPORT_TIME: i64 = 1_794_983_200_000;
const LABEL: &str = "20261118T062640Z";

const LAKE_TOML: &str = r#"
database = "shop"
[source]
table = "shop"
partition_key = "PK"
sort_key = "SK"
"#;

const USER_TOML: &str = r#"
entity = "user"
table = "users"
version = 1
[match]
partition_key = "USER#{user_id}"
sort_key = "PROFILE"
[columns]
user_id = "string"
age = "int"
"#;

const ORDER_TOML: &str = r#"
entity = "order"
table = "orders"
version = 1
[match]
partition_key = "USER#{user_id}"
sort_key = "ORDER#{order_id}"
[columns]
user_id = "string"
order_id = "string"
note = "string"
"#;

/// Schemas of a shop; with other `lake.toml` text where given.
fn catalog_with(lake: &str, entities: &[&str]) -> Arc<Catalog> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lake.toml"), lake).unwrap();
    for (index, text) in entities.iter().enumerate() {
        std::fs::write(folder.path().join(format!("e{index}.toml")), text).unwrap();
    }
    Arc::new(Catalog::load(folder.path()).unwrap())
}

fn catalog() -> Arc<Catalog> {
    catalog_with(LAKE_TOML, &[USER_TOML, ORDER_TOML])
}

fn user(number: u32) -> String {
    format!(
        r#"{{"PK":{{"S":"USER#u{number}"}},"SK":{{"S":"PROFILE"}},"age":{{"N":"{}"}},"extra":{{"BOOL":true}}}}"#,
        number % 90
    )
}

fn order(user: u32, number: u32) -> String {
    format!(
        r#"{{"SK":{{"S":"ORDER#o{number}"}},"PK":{{"S":"USER#u{user}"}},"note":{{"S":"n{number}"}}}}"#
    )
}

const STRANGER: &str = r#"{"PK":{"S":"COUNTER#1"},"SK":{"S":"META"},"n":{"N":"1"}}"#;
/// Not an AttributeValue that DynamoDB could have stored.
const POISON: &str = r#"{"PK":{"S":"USER#p"},"SK":{"S":"PROFILE"},"age":{"N":"many"}}"#;

/// 30 users with an order each, a stranger and a poisoned item.
fn items() -> Vec<String> {
    let mut items: Vec<String> = (0..30).flat_map(|n| [user(n), order(n, n)]).collect();
    items.insert(7, STRANGER.to_owned());
    items.insert(40, POISON.to_owned());
    items
}

fn spec() -> ExportSpec {
    ExportSpec {
        prefix: Some("exports/shop".to_owned()),
        data_files: 4,
        ..ExportSpec::new("shop", EXPORT_TIME)
    }
}

/// A bucket with the export of [`items`], a lake, and a folder for spools.
struct Bench {
    folder: TempDir,
    export: PathBuf,
}

impl Bench {
    fn new() -> Self {
        Self::with(&spec(), &items())
    }

    fn with(spec: &ExportSpec, items: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("spool")).unwrap();
        let export = write_full_export(&folder.path().join("bucket"), spec, items).unwrap();
        Self { folder, export }
    }

    fn lake(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    fn options(&self) -> ConvertOptions {
        ConvertOptions {
            workers: NonZeroUsize::new(2),
            spool: Some(self.folder.path().join("spool")),
            ..ConvertOptions::default()
        }
    }

    async fn run(&self, options: &ConvertOptions) -> Result<ConvertReport, ExportError> {
        run_into(&self.export, &self.lake(), &catalog(), options).await
    }

    async fn convert(&self) -> Result<ConvertReport, ExportError> {
        self.run(&self.options()).await
    }

    /// Paths of the export's data files.
    fn data_files(&self) -> Vec<PathBuf> {
        let data = self.export.join("data");
        let mut files: Vec<PathBuf> = std::fs::read_dir(data)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    }

    fn is_complete(&self) -> bool {
        self.lake().join(complete_key(&spec().export_id())).exists()
    }
}

async fn run_into(
    export: &Path,
    lake: &Path,
    catalog: &Arc<Catalog>,
    options: &ConvertOptions,
) -> Result<ConvertReport, ExportError> {
    let source = Source::local(export)?;
    let store = Store::local(lake);
    let secrets = Secrets::default();
    convert(
        &source,
        &store,
        Arc::clone(catalog),
        &secrets,
        options,
        Arc::new(NoProgress),
    )
    .await
}

/// Every file below a folder with its bytes.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Rows of a table's snapshot: (`_pk`, `_sk`, `_at`, `_op`, `_source`), sorted.
fn rows(lake: &Path, table: &str) -> Vec<(String, String, i64, String, String)> {
    let mut rows = Vec::new();
    for path in tree(&lake.join("snapshot").join(table)).keys() {
        let file = std::fs::File::open(lake.join("snapshot").join(table).join(path)).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file)
            .unwrap()
            .build()
            .unwrap()
        {
            let batch = batch.unwrap();
            let text = |name: &str, row: usize| {
                batch
                    .column_by_name(name)
                    .unwrap()
                    .as_string::<i32>()
                    .value(row)
                    .to_owned()
            };
            let at = batch
                .column_by_name("_at")
                .unwrap()
                .as_primitive::<TimestampMillisecondType>();
            for row in 0..batch.num_rows() {
                rows.push((
                    text("_pk", row),
                    text("_sk", row),
                    at.value(row),
                    text("_op", row),
                    text("_source", row),
                ));
            }
        }
    }
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn every_item_becomes_a_row_or_is_in_quarantine() {
    let bench = Bench::new();
    let report = bench.convert().await.unwrap();
    assert_eq!(report.label, LABEL);
    assert_eq!((report.items, report.quarantined), (62, 1));
    assert_eq!(
        (
            report.files.total,
            report.files.converted,
            report.files.resumed
        ),
        (4, 4, 0)
    );
    assert_eq!(report.accounted(), report.items);
    assert_eq!(report.quarantine_reasons["malformed_attribute_value"], 1);
    assert_eq!(report.warnings, [""; 0]);
    let counts = |table: &str| report.tables[table].counts.rows;
    assert_eq!(
        (counts("users"), counts("orders"), counts("unmatched")),
        (30, 30, 1)
    );
    assert_eq!(report.tables["users"].counts.undeclared["extra"], 30);
    assert_eq!(report.tables["users"].objects, 4);

    let users = rows(&bench.lake(), "users");
    let mut expected: Vec<_> = (0..30)
        .map(|n| {
            let (op, source) = ("SNAPSHOT".to_owned(), "full_export".to_owned());
            (
                format!("USER#u{n}"),
                "PROFILE".to_owned(),
                EXPORT_TIME,
                op,
                source,
            )
        })
        .collect();
    expected.sort();
    assert_eq!(users, expected);

    let [quarantined] = report.quarantine_objects.as_slice() else {
        panic!("{report:?}")
    };
    assert!(
        quarantined.starts_with("quarantine/dt=2026-11-18/"),
        "{quarantined}"
    );
    let text = std::fs::read(bench.lake().join(quarantined)).unwrap();
    let entries = dynalake_pipeline::quarantine::from_jsonl(&text).unwrap();
    assert_eq!(
        entries[0].payload,
        format!("{{\"Item\":{POISON}}}").into_bytes()
    );
    // The 41st item goes to the first of four files, as its 11th line.
    assert!(
        entries[0].origin.to_string().ends_with(".json.gz, line 11"),
        "{}",
        entries[0].origin
    );

    let complete = std::fs::read(bench.lake().join(complete_key(&report.export_id))).unwrap();
    let complete: Complete = serde_json::from_slice(&complete).unwrap();
    assert_eq!((complete.items, complete.tables), (62, report.tables));
    assert_eq!(
        std::fs::read_dir(bench.folder.path().join("spool"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_name_table_export_and_data_file() {
    let bench = Bench::new();
    bench.convert().await.unwrap();
    let id = spec().export_id();
    let objects = tree(&bench.lake().join("snapshot/users"));
    assert_eq!(objects.len(), 4);
    for (name, file) in objects.keys().zip(bench.data_files()) {
        let stem = file
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .replace(".json.gz", "");
        assert_eq!(*name, format!("export={LABEL}/{id}-{stem}-00000.parquet"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_table_is_complete_without_objects() {
    let bench = Bench::with(&spec(), &[]);
    let report = bench.convert().await.unwrap();
    assert_eq!(
        (report.items, report.files.total, report.bytes_out),
        (0, 4, 0)
    );
    assert!(bench.is_complete());
    assert!(!bench.lake().join("snapshot").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_found_wherever_they_were_copied() {
    let bench = Bench::new();
    bench.convert().await.unwrap();
    let expected = tree(&bench.lake());
    let id = spec().export_id();
    let place = |name: &str| bench.folder.path().join(name);
    // Without the prefix, under another name, and with the data files beside the manifests' bucket.
    for copy in [
        place(&format!("c1/AWSDynamoDB/{id}")),
        place("c2/my-export"),
    ] {
        std::fs::create_dir_all(copy.join("data")).unwrap();
        for (name, bytes) in tree(&bench.export) {
            std::fs::write(copy.join(name), bytes).unwrap();
        }
        let lake = copy.join("lake");
        run_into(
            &copy.join("manifest-summary.json"),
            &lake,
            &catalog(),
            &bench.options(),
        )
        .await
        .unwrap();
        assert!(tree(&lake) == expected, "{}", copy.display());
    }
    // The manifests alone were moved within the bucket; the data files are where they say.
    let bucket = bench.folder.path().join("bucket");
    let moved = bucket.join("moved");
    std::fs::create_dir_all(&moved).unwrap();
    for (name, bytes) in tree(&bench.export) {
        if name.starts_with("manifest") {
            std::fs::write(moved.join(name), bytes).unwrap();
        }
    }
    let source = Source::in_store(Store::local(&bucket), "moved/");
    let lake = place("lake3");
    let (store, secrets, options) = (Store::local(&lake), Secrets::default(), bench.options());
    convert(
        &source,
        &store,
        catalog(),
        &secrets,
        &options,
        Arc::new(NoProgress),
    )
    .await
    .unwrap();
    assert!(tree(&lake) == expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn checksum_files_have_two_names_and_may_be_absent_with_a_warning() {
    let bench = Bench::new();
    let at = |name: &str| bench.export.join(name);
    std::fs::rename(at("manifest-files.md5"), at("manifest-files.checksum")).unwrap();
    assert_eq!(bench.convert().await.unwrap().warnings, [""; 0]);
    std::fs::remove_file(at("manifest-files.checksum")).unwrap();
    std::fs::remove_file(at("manifest-summary.md5")).unwrap();
    let report = bench.convert().await.unwrap();
    assert_eq!(report.warnings.len(), 2);
    assert!(report.warnings[0].contains("manifest-summary.json` has no checksum file"));
    assert!(report.warnings[1].contains("manifest-files.json` has no checksum file"));
}

#[tokio::test(flavor = "multi_thread")]
async fn little_memory_makes_row_groups_and_small_objects_make_parts() {
    let filler = |number: u32| {
        // Hardly compressible, always the same.
        let mut state = u64::from(number) + 1;
        let mut text = String::new();
        for _ in 0..100 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            write!(text, "{:08x}", state >> 32).unwrap();
        }
        format!(
            r#"{{"PK":{{"S":"USER#u{number}"}},"SK":{{"S":"ORDER#o{number}"}},"note":{{"S":"{text}"}}}}"#
        )
    };
    let items: Vec<String> = (0..8_000).map(filler).collect();
    let one_file = ExportSpec {
        data_files: 1,
        ..spec()
    };
    let bench = Bench::with(&one_file, &items);
    let options = ConvertOptions {
        memory_mb: 1,
        object_mb: 1,
        ..bench.options()
    };
    let report = bench.run(&options).await.unwrap();
    let orders = &report.tables["orders"];
    assert_eq!(orders.counts.rows, 8_000);
    assert!(orders.objects >= 3, "{report:?}");
    let stored = rows(&bench.lake(), "orders");
    assert_eq!(stored.len(), 8_000);
    let mut keys: Vec<_> = stored.iter().map(|row| &row.0).collect();
    keys.dedup();
    assert_eq!(keys.len(), 8_000);
    let again = bench.folder.path().join("again");
    run_into(&bench.export, &again, &catalog(), &options)
        .await
        .unwrap();
    assert!(tree(&bench.lake()) == tree(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_conversions_at_once_write_the_same_lake() {
    let alone = Bench::new();
    alone.convert().await.unwrap();
    let both = Bench::new();
    let (first, second) = tokio::join!(both.convert(), both.convert());
    assert_eq!(first.unwrap().items, second.unwrap().items);
    assert!(tree(&alone.lake()) == tree(&both.lake()));
}
