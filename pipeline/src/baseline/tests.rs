//! Baselines on a local folder: order, races, crashes after every single operation.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use tempfile::TempDir;

use super::*;
use crate::layout;
use crate::store::Store;
use crate::time::DAY_MS;

/// 2026-05-01T00:00:00Z.
const MAY_1: i64 = 1_777_593_600_000;
const NOW: i64 = MAY_1 + 30 * DAY_MS;
const ME: &str = "ann@desk";

fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path());
    (folder, store)
}

/// A record of an export of that day, whose objects are not in the lake yet.
fn record(day: i64) -> BaselineRecord {
    let at_ms = MAY_1 + day * DAY_MS;
    let counts = |objects: u64| TableCounts {
        rows: 10 * objects,
        objects,
        bytes: 4 * objects,
    };
    BaselineRecord {
        version: 1,
        label: layout::export_label(at_ms).unwrap(),
        at_ms,
        kind: BaselineKind::FullExport,
        export_id: format!("0177-{day}"),
        table_arn: "arn:aws:dynamodb:eu-west-1:123456789012:table/shop".to_owned(),
        schema_fingerprint: Some("f".to_owned()),
        tables: BTreeMap::from([
            ("orders".to_owned(), counts(2)),
            ("users".to_owned(), counts(1)),
            ("unmatched".to_owned(), counts(0)),
        ]),
        committed_at_ms: at_ms + 1000,
    }
}

async fn put(store: &Store, key: &str, text: &str) {
    store
        .put(key, Bytes::copy_from_slice(text.as_bytes()))
        .await
        .unwrap();
}

/// What a conversion writes before it commits.
async fn convert(store: &Store, record: &BaselineRecord) {
    for (table, counts) in &record.tables {
        for part in 0..counts.objects {
            let key = format!("{}{part}.parquet", objects_prefix(table, &record.label));
            put(store, &key, "four").await;
        }
    }
    let (label, id) = (&record.label, &record.export_id);
    let claim = format!(r#"{{"export_id":"{id}","export_arn":"arn"}}"#);
    put(store, &format!("state/export-seconds/{label}.json"), &claim).await;
    put(store, &format!("state/exports/{id}/plan.json"), "{}").await;
    put(store, &format!("state/exports/{id}/complete.json"), "{}").await;
}

async fn committed(store: &Store, record: &BaselineRecord) {
    convert(store, record).await;
    assert_eq!(
        commit(store, record, ME).await.unwrap(),
        CommitOutcome::Committed
    );
}

async fn labels(store: &Store) -> Vec<String> {
    let records = list(store).await.unwrap();
    records.into_iter().map(|record| record.label).collect()
}

async fn keys(store: &Store) -> Vec<String> {
    let listed = store.list("").await.unwrap();
    listed.into_iter().map(|meta| meta.key).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.as_ref().unwrap(), to);
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn the_current_baseline_is_the_newest_state_not_the_last_commit() {
    let (_folder, store) = store();
    assert_eq!(current(&store, None).await.unwrap(), None);
    let (old, new) = (record(0), record(3));
    committed(&store, &new).await;
    committed(&store, &old).await;
    assert_eq!(list(&store).await.unwrap(), [old.clone(), new.clone()]);
    assert_eq!(current(&store, None).await.unwrap(), Some(new.clone()));
    let as_of = async |at| current(&store, Some(at)).await.unwrap();
    assert_eq!(as_of(new.at_ms).await, Some(new.clone()));
    assert_eq!(as_of(new.at_ms - 1).await, Some(old.clone()));
    assert_eq!(as_of(old.at_ms - 1).await, None);
}

#[tokio::test]
async fn the_same_commit_again_writes_nothing_and_another_export_of_that_second_is_refused() {
    let (folder, store) = store();
    committed(&store, &record(0)).await;
    let before = std::fs::read(folder.path().join(record_key(&record(0).label))).unwrap();
    let again = BaselineRecord {
        committed_at_ms: NOW,
        ..record(0)
    };
    let outcome = commit(&store, &again, "bob@lab").await.unwrap();
    assert_eq!(outcome, CommitOutcome::Unchanged);
    let after = std::fs::read(folder.path().join(record_key(&record(0).label))).unwrap();
    assert_eq!(before, after);

    let rival = BaselineRecord {
        export_id: "0177-other".to_owned(),
        ..record(0)
    };
    let error = commit(&store, &rival, ME).await.unwrap_err();
    assert!(matches!(error, BaselineError::SameSecond { .. }), "{error}");
    assert_eq!(lock_holder(&store).await.unwrap(), None);

    let mut other_rows = record(0);
    other_rows.schema_fingerprint = Some("g".to_owned());
    let outcome = commit(&store, &other_rows, ME).await.unwrap();
    assert_eq!(outcome, CommitOutcome::Replaced);
    assert_eq!(list(&store).await.unwrap(), [other_rows]);
}

#[tokio::test]
async fn missing_objects_and_wrong_labels_are_not_committed() {
    let (_folder, store) = store();
    let record = record(0);
    convert(&store, &record).await;
    let lost = format!("{}1.parquet", objects_prefix("orders", &record.label));
    store.delete(&lost).await.unwrap();
    let error = commit(&store, &record, ME).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("`orders` has 1 objects of 4 bytes") && text.contains("says 2 of 8"),
        "{text}"
    );
    // One that is cut short.
    put(&store, &lost, "cut").await;
    let error = commit(&store, &record, ME).await.unwrap_err();
    assert!(matches!(error, BaselineError::ObjectsMissing { .. }));
    // One more is an item that came back from quarantine.
    put(&store, &lost, "four").await;
    let more = format!(
        "{}replayed.parquet",
        objects_prefix("orders", &record.label)
    );
    put(&store, &more, "four").await;
    let misnamed = BaselineRecord {
        at_ms: record.at_ms + 5000,
        ..record.clone()
    };
    let error = commit(&store, &misnamed, ME).await.unwrap_err();
    assert!(matches!(error, BaselineError::Invalid { .. }), "{error}");
    assert_eq!(labels(&store).await, [""; 0]);
    assert_eq!(lock_holder(&store).await.unwrap(), None);
    commit(&store, &record, ME).await.unwrap();
}

