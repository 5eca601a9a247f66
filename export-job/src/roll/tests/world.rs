//! A table with a history, its exports, and a lake.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::TimestampMillisecondType;
use dynalake_pipeline::baseline::BaselineRecord;
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::rebuild::rebuild_item;
use dynalake_pipeline::store::Store;
use dynalake_schemas::{Catalog, row_columns};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;

use crate::export_writer::{ExportSpec, NetEffect, write_full_export, write_incremental_export};
use crate::format::DataFormat;
use crate::manifest::ExportView;
use crate::options::NoProgress;
use crate::roll::{RollOptions, RollReport, Unwatched, Watch, roll};
use crate::{ConvertOptions, ConvertReport, ExportError, Source, commit_export, convert};

/// 2026-11-18T11:06:40Z.
pub(super) const T0: i64 = 1_795_000_000_000;
pub(super) const HOUR: i64 = 3_600_000;

const LAKE_TOML: &str =
    "database = \"shop\"\n[source]\ntable = \"shop\"\npartition_key = \"PK\"\nsort_key = \"SK\"\n";
const USER_TOML: &str = "entity = \"user\"\ntable = \"users\"\nversion = 1\n[match]\n\
    partition_key = \"USER#{user_id}\"\nsort_key = \"PROFILE\"\n[columns]\nuser_id = \"string\"\nage = \"int\"\n";
/// Told apart from stock by an attribute alone: an item can move.
const PRODUCT_TOML: &str = "entity = \"product\"\ntable = \"products\"\nversion = 1\n[match]\n\
    partition_key = \"P#{id}\"\nattributes = { kind = \"product\" }\n[columns]\nid = \"string\"\nprice = \"decimal(12,2)\"\n";
const STOCK_TOML: &str = "entity = \"stock\"\ntable = \"stock\"\nversion = 1\n[match]\n\
    partition_key = \"P#{id}\"\nattributes = { kind = \"stock\" }\n[columns]\nid = \"string\"\nprice = \"string\"\n";

/// A catalog of these entity files.
pub(super) fn catalog_of(entities: &[&str]) -> Arc<Catalog> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lake.toml"), LAKE_TOML).unwrap();
    for (index, text) in entities.iter().enumerate() {
        std::fs::write(folder.path().join(format!("e{index}.toml")), text).unwrap();
    }
    Arc::new(Catalog::load(folder.path()).unwrap())
}

pub(super) fn entities() -> Vec<String> {
    [USER_TOML, PRODUCT_TOML, STOCK_TOML]
        .map(str::to_owned)
        .to_vec()
}

pub(super) fn catalog() -> Arc<Catalog> {
    catalog_of(&[USER_TOML, PRODUCT_TOML, STOCK_TOML])
}

/// Keys to items: the source table at an instant.
pub(super) type Items = BTreeMap<(String, String), String>;

/// Sets an item, whose other attributes are given.
pub(super) fn put(items: &mut Items, pk: &str, sk: &str, attributes: &str) {
    let keys = keys(pk, sk);
    let rest = if attributes.is_empty() {
        String::new()
    } else {
        format!(",{attributes}")
    };
    let item = format!("{}{rest}}}", keys.trim_end_matches('}').to_owned() + "}");
    items.insert((pk.to_owned(), sk.to_owned()), item);
}

pub(super) fn delete(items: &mut Items, pk: &str, sk: &str) {
    items.remove(&(pk.to_owned(), sk.to_owned()));
}

pub(super) fn keys(pk: &str, sk: &str) -> String {
    format!(r#"{{"PK":{{"S":"{pk}"}},"SK":{{"S":"{sk}"}}}}"#)
}

/// What became of all items between two instants.
pub(super) fn effects(before: &Items, after: &Items, at: i64) -> Vec<NetEffect> {
    let mut all: Vec<_> = before.keys().chain(after.keys()).collect();
    all.sort();
    all.dedup();
    all.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| NetEffect {
            keys: keys(&key.0, &key.1),
            before: before.get(key).cloned(),
            after: after.get(key).cloned(),
            written_micros: at * 1000,
        })
        .collect()
}

