//! A gap of the stream, repaired by a window.

use std::sync::Arc;

use dynalake_pipeline::current::{AsOf, MergeOptions, current_rows};
use dynalake_pipeline::encode::encode_batch;
use dynalake_pipeline::layout::change_key;
use dynalake_pipeline::pipeline::{Partitioning, Pipeline};
use dynalake_pipeline::record::{ChangeRecord, Operation, Origin, SequenceNumber};

use super::world::*;
use crate::manifest::ExportView;

impl World {
    /// An insert, as the stream tells it.
    async fn insert(&self, items: &Items, pk: &str, sk: &str, at: i64) {
        let key = keys(pk, sk);
        let item = &items[&(pk.to_owned(), sk.to_owned())];
        let mut pipeline = Pipeline::new(
            Arc::clone(&self.catalog),
            &self.secrets,
            Partitioning::ByDay,
        )
        .unwrap();
        let record = ChangeRecord {
            operation: Operation::Insert,
            reason: None,
            at,
            stream: Some("2026-05-01T00:00:00.000"),
            sequence_number: SequenceNumber::parse("100"),
            event_id: Some("e"),
            origin: Origin::Stream,
            keys: Some(key.as_bytes()),
            new_image: Some(item.as_bytes()),
            old_image: None,
            payload: b"",
        };
        pipeline.push(&record).unwrap();
        for table in pipeline.finish().unwrap() {
            let entity = &self.catalog.entities[table.entity];
            let key = change_key(entity, table.day.unwrap(), &table.batch);
            let body = encode_batch(entity, &table.batch).unwrap();
            self.store().put(&key, body.into()).await.unwrap();
        }
    }

    /// Rows of the users now.
    async fn users(&self) -> u64 {
        let spool = tempfile::tempdir().unwrap();
        for folder in ["changes", "baseline"] {
            std::fs::create_dir(spool.path().join(folder)).unwrap();
        }
        let options = MergeOptions {
            memory_bytes: 0,
            spool: spool.path().to_owned(),
        };
        let index = self
            .catalog
            .entities
            .iter()
            .position(|e| e.table == "users");
        let sink = &mut |_| Ok(());
        let (store, now) = (self.store(), AsOf::Now);
        let report = current_rows(&store, &self.catalog, index.unwrap(), now, &options, sink).await;
        report.unwrap().rows
    }
}

/// The stream told of the insert and lost the delete. Both are in the window, whose net effect has no
/// line for the item: rows of a window beside older rows of the stream would leave it there for ever.
/// Only a complete baseline says that it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_came_and_went_within_a_gap_is_gone_once_the_window_is_rolled() {
    let mut items = Items::new();
    put(&mut items, "USER#u1", "PROFILE", r#""age":{"N":"1"}"#);
    let world = World::new();
    world.baseline(T0, &items).await;
    let mut within = items.clone();
    put(&mut within, "USER#ghost", "PROFILE", r#""age":{"N":"2"}"#);
    world
        .insert(&within, "USER#ghost", "PROFILE", T0 + HOUR)
        .await;
    let end = T0 + 3 * HOUR;
    let change = effects(&items, &items, end);
    let id = world
        .window((T0, end), ExportView::NewAndOldImages, &change)
        .await;
    assert_eq!(
        world.users().await,
        2,
        "converted only, a window changes nothing"
    );
    let report = world.roll(&[id]).await.unwrap();
    assert_eq!(world.users().await, 2, "not yet committed either");
    world.commit(&report).await;
    assert_eq!(world.users().await, 1);
}
