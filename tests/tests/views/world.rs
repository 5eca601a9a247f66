//! A local lake with two tables that items move between, and the rule once more, in a few lines that
//! share nothing with ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dynalake_pipeline::baseline::BaselineRecord;
use dynalake_pipeline::current::{AsOf, MergeOptions, current_rows};
use dynalake_pipeline::encode::{ObjectWriter, encode_batch};
use dynalake_pipeline::layout::{change_key, export_label, snapshot_key};
use dynalake_pipeline::pipeline::{Partitioning, Pipeline, Secrets};
use dynalake_pipeline::publish::current_baseline;
use dynalake_pipeline::record::{ChangeRecord, Operation, Origin, SequenceNumber};
use dynalake_pipeline::store::Store;
use dynalake_schemas::views::{self, DuckDbLake, duckdb::script};
use dynalake_schemas::{Catalog, Entity, ddl};
use dynalake_tests::athena_on_duckdb;
use serde_json::{Value, json};

/// The margin, as the design has it.
pub const M: i64 = 300_000;

/// Columns of both tables: one of each type, and nested ones.
pub const COLUMNS: &str = r#"
v = "string"
price = "decimal(12,2)"
exact = "decimal(38,18)"
count = "bigint"
ratio = "double"
seen = { type = "timestamp", format = "epoch_ms" }
day = "date"
address = "struct<city:string,geo:struct<lat:double,lon:double>>"
lines = "array<struct<sku:string,qty:int,price:decimal(12,2),photo:binary>>"
tags = "set<string>"
attrs = "map<string,string>"
blob = "binary"
"#;

/// What a change does to an item: the kind it is of before and after it (`None`: it is not there).
#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub key: Key,
    pub stream: &'static str,
    pub number: &'static str,
    pub at: i64,
    pub before: Option<&'static str>,
    pub after: Option<(&'static str, &'static str)>,
}

/// Partition key and sort key.
pub type Key = (&'static str, Option<&'static str>);