#[tokio::test]
async fn the_loser_is_told_who_has_the_lock_since_when_and_what_to_do() {
    let (_folder, store) = store();
    convert(&store, &record(0)).await;
    let lock = Lock::acquire(&store, "bob@lab", "removal of baseline x", MAY_1)
        .await
        .unwrap();
    for error in [
        commit(&store, &record(0), ME).await.unwrap_err(),
        drop(&store, "x", false, ME, NOW).await.unwrap_err(),
        retain(&store, Retention::Newest(1), ME, NOW)
            .await
            .unwrap_err(),
    ] {
        let text = error.to_string();
        for part in [
            "bob@lab",
            "removal of baseline x",
            "2026-05-01T00:00:00Z",
            "dynalake baselines unlock LAKE",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    assert_eq!(labels(&store).await, [""; 0]);
    let there = unlock(&store).await.unwrap().unwrap();
    assert_eq!(there.holder, "bob@lab");
    assert_eq!(unlock(&store).await.unwrap(), None);
    assert!(matches!(
        lock.check().await,
        Err(BaselineError::LostLock { .. })
    ));
    // A lock that somebody else has taken since is not ours to release.
    let other = Lock::acquire(&store, ME, "y", NOW).await.unwrap();
    lock.release(Ok::<_, BaselineError>(())).await.unwrap();
    other.check().await.unwrap();
    other.release(Ok::<_, BaselineError>(())).await.unwrap();
    // A lock that cannot be read is a lock.
    put(&store, "state/lock.json", "").await;
    let error = commit(&store, &record(0), ME).await.unwrap_err();
    assert!(matches!(error, BaselineError::Locked { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_every_one_commits_or_is_told_of_the_lock() {
    let (_folder, store) = store();
    let records: Vec<BaselineRecord> = (0..6).map(|n| record(n % 2)).collect();
    for record in &records {
        convert(&store, record).await;
    }
    let tasks: Vec<_> = records
        .into_iter()
        .enumerate()
        .map(|(n, record)| {
            let store = store.clone();
            tokio::spawn(async move { commit(&store, &record, &format!("n{n}")).await })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => done += 1,
            // Released between the two looks: as good as taken.
            Err(BaselineError::Locked { .. } | BaselineError::LostLock { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(done > 0);
    assert_eq!(lock_holder(&store).await.unwrap(), None);
    for day in 0..2 {
        commit(&store, &record(day), ME).await.unwrap();
    }
    assert_eq!(list(&store).await.unwrap(), [record(0), record(1)]);
}

#[tokio::test]
async fn a_commit_that_dies_after_any_operation_is_finished_by_the_next() {
    let (folder, store) = store();
    committed(&store, &record(0)).await;
    convert(&store, &record(1)).await;
    let mut crashes = 0;
    for operations in 0.. {
        let copied = tempfile::tempdir().unwrap();
        copy(folder.path(), copied.path());
        let store = Store::local(copied.path());
        let outcome = commit(&store.stopping_after(operations), &record(1), ME).await;
        // Readers see the old one or the new one.
        let seen = current(&store, None).await.unwrap().unwrap();
        assert!(seen == record(0) || seen == record(1));
        if outcome.is_ok() {
            break;
        }
        crashes += 1;
        commit(&store, &record(1), ME).await.unwrap();
        assert_eq!(list(&store).await.unwrap(), [record(0), record(1)]);
        assert_eq!(lock_holder(&store).await.unwrap(), None, "{operations}");
    }
    assert!(crashes > 8, "{crashes}");
}

#[tokio::test]
async fn a_baseline_is_dropped_with_all_that_belongs_to_it_and_nothing_else() {
    let (folder, store) = store();
    committed(&store, &record(0)).await;
    let only_first = keys(&store).await;
    let (first, second) = (record(0).label, record(1).label);
    committed(&store, &record(1)).await;

    let error = drop(&store, &second, false, ME, NOW).await.unwrap_err();
    assert!(matches!(error, BaselineError::IsCurrent { .. }), "{error}");
    let error = drop(&store, "20200101T000000Z", false, ME, NOW)
        .await
        .unwrap_err();
    assert!(matches!(error, BaselineError::NotFound { .. }), "{error}");
    assert_eq!(labels(&store).await, [first.clone(), second.clone()]);

    let report = drop(&store, &second, true, ME, NOW).await.unwrap();
    assert_eq!(
        report,
        DropReport {
            labels: vec![second.clone()],
            objects: 3,
            bytes: 12
        }
    );
    assert_eq!(keys(&store).await, only_first);

    // What was never committed is dropped by its label too.
    convert(&store, &record(1)).await;
    drop(&store, &second, false, ME, NOW).await.unwrap();
    assert_eq!(keys(&store).await, only_first);
    std::mem::drop(folder);
}

#[tokio::test]
async fn a_drop_that_dies_after_any_operation_is_finished_by_whatever_comes_next() {
    let (folder, store) = store();
    committed(&store, &record(1)).await;
    let expected = keys(&store).await;
    committed(&store, &record(0)).await;
    let label = record(0).label;
    let mut crashes = 0;
    for operations in 0.. {
        let copied = tempfile::tempdir().unwrap();
        copy(folder.path(), copied.path());
        let store = Store::local(copied.path());
        let outcome = drop(&store.stopping_after(operations), &label, false, ME, NOW).await;
        if outcome.is_ok() {
            break;
        }
        crashes += 1;
        // A baseline that is still there is whole.
        if labels(&store).await.contains(&label) {
            let objects = store.list(&objects_prefix("orders", &label)).await.unwrap();
            assert_eq!(objects.len(), 2);
        }
        if operations % 2 == 0 {
            match drop(&store, &label, false, ME, NOW).await {
                Ok(_) | Err(BaselineError::NotFound { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        } else {
            unlock(&store).await.unwrap();
            retain(&store, Retention::Newest(1), "bob@lab", NOW)
                .await
                .unwrap();
        }
        assert_eq!(keys(&store).await, expected, "{operations}");
    }
    assert!(crashes > 15, "{crashes}");
}

#[tokio::test]
async fn an_export_that_is_committed_again_after_half_a_drop_stays() {
    let (_folder, store) = store();
    committed(&store, &record(1)).await;
    committed(&store, &record(0)).await;
    let label = record(0).label;
    // Up to the record, which is gone.
    let died = drop(&store.stopping_after(12), &label, false, ME, NOW).await;
    assert!(died.is_err());
    assert_eq!(labels(&store).await, [record(1).label]);
    assert!(!store.list("state/drops/").await.unwrap().is_empty());
    unlock(&store).await.unwrap();
    committed(&store, &record(0)).await;
    retain(&store, Retention::Newest(9), ME, NOW).await.unwrap();
    assert_eq!(labels(&store).await.len(), 2);
    let objects = store.list(&objects_prefix("orders", &label)).await.unwrap();
    assert_eq!(objects.len(), 2);
}

#[tokio::test]
async fn retention_keeps_what_is_current_what_is_asked_for_and_what_queries_may_still_read() {
    let records: Vec<BaselineRecord> = (0..5).map(|n| record(n * 7)).collect();
    let plan = |retention, now| -> Vec<i64> {
        let plan = retention_plan(&records, retention, now);
        plan.iter()
            .map(|record| (record.at_ms - MAY_1) / DAY_MS)
            .collect()
    };
    let later = MAY_1 + 40 * DAY_MS;
    assert_eq!(plan(Retention::Newest(2), later), [0, 7, 14]);
    assert_eq!(plan(Retention::Newest(0), later), [0, 7, 14, 21]);
    assert_eq!(plan(Retention::Newest(9), later), [0; 0]);
    // Day 30 on: the baseline of day 28 is the newest, and 21 was current before it.
    assert_eq!(plan(Retention::Days(10), later), [0, 7, 14, 21]);
    assert_eq!(plan(Retention::Days(15), later), [0, 7, 14]);
    assert_eq!(plan(Retention::Days(0), later), [0, 7, 14, 21]);
    assert_eq!(plan(Retention::Days(u32::MAX), later), [0; 0]);
    // The newest one was committed an hour ago.
    let now = records[4].committed_at_ms + DAY_MS / 24;
    assert_eq!(plan(Retention::Newest(1), now), [0, 7, 14]);
    assert_eq!(plan(Retention::Newest(1), now + DAY_MS), [0, 7, 14, 21]);

    let (_folder, store) = store();
    for record in &records {
        committed(&store, record).await;
    }
    let report = retain(&store, Retention::Newest(2), ME, later)
        .await
        .unwrap();
    assert_eq!((report.labels.len(), report.objects), (3, 9));
    assert_eq!(
        labels(&store).await,
        [records[3].label.clone(), records[4].label.clone()]
    );
    let none = retain(&store, Retention::Newest(2), ME, later)
        .await
        .unwrap();
    assert_eq!(none, DropReport::default());
}

#[tokio::test]
async fn records_of_another_form_are_refused_by_name() {
    let (_folder, store) = store();
    put(&store, "state/baselines/x.json", r#"{"version":2}"#).await;
    let text = list(&store).await.unwrap_err().to_string();
    assert!(
        text.contains("state/baselines/x.json") && text.contains("form 2"),
        "{text}"
    );
    put(&store, "state/baselines/x.json", "{").await;
    assert!(list(&store).await.is_err());
}

#[tokio::test]
async fn an_export_is_taken_out_of_sight_before_it_is_replaced() {
    let (_folder, store) = store();
    committed(&store, &record(0)).await;
    let label = record(0).label;
    uncommit(&store, &label, "another", ME, NOW).await.unwrap();
    assert_eq!(labels(&store).await, std::slice::from_ref(&label));
    uncommit(&store, &label, &record(0).export_id, ME, NOW)
        .await
        .unwrap();
    assert_eq!(labels(&store).await, [""; 0]);
    assert_eq!(lock_holder(&store).await.unwrap(), None);
    uncommit(&store, &label, &record(0).export_id, ME, NOW)
        .await
        .unwrap();
}
