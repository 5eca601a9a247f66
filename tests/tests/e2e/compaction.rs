//! Compaction and commits on a real S3 server, and what DuckDB finds before, during and after.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dynalake_pipeline::baseline::{self, BaselineError, BaselineKind, BaselineRecord, TableCounts};
use dynalake_pipeline::compact::{CompactOptions, Unwatched, compact};
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::record::Origin;
use dynalake_pipeline::store::Store;
use dynalake_pipeline::stream::{Context, handle};
use dynalake_schemas::Catalog;
use dynalake_schemas::views::{DuckDbLake, duckdb as views};
use dynalake_tests::{duckdb, duckdb_available, seaweed};
use serde_json::Value;

use crate::event::{self, Change, MORNING, insert, modify, remove, user};
use crate::world::{SECRET, World};

const DAY_MS: i64 = 86_400_000;
/// The day after the changes.
const NOW: i64 = MORNING * 1000 + DAY_MS;

fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::load(&World::schemas()).unwrap())
}

/// Delivers batches of changes, some of them twice and cut otherwise, through the function's code.
async fn deliver(store: &Store) {
    let secrets = Secrets {
        hmac_key: Some(SECRET.as_bytes().to_vec()),
    };
    let context = Context::new(catalog(), secrets, store.clone()).unwrap();
    let mut changes: Vec<Change> = Vec::new();
    for n in 0..12 {
        changes.push(insert(3 * n, user(n, "first")));
        changes.push(modify(3 * n + 1, user(n, "first"), user(n, "second")));
        if n % 3 == 0 {
            changes.push(remove(3 * n + 2, user(n, "second")));
        }
    }
    let mut received = NOW - DAY_MS + 3_600_000;
    for batch in changes.chunks(5).chain(changes.chunks(7)) {
        // Without a creation time a retry gives the change another time.
        let batch: Vec<Change> = batch
            .iter()
            .map(|change| Change {
                at: None,
                ..change.clone()
            })
            .collect();
        received += 1000;
        handle(
            event::batch(&batch).as_bytes(),
            received,
            &context,
            Origin::Stream,
        )
        .await
        .unwrap();
    }
}

async fn keys(store: &Store, prefix: &str) -> Vec<String> {
    let listed = store.list(prefix).await.unwrap();
    listed.into_iter().map(|meta| meta.key).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_compacted_wherever_one_stops_in_between() {
    let Some(server) = seaweed() else { return };
    let store = server.place("compaction").store();
    deliver(&store).await;
    let before = keys(&store, "changes/").await;
    assert_eq!(before.len(), 10, "{before:?}");
    let spool = tempfile::tempdir().unwrap();
    let options = |now_ms| CompactOptions {
        spool: Some(spool.path().to_owned()),
        ..CompactOptions::at(now_ms)
    };
    let run = async |store: &Store, now_ms| {
        compact(store, &catalog(), &options(now_ms), &Unwatched).await
    };
    let mut stops = 0;
    while let Err(error) = run(&store.stopping_after(stops * 7), NOW).await {
        assert!(error.to_string().contains("stopped"), "{error}");
        stops += 1;
    }
    assert!(stops > 2, "{stops}");
    let after = keys(&store, "changes/").await;
    assert!(before.iter().all(|key| after.contains(key)));
    let report = run(&store, NOW + DAY_MS).await.unwrap();
    assert_eq!(report.problems, [""; 0]);
    assert_eq!(report.deleted.objects, before.len() as u64);
    let left = keys(&store, "changes/").await;
    assert_eq!(left.len(), after.len() - before.len(), "{left:?}");
    assert!(left.iter().all(|key| key.contains("/compacted-")));
    assert_eq!(keys(&store, "state/compactions/").await, [""; 0]);
    assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_commits_at_once_in_a_bucket_each_is_done_or_told_of_the_lock() {
    let Some(server) = seaweed() else { return };
    let store = server.place("commits").store();
    let record = |n: i64| {
        let at_ms = MORNING * 1000 + n * DAY_MS;
        BaselineRecord {
            version: baseline::VERSION,
            label: dynalake_pipeline::layout::export_label(at_ms).unwrap(),
            at_ms,
            kind: BaselineKind::FullExport,
            export_id: format!("0177-{n}"),
            table_arn: "arn".to_owned(),
            schema_fingerprint: None,
            tables: BTreeMap::from([("users".to_owned(), TableCounts::default())]),
            committed_at_ms: NOW,
        }
    };
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let (store, record) = (store.clone(), record(n % 3));
            tokio::spawn(async move { baseline::commit(&store, &record, &format!("n{n}")).await })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => done += 1,
            Err(BaselineError::Locked { holder, .. }) => assert!(holder.starts_with('n')),
            Err(BaselineError::LostLock { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(done > 0);
    assert_eq!(baseline::lock_holder(&store).await.unwrap(), None);
    for n in 0..3 {
        baseline::commit(&store, &record(n), "me").await.unwrap();
    }
    let all = baseline::list(&store).await.unwrap();
    assert_eq!(all, [record(0), record(1), record(2)]);
}

/// What the views of a local lake give: state and history.
fn viewed(lake: &Path) -> [Vec<Value>; 2] {
    let place = DuckDbLake {
        root: lake.to_str().unwrap().to_owned(),
        s3: None,
    };
    let script = views::script(&catalog(), None, &place);
    ["users", "users_history"].map(|view| {
        duckdb(&format!(
            "{script}\nSELECT * FROM {view} ORDER BY _pk, _sk, _stream, _seq"
        ))
    })
}

#[tokio::test]
async fn views_find_the_same_before_during_and_after_a_compaction() {
    if !duckdb_available() {
        return;
    }
    let lake = tempfile::tempdir().unwrap();
    let store = Store::local(lake.path());
    deliver(&store).await;
    let before = viewed(lake.path());
    assert_eq!((before[0].len(), before[1].len()), (8, 28));
    for (now, objects) in [(NOW, "during"), (NOW + DAY_MS, "after")] {
        let options = CompactOptions::at(now);
        compact(&store, &catalog(), &options, &Unwatched)
            .await
            .unwrap();
        assert_eq!(viewed(lake.path()), before, "{objects}");
    }
    assert_eq!(keys(&store, "changes/users/").await.len(), 1);
}