/// A bucket and a lake.
pub(super) struct World {
    folder: TempDir,
    pub(super) catalog: Arc<Catalog>,
    pub(super) secrets: Secrets,
    /// Of the exports.
    pub(super) format: DataFormat,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(catalog())
    }

    pub(super) fn with(catalog: Arc<Catalog>) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            catalog,
            secrets: Secrets::default(),
            format: DataFormat::Json,
        }
    }

    pub(super) fn lake(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    pub(super) fn store(&self) -> Store {
        Store::local(self.lake())
    }

    /// Exports the table and makes it a baseline.
    pub(super) async fn baseline(&self, at: i64, items: &Items) -> BaselineRecord {
        let spec = ExportSpec {
            data_files: 3,
            format: self.format,
            ..ExportSpec::new("shop", at)
        };
        let export = write_full_export(self.folder.path(), &spec, items.values()).unwrap();
        self.convert(&export).await.unwrap();
        let store = self.store();
        commit_export(&store, &spec.export_id(), "me", at)
            .await
            .unwrap()
            .0
    }

    /// Exports and converts a window; gives the export's id.
    pub(super) async fn window(
        &self,
        (from, to): (i64, i64),
        view: ExportView,
        effects: &[NetEffect],
    ) -> String {
        let spec = ExportSpec {
            data_files: 2,
            format: self.format,
            prefix: Some("exports".to_owned()),
            ..ExportSpec::incremental("shop", from, to, view)
        };
        let export = write_incremental_export(self.folder.path(), &spec, effects).unwrap();
        self.convert(&export).await.unwrap();
        spec.export_id()
    }

    pub(super) async fn convert(&self, export: &Path) -> Result<ConvertReport, ExportError> {
        convert(
            &Source::local(export)?,
            &self.store(),
            Arc::clone(&self.catalog),
            &self.secrets,
            &ConvertOptions::default(),
            Arc::new(NoProgress),
        )
        .await
    }

    pub(super) async fn roll(&self, ids: &[String]) -> Result<RollReport, ExportError> {
        self.roll_with(&self.store(), ids, &small(), Arc::new(Unwatched))
            .await
    }

    pub(super) async fn roll_with(
        &self,
        store: &Store,
        ids: &[String],
        options: &RollOptions,
        watch: Arc<dyn Watch>,
    ) -> Result<RollReport, ExportError> {
        roll(store, &self.catalog, &self.secrets, ids, options, watch).await
    }

    pub(super) async fn commit(&self, report: &RollReport) -> BaselineRecord {
        let store = self.store();
        let committed = commit_export(&store, &report.export_id, "me", report.at_ms).await;
        committed.unwrap().0
    }

    /// Rows of all tables of a baseline as `table op at item`, sorted.
    pub(super) fn rows(&self, label: &str) -> Vec<String> {
        let mut rows = Vec::new();
        for (index, entity) in self.catalog.entities.iter().enumerate() {
            let folder = self
                .lake()
                .join(format!("snapshot/{}/export={label}", entity.table));
            for path in tree(&folder).keys() {
                let file = std::fs::File::open(folder.join(path)).unwrap();
                let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
                for batch in reader.build().unwrap() {
                    let batch = batch.unwrap();
                    let text = |column: usize, row: usize| {
                        let column = batch.column(column).as_string::<i32>();
                        column.is_valid(row).then(|| column.value(row).to_owned())
                    };
                    let at = batch.column(row_columns::AT);
                    let at = at.as_primitive::<TimestampMillisecondType>();
                    for row in 0..batch.num_rows() {
                        let null = [
                            row_columns::STREAM,
                            row_columns::SEQ,
                            row_columns::EVENT_ID,
                            row_columns::REASON,
                            row_columns::OLD,
                        ];
                        assert!(null.iter().all(|column| text(*column, row).is_none()));
                        rows.push(format!(
                            "{} {} {} {}",
                            entity.table,
                            text(row_columns::OP, row).unwrap(),
                            at.value(row),
                            rebuild_item(&self.catalog, index, &batch, row).unwrap()
                        ));
                    }
                }
            }
        }
        rows.sort();
        rows
    }
}

/// Little memory, small objects.
pub(super) fn small() -> RollOptions {
    RollOptions {
        memory_bytes: 0,
        row_group_bytes: 1 << 16,
        object_bytes: 5_000,
        ..RollOptions::default()
    }
}

/// Every file below a folder with its bytes.
pub(super) fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
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

/// Copies a folder.
pub(super) fn copy(from: &Path, to: &Path) {
    for (name, bytes) in tree(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Some thousands of products, of which hundreds change, move, come and go in each of two windows;
/// users, a stranger, and users that cannot be read.
pub(super) fn history() -> [Items; 3] {
    let mut items = Items::new();
    let kind = |n: usize| {
        if n.is_multiple_of(3) {
            "stock"
        } else {
            "product"
        }
    };
    let product = |n: usize, price: usize| {
        format!(
            r#""kind":{{"S":"{}"}},"price":{{"N":"{price}.25"}},"note":{{"S":"{}"}}"#,
            kind(n + price),
            format!("{n}").repeat(5)
        )
    };
    for n in 0..3000 {
        put(&mut items, &format!("P#{n:05}"), "X", &product(n, 0));
    }
    for n in 0..20 {
        put(
            &mut items,
            &format!("USER#u{n}"),
            "PROFILE",
            &format!(r#""age":{{"N":"{n}"}}"#),
        );
    }
    put(&mut items, "COUNTER", "META", r#""n":{"N":"1"}"#);
    let first = items.clone();
    for n in (0..3000).step_by(7) {
        put(&mut items, &format!("P#{n:05}"), "X", &product(n, n % 5));
    }
    for n in (1..3000).step_by(11) {
        delete(&mut items, &format!("P#{n:05}"), "X");
    }
    for n in 3000..3200 {
        put(&mut items, &format!("P#{n:05}"), "X", &product(n, 0));
    }
    // Not an AttributeValue that DynamoDB could have stored.
    put(&mut items, "USER#u1", "PROFILE", r#""age":{"N":"many"}"#);
    put(&mut items, "USER#u2", "PROFILE", r#""age":{"N":"many"}"#);
    put(&mut items, "COUNTER", "META", r#""n":{"N":"2"}"#);
    let second = items.clone();
    for n in (0..3200).step_by(5) {
        put(&mut items, &format!("P#{n:05}"), "X", &product(n, n % 4));
    }
    for n in (3000..3200).step_by(3) {
        delete(&mut items, &format!("P#{n:05}"), "X");
    }
    put(&mut items, "USER#u2", "PROFILE", r#""age":{"N":"52"}"#);
    delete(&mut items, "COUNTER", "META");
    [first, second, items]
}
