//! The rule over real files: every trap of the design has a case here.

use std::sync::Arc;

use arrow::array::AsArray;
use dynalake_schemas::Catalog;

use super::{AsOf, MergeOptions, current_rows};
use crate::baseline::BaselineRecord;
use crate::encode::encode_batch;
use crate::layout::{change_key, export_label, snapshot_key};
use crate::pipeline::{Partitioning, Pipeline, Secrets};
use crate::record::{ChangeRecord, Operation, Origin, SequenceNumber};
use crate::store::Store;
use crate::time::DAY_MS;

/// An instant in the middle of a day.
pub(crate) const NOON: i64 = 20_000 * DAY_MS + DAY_MS / 2;
const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;

/// A lake with one table, `things`, whose items are told apart by an attribute.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) catalog: Arc<Catalog>,
}

/// One change: key, sequence number, time, and the new value (`None` is a delete).
pub(crate) type Change<'a> = (&'a str, &'a str, i64, Option<&'a str>);

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let schemas = folder.path().join("schemas");
        std::fs::create_dir_all(&schemas).unwrap();
        let files = [
            (
                "lake.toml",
                "database = \"t\"\n[source]\npartition_key = \"PK\"\n",
            ),
            (
                "thing.toml",
                "entity = \"thing\"\ntable = \"things\"\nversion = 1\n[match]\nattributes = { kind = \"thing\" }\n[columns]\nv = \"string\"\n",
            ),
        ];
        for (name, text) in files {
            std::fs::write(schemas.join(name), text).unwrap();
        }
        let catalog = Arc::new(Catalog::load(&schemas).unwrap_or_else(|e| panic!("{e}")));
        let store = Store::local(folder.path().join("lake"));
        Self {
            folder,
            store,
            catalog,
        }
    }

    fn pipeline(&self, partitioning: Partitioning) -> Pipeline {
        Pipeline::new(Arc::clone(&self.catalog), &Secrets::default(), partitioning).unwrap()
    }

    /// Changes as the stream delivers them, in one event.
    pub(crate) async fn changes(&self, changes: &[Change<'_>]) {
        self.changes_of("2026-05-01T00:00:00.000", changes).await;
    }

    async fn changes_of(&self, stream: &str, changes: &[Change<'_>]) {
        let mut pipeline = self.pipeline(Partitioning::ByDay);
        for (key, number, at, value) in changes {
            let keys = format!(r#"{{"PK":{{"S":"{key}"}}}}"#);
            let item = |value: &str| {
                format!(r#"{{"PK":{{"S":"{key}"}},"kind":{{"S":"thing"}},"v":{{"S":"{value}"}}}}"#)
            };
            let (new, old) = (value.map(item), item("before"));
            let record = ChangeRecord {
                operation: if new.is_some() {
                    Operation::Modify
                } else {
                    Operation::Remove
                },
                reason: None,
                at: *at,
                stream: Some(stream),
                sequence_number: SequenceNumber::parse(number),
                event_id: Some(number),
                origin: Origin::Stream,
                keys: Some(keys.as_bytes()),
                new_image: new.as_ref().map(String::as_bytes),
                old_image: Some(old.as_bytes()),
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
    }

    /// A committed baseline with these items, in several objects.
    pub(crate) async fn baseline(&self, at: i64, items: &[(&str, &str)]) {
        let label = export_label(at).unwrap();
        for (part, items) in items.chunks(2).enumerate() {
            let mut pipeline = self.pipeline(Partitioning::Whole);
            for (key, value) in items {
                let item = format!(
                    r#"{{"PK":{{"S":"{key}"}},"kind":{{"S":"thing"}},"v":{{"S":"{value}"}}}}"#
                );
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
                let part = u32::try_from(part).unwrap();
                let key = snapshot_key(&entity.table, &label, "x", part);
                let body = encode_batch(entity, &table.batch).unwrap();
                self.store.put(&key, body.into()).await.unwrap();
            }
        }
        let record = serde_json::json!({
            "version": 1, "label": label, "at_ms": at, "kind": "full_export", "export_id": "x",
            "table_arn": "arn", "tables": {"things": {"rows": items.len(), "objects": 1, "bytes": 1}},
            "committed_at_ms": at,
        });
        let record: BaselineRecord = serde_json::from_value(record).unwrap();
        let body = serde_json::to_vec(&record).unwrap();
        self.store
            .put(&format!("state/baselines/{label}.json"), body.into())
            .await
            .unwrap();
    }

    /// `key=value` of every row.
    async fn state(&self, as_of: AsOf) -> String {
        self.state_in(as_of, 64 << 20).await
    }

    async fn state_in(&self, as_of: AsOf, memory_bytes: usize) -> String {
        let options = MergeOptions {
            memory_bytes,
            spool: self.folder.path().join("spool"),
        };
        let mut found = Vec::new();
        let mut sink = |batch: arrow::array::RecordBatch| {
            let text = |name: &str| batch[name].as_string::<i32>().clone();
            let (keys, values) = (text("_pk"), text("v"));
            found.extend(
                (0..batch.num_rows()).map(|r| format!("{}={}", keys.value(r), values.value(r))),
            );
            Ok(())
        };
        let entity = self
            .catalog
            .entities
            .iter()
            .position(|e| e.table == "things")
            .unwrap();
        let report = current_rows(
            &self.store,
            &self.catalog,
            entity,
            as_of,
            &options,
            &mut sink,
        )
        .await
        .unwrap();
        assert_eq!(report.rows, u64::try_from(found.len()).unwrap());
        assert!(found.is_sorted(), "{found:?}");
        found.join(" ")
    }

    async fn now(&self) -> String {
        self.state(AsOf::Now).await
    }
}

#[tokio::test]
async fn without_a_baseline_the_newest_change_of_each_key_counts() {
    let world = World::new();
    world
        .changes(&[("a", "1", NOON, Some("1")), ("b", "2", NOON, Some("1"))])
        .await;
    world
        .changes(&[("a", "3", NOON, Some("2")), ("b", "4", NOON, None)])
        .await;
    assert_eq!(world.now().await, "a=2");
}

#[tokio::test]
async fn sequence_numbers_compare_as_numbers() {
    let world = World::new();
    world
        .changes(&[("a", "10000000000000000000000", NOON, Some("new"))])
        .await;
    world
        .changes(&[("a", "9999999999999999999999", NOON, Some("old"))])
        .await;
    assert_eq!(world.now().await, "a=new");
}

#[tokio::test]
async fn a_gap_is_repaired_by_the_next_export() {
    // The change to 2 was lost; the export saw it. An old row must not beat the baseline for ever.
    let world = World::new();
    world
        .changes(&[("a", "1", NOON - 60 * MINUTE, Some("1"))])
        .await;
    world.baseline(NOON, &[("a", "2")]).await;
    assert_eq!(world.now().await, "a=2");
}

#[tokio::test]
async fn a_change_just_before_the_export_counts_by_the_margin() {
    // The clocks of stream and export differ: the export of NOON did not see this change.
    let world = World::new();
    world.baseline(NOON, &[("a", "1"), ("b", "1")]).await;
    world
        .changes(&[
            ("a", "1", NOON - 4 * MINUTE, Some("2")),
            ("b", "2", NOON - SECOND, None),
        ])
        .await;
    assert_eq!(world.now().await, "a=2");
}

#[tokio::test]
async fn what_the_export_does_not_have_is_absent() {
    // Insert seen, delete lost, export without the key: no ghost.
    let world = World::new();
    world
        .changes(&[("ghost", "1", NOON - 60 * MINUTE, Some("1"))])
        .await;
    world.baseline(NOON, &[("a", "1")]).await;
    assert_eq!(world.now().await, "a=1");
}

#[tokio::test]
async fn a_deleted_item_stays_deleted_when_a_backfill_lands_late() {
    let world = World::new();
    world.changes(&[("a", "5", NOON + MINUTE, None)]).await;
    world.baseline(NOON, &[("a", "1"), ("b", "1")]).await;
    assert_eq!(world.now().await, "b=1");
}

#[tokio::test]
async fn the_newest_row_may_be_dated_before_the_latest() {
    // Newest by number a little earlier than the margin, and on the day before.
    let midnight = 20_000 * DAY_MS;
    let baseline = midnight + 5 * MINUTE + SECOND;
    let world = World::new();
    world
        .changes(&[("a", "1", midnight + 2 * SECOND, Some("older"))])
        .await;
    world
        .changes(&[("a", "2", midnight - SECOND, Some("newer"))])
        .await;
    world.baseline(baseline, &[("a", "0")]).await;
    assert_eq!(world.now().await, "a=newer");
}

#[tokio::test]
async fn a_moved_item_is_in_one_table_only() {
    let world = World::new();
    world.baseline(NOON, &[("a", "1")]).await;
    let mut pipeline = world.pipeline(Partitioning::ByDay);
    let old = r#"{"PK":{"S":"a"},"kind":{"S":"thing"}}"#;
    let new = r#"{"PK":{"S":"a"},"kind":{"S":"other"}}"#;
    let record = ChangeRecord {
        operation: Operation::Modify,
        reason: None,
        at: NOON + MINUTE,
        stream: Some("s"),
        sequence_number: SequenceNumber::parse("1"),
        event_id: None,
        origin: Origin::Stream,
        keys: Some(br#"{"PK":{"S":"a"}}"#),
        new_image: Some(new.as_bytes()),
        old_image: Some(old.as_bytes()),
        payload: b"",
    };
    assert_eq!(pipeline.push(&record), Ok(2));
    for table in pipeline.finish().unwrap() {
        let entity = &world.catalog.entities[table.entity];
        let key = change_key(entity, table.day.unwrap(), &table.batch);
        world
            .store
            .put(&key, encode_batch(entity, &table.batch).unwrap().into())
            .await
            .unwrap();
    }
    assert_eq!(world.now().await, "");
}

#[tokio::test]
async fn a_new_stream_follows_the_old_one_whatever_its_numbers() {
    let world = World::new();
    world
        .changes_of(
            "2026-05-01T00:00:00.000",
            &[("a", "900", NOON, Some("old"))],
        )
        .await;
    world
        .changes_of("2026-06-01T00:00:00.000", &[("a", "1", NOON, Some("new"))])
        .await;
    assert_eq!(world.now().await, "a=new");
}

#[tokio::test]
async fn duplicates_and_other_cuts_change_nothing() {
    let world = World::new();
    let all: [Change<'_>; 3] = [
        ("a", "1", NOON, Some("1")),
        ("b", "2", NOON, Some("1")),
        ("a", "3", NOON, Some("2")),
    ];
    world.changes(&all).await;
    world.changes(&all[1..]).await;
    world.changes(&all[..2]).await;
    assert_eq!(world.now().await, "a=2 b=1");
}

#[tokio::test]
async fn the_past_is_the_newest_baseline_before_it_and_the_changes_up_to_it() {
    let world = World::new();
    world.baseline(NOON, &[("a", "1")]).await;
    world
        .changes(&[
            ("a", "1", NOON + MINUTE, Some("2")),
            ("b", "2", NOON + 3 * MINUTE, Some("1")),
        ])
        .await;
    world
        .baseline(NOON + 60 * MINUTE, &[("a", "2"), ("b", "1"), ("c", "1")])
        .await;
    assert_eq!(world.state(AsOf::Time(NOON)).await, "a=1");
    assert_eq!(world.state(AsOf::Time(NOON + 2 * MINUTE)).await, "a=2");
    assert_eq!(world.state(AsOf::Time(NOON + 10 * MINUTE)).await, "a=2 b=1");
    assert_eq!(world.now().await, "a=2 b=1 c=1");
}

#[tokio::test]
async fn many_runs_are_merged_in_passes_within_little_memory() {
    let world = World::new();
    let keys: Vec<String> = (0..40).map(|n| format!("k{n:03}")).collect();
    for (round, number) in (0..25).zip(1000..) {
        // Every event touches every key; each is an object of its own.
        let numbers: Vec<String> = keys
            .iter()
            .map(|k| format!("{number}{}", k.trim_start_matches('k')))
            .collect();
        let value = round.to_string();
        let changes: Vec<Change<'_>> = keys
            .iter()
            .zip(&numbers)
            .map(|(k, n)| (k.as_str(), n.as_str(), NOON, Some(value.as_str())))
            .collect();
        world.changes(&changes).await;
    }
    let expected: Vec<String> = keys.iter().map(|key| format!("{key}=24")).collect();
    assert_eq!(world.state_in(AsOf::Now, 0).await, expected.join(" "));
    assert_eq!(world.now().await, expected.join(" "));
}