/// Values of a baseline's items by kind and key.
type Items = BTreeMap<(&'static str, Key), &'static str>;

/// State of a table: key to value of `v`.
pub type State = BTreeMap<(String, Option<String>), String>;

pub struct World {
    folder: tempfile::TempDir,
    pub catalog: Arc<Catalog>,
    pub store: Store,
    delivered: Vec<Change>,
    baseline: Option<(i64, Items)>,
}

/// Raw text of the item, rich in types; all of it follows from key, kind and value.
fn item(key: (&str, Option<&str>), kind: &str, value: &str) -> String {
    let n = value.len();
    let mut item = json!({
        "PK": {"S": key.0}, "kind": {"S": kind}, "v": {"S": value},
        "price": {"N": format!("{n}.10")},
        "exact": {"N": "12345678901234567890.123456789012345678"},
        "count": {"N": "9007199254740993"},
        "ratio": {"N": "0.5"},
        "seen": {"N": "1777593600123"},
        "day": {"S": "2026-05-01"},
        "address": {"M": {"city": {"S": value}, "geo": {"M": {"lat": {"N": "1.5"}}}}},
        "lines": {"L": [
            {"M": {"sku": {"S": "a'\"b"}, "qty": {"N": "2"}, "price": {"N": "1.25"},
                   "photo": {"B": "/wA="}}},
            {"NULL": true},
        ]},
        "tags": {"SS": ["x", value]},
        "attrs": {"M": {"colour": {"S": value}}},
        "blob": {"B": "/wBh"},
        "extra": {"S": "in _rest"},
    });
    if let Some(sort_key) = key.1 {
        item["SK"] = json!({"S": sort_key});
    }
    item.to_string()
}

impl World {
    /// An empty lake in a folder whose name is hard to spell; with or without a sort key.
    pub fn new(sort_key: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let catalog = catalog(&folder.path().join("schemas"), sort_key, COLUMNS);
        let store = Store::local(folder.path().join("dt=2000-01-01/it's [a] lake*"));
        Self {
            folder,
            catalog: Arc::new(catalog),
            store,
            delivered: vec![],
            baseline: None,
        }
    }

    /// Goes on with other columns.
    pub fn with_columns(&mut self, columns: &str) {
        let schemas = self.folder.path().join("schemas");
        self.catalog = Arc::new(catalog(&schemas, true, columns));
    }

    pub fn root(&self) -> PathBuf {
        PathBuf::from(self.store.address(""))
    }

    fn pipeline(&self, partitioning: Partitioning) -> Pipeline {
        Pipeline::new(Arc::clone(&self.catalog), &Secrets::default(), partitioning).unwrap()
    }

    /// Changes as one invocation gets them.
    pub async fn deliver(&mut self, changes: &[Change]) {
        let mut pipeline = self.pipeline(Partitioning::ByDay);
        for change in changes {
            let mut keys = json!({"PK": {"S": change.key.0}});
            if let Some(sort_key) = change.key.1 {
                keys["SK"] = json!({"S": sort_key});
            }
            let keys = keys.to_string();
            let new = change
                .after
                .map(|(kind, value)| item(change.key, kind, value));
            let old = change.before.map(|kind| item(change.key, kind, "before"));
            let record = ChangeRecord {
                operation: match (change.before, change.after) {
                    (None, _) => Operation::Insert,
                    (_, Some(_)) => Operation::Modify,
                    (_, None) => Operation::Remove,
                },
                reason: None,
                at: change.at,
                stream: Some(change.stream),
                sequence_number: SequenceNumber::parse(change.number),
                event_id: Some(change.number),
                origin: Origin::Stream,
                keys: Some(keys.as_bytes()),
                new_image: new.as_ref().map(String::as_bytes),
                old_image: old.as_ref().map(String::as_bytes),
                payload: b"",
            };
            pipeline.push(&record).unwrap();
        }
        for table in pipeline.finish().unwrap() {
            let entity = &self.catalog.entities[table.entity];
            let key = change_key(entity, table.day.unwrap(), &table.batch);
            let body = encode_batch(entity, &table.batch).unwrap();
            self.store.put(&key, body.into()).await.unwrap();
        }
        self.delivered.extend_from_slice(changes);
    }

    /// A committed baseline with these items (key, kind, value) that readers take.
    pub async fn commit(&mut self, at: i64, items: &[(Key, &'static str, &'static str)]) {
        self.commit_beside(at, items).await;
        let items = items
            .iter()
            .map(|(key, kind, value)| ((*kind, *key), *value));
        self.baseline = Some((at, items.collect()));
    }

    /// A committed baseline that is not the newest.
    pub async fn commit_beside(&self, at: i64, items: &[(Key, &'static str, &'static str)]) {
        let label = export_label(at).unwrap();
        let mut pipeline = self.pipeline(Partitioning::Whole);
        for (key, kind, value) in items {
            let item = item(*key, kind, value);
            let record = ChangeRecord {
                operation: Operation::Snapshot,
                reason: None,
                at,
                stream: None,
                sequence_number: None,
                event_id: None,
                origin: Origin::FullExport,
                keys: None,
                new_image: Some(item.as_bytes()),
                old_image: None,
                payload: b"",
            };
            pipeline.push(&record).unwrap();
        }
        for table in pipeline.finish().unwrap() {
            let entity = &self.catalog.entities[table.entity];
            let key = snapshot_key(&entity.table, &label, "x", 0);
            let body = encode_batch(entity, &table.batch).unwrap();
            self.store.put(&key, body.into()).await.unwrap();
        }
        let record = json!({
            "version": 1, "label": label, "at_ms": at, "kind": "full_export", "export_id": "x",
            "table_arn": "arn", "tables": {}, "committed_at_ms": at,
        });
        let record: BaselineRecord = serde_json::from_value(record).unwrap();
        let body = serde_json::to_vec(&record).unwrap();
        let key = format!("state/baselines/{label}.json");
        self.store.put(&key, body.into()).await.unwrap();
    }

    /// The rule: what the table of this kind holds.
    pub fn expected(&self, kind: &str) -> State {
        let mut decided: BTreeMap<Key, Vec<(Change, Option<&str>)>> = BTreeMap::new();
        for change in &self.delivered {
            match (change.before, change.after) {
                (_, Some((after, value))) if after == kind => {
                    decided
                        .entry(change.key)
                        .or_default()
                        .push((*change, Some(value)));
                }
                (Some(before), _) if before == kind => {
                    decided.entry(change.key).or_default().push((*change, None));
                }
                _ => {}
            }
        }
        let mut state = State::new();
        if let Some((_, items)) = &self.baseline {
            for ((of, key), value) in items {
                if *of == kind {
                    state.insert(owned(*key), (*value).to_owned());
                }
            }
        }
        for (key, changes) in decided {
            let latest = changes.iter().map(|(change, _)| change.at).max().unwrap();
            if self
                .baseline
                .as_ref()
                .is_some_and(|(at, _)| latest < at - M)
            {
                continue;
            }
            // More digits, greater number: no number has zeros in front.
            let position = |c: &Change| (c.stream, c.number.len(), c.number);
            let newest = changes
                .iter()
                .max_by_key(|(change, _)| position(change))
                .unwrap();
            match newest.1 {
                Some(value) => state.insert(owned(key), value.to_owned()),
                None => state.remove(&owned(key)),
            };
        }
        state
    }

    /// Distinct changes of the table of this kind, with their latest time.
    pub fn expected_history(
        &self,
        kind: &str,
    ) -> BTreeMap<(String, Option<String>, String, String), i64> {
        let mut history = BTreeMap::new();
        for change in &self.delivered {
            let touches =
                change.before == Some(kind) || change.after.is_some_and(|(k, _)| k == kind);
            if touches {
                let (pk, sk) = owned(change.key);
                let position = (change.stream.to_owned(), format!("{:0>40}", change.number));
                let at = history
                    .entry((pk, sk, position.0, position.1))
                    .or_insert(change.at);
                *at = change.at.max(*at);
            }
        }
        history
    }

    /// `lake.sql`.
    pub async fn script(&self) -> String {
        let baseline = current_baseline(&self.store).await.unwrap();
        let lake = DuckDbLake {
            root: self.root().to_str().unwrap().to_owned(),
            s3: None,
        };
        script(&self.catalog, baseline.as_ref(), &lake)
    }

    /// Answers of Athena's views.
    pub async fn athena(&self, queries: &[(&str, &str)]) -> BTreeMap<String, Vec<Value>> {
        let baseline = current_baseline(&self.store).await.unwrap();
        let database = &self.catalog.database;
        let views: Vec<String> = views::athena(&self.catalog, baseline.as_ref())
            .iter()
            .map(|view| view.create_statement(Some(database)))
            .collect();
        let tables = ddl::create_tables(&self.catalog, "s3://lake");
        athena_on_duckdb(&tables, &self.root(), &views, queries)
    }

    pub fn entity(&self, table: &str) -> (usize, &Entity) {
        let mut entities = self.catalog.entities.iter().enumerate();
        entities.find(|(_, entity)| entity.table == table).unwrap()
    }

    /// Rows of the rule in Rust, in a Parquet file beside the lake.
    pub async fn current(&self, table: &str) -> PathBuf {
        let (index, entity) = self.entity(table);
        let mut writer = ObjectWriter::new(entity, Vec::new()).unwrap();
        let options = MergeOptions {
            memory_bytes: 64 << 20,
            spool: self.folder.path().join("spool"),
        };
        let mut sink = |batch| {
            writer.write(&batch).unwrap();
            Ok(())
        };
        current_rows(
            &self.store,
            &self.catalog,
            index,
            AsOf::Now,
            &options,
            &mut sink,
        )
        .await
        .unwrap();
        let path = self.folder.path().join(format!("current-{table}.parquet"));
        std::fs::write(&path, writer.finish().unwrap().0).unwrap();
        path
    }
}

fn owned(key: Key) -> (String, Option<String>) {
    (key.0.to_owned(), key.1.map(str::to_owned))
}

fn catalog(folder: &Path, sort_key: bool, columns: &str) -> Catalog {
    std::fs::create_dir_all(folder).unwrap();
    let sort_key = if sort_key { "sort_key = \"SK\"" } else { "" };
    let lake = format!("database = \"lake\"\n[source]\npartition_key = \"PK\"\n{sort_key}\n");
    std::fs::write(folder.join("lake.toml"), lake).unwrap();
    for kind in ["thing", "other"] {
        let text = format!(
            "entity = \"{kind}\"\ntable = \"{kind}s\"\nversion = 1\n\
             [match]\nattributes = {{ kind = \"{kind}\" }}\n[columns]\n{columns}"
        );
        std::fs::write(folder.join(format!("{kind}.toml")), text).unwrap();
    }
    Catalog::load(folder).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Rows of `SELECT _pk, _sk, v` as a state; no key may come twice.
pub fn state(rows: &[Value]) -> State {
    let text = |row: &Value, name: &str| row[name].as_str().map(str::to_owned);
    let mut state = State::new();
    for row in rows {
        let key = (text(row, "_pk").unwrap(), text(row, "_sk"));
        let twice = state.insert(key, text(row, "v").unwrap_or_default());
        assert_eq!(twice, None, "a key comes twice: {row}");
    }
    state
}
