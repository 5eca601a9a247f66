//! Converted exports become baselines, whole or not at all.

use dynalake_pipeline::baseline::{self, BaselineRecord, CommitOutcome};

use super::*;
use crate::commit_export;

const ME: &str = "ann@desk";
const NOW: i64 = EXPORT_TIME + 600_000;

impl Bench {
    fn store(&self) -> Store {
        Store::local(self.lake())
    }

    async fn commit(&self) -> Result<(BaselineRecord, CommitOutcome), ExportError> {
        commit_export(&self.store(), &spec().export_id(), ME, NOW).await
    }

    async fn current(&self) -> Option<BaselineRecord> {
        baseline::current(&self.store(), None).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committed_export_is_the_current_baseline_with_all_its_tables() {
    let strangers = [STRANGER.to_owned(), user(1)];
    let bench = Bench::with(&spec(), &strangers);
    let error = bench.commit().await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::Unfinished), "{error}");
    let report = bench.convert().await.unwrap();
    assert_eq!(bench.current().await, None);

    let (record, outcome) = bench.commit().await.unwrap();
    assert_eq!(outcome, CommitOutcome::Committed);
    assert_eq!(bench.current().await.as_ref(), Some(&record));
    assert_eq!((record.label.as_str(), record.at_ms), (LABEL, EXPORT_TIME));
    assert_eq!(record.table_arn, report.table_arn);
    assert_eq!(record.committed_at_ms, NOW);
    let rows: Vec<(&str, u64, u64)> = record
        .tables
        .iter()
        .map(|(table, counts)| (table.as_str(), counts.rows, counts.objects))
        .collect();
    assert_eq!(
        rows,
        [("orders", 0, 0), ("unmatched", 1, 1), ("users", 1, 1)]
    );
    assert_eq!(record.tables["users"].bytes, report.tables["users"].bytes);

    let before = tree(&bench.lake());
    let (_, outcome) = commit_export(&bench.store(), &spec().export_id(), "bob@lab", NOW + 1)
        .await
        .unwrap();
    assert_eq!(outcome, CommitOutcome::Unchanged);
    bench.convert().await.unwrap();
    assert!(tree(&bench.lake()) == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_or_cut_object_is_named_and_not_committed() {
    let bench = Bench::new();
    bench.convert().await.unwrap();
    let users: Vec<String> = tree(&bench.lake())
        .into_keys()
        .filter(|key| key.starts_with("snapshot/users/"))
        .collect();
    let path = bench.lake().join(&users[0]);
    let bytes = std::fs::read(&path).unwrap();
    // Elsewhere there is one more, so that counts alone look right.
    let more = path.with_file_name("replayed.parquet");
    std::fs::rename(&path, &more).unwrap();
    let error = bench.commit().await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::Unfinished));
    assert!(error.to_string().contains(&users[0]), "{error}");
    std::fs::write(&path, &bytes[1..]).unwrap();
    assert!(bench.commit().await.is_err());
    assert_eq!(bench.current().await, None);
    bench.convert().await.unwrap();
    bench.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_dies_anywhere_is_finished_by_the_next() {
    let bench = Bench::new();
    bench.convert().await.unwrap();
    let mut crashes = 0;
    for operations in 0.. {
        let store = bench.store().stopping_after(operations);
        let outcome = commit_export(&store, &spec().export_id(), ME, NOW).await;
        if outcome.is_ok() {
            break;
        }
        crashes += 1;
        let (record, _) = bench.commit().await.unwrap();
        assert_eq!(bench.current().await, Some(record));
        let left = baseline::lock_holder(&bench.store()).await.unwrap();
        assert_eq!(left, None, "stopped after {operations}");
        std::fs::remove_dir_all(bench.lake().join("state/baselines")).unwrap();
    }
    assert!(crashes > 15, "{crashes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_never_see_an_export_that_is_being_replaced() {
    let bench = Bench::new();
    bench.convert().await.unwrap();
    bench.commit().await.unwrap();
    let renamed = catalog_with(LAKE_TOML, &[&USER_TOML.replace("\"users\"", "\"people\"")]);
    let stopping = ConvertOptions {
        replace: true,
        stop_after_puts: Some(5),
        ..bench.options()
    };
    let stopped = run_into(&bench.export, &bench.lake(), &renamed, &stopping).await;
    assert!(matches!(stopped, Err(ExportError::Stopped)), "{stopped:?}");
    assert_eq!(bench.current().await, None);
    assert!(bench.commit().await.is_err());
    run_into(&bench.export, &bench.lake(), &renamed, &bench.options())
        .await
        .unwrap();
    let (record, outcome) = bench.commit().await.unwrap();
    assert_eq!(outcome, CommitOutcome::Committed);
    assert!(record.tables.contains_key("people") && !record.tables.contains_key("users"));

    // Not while somebody else is at it.
    let lock = baseline::Lock::acquire(&bench.store(), "bob@lab", "a removal", NOW)
        .await
        .unwrap();
    let replacing = ConvertOptions {
        replace: true,
        ..bench.options()
    };
    let error = bench.run(&replacing).await.unwrap_err();
    assert!(error.to_string().contains("bob@lab"), "{error}");
    assert_eq!(bench.current().await, Some(record));
    lock.release(Ok::<_, ExportError>(())).await.unwrap();
}
