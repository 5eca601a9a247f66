//! A roll may stop anywhere: what comes out is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::world::*;
use crate::manifest::ExportView;
use crate::roll::Watch;

/// Says stop after so many looks.
struct Stopping(AtomicU64);

impl Watch for Stopping {
    fn stop(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

/// A lake with a baseline and a window, not yet rolled.
async fn ready() -> (World, Vec<String>) {
    let [first, second, _] = history();
    let world = World::new();
    world.baseline(T0, &first).await;
    let id = world
        .window(
            (T0, T0 + HOUR),
            ExportView::NewImage,
            &effects(&first, &second, T0),
        )
        .await;
    (world, vec![id])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_operation_is_finished_by_the_next_roll() {
    let (world, ids) = ready().await;
    let untouched = tempfile::tempdir().unwrap();
    copy(&world.lake(), untouched.path());
    let report = world.roll(&ids).await.unwrap();
    world.commit(&report).await;
    let expected = tree(&world.lake());
    let mut stopped = 0;
    for operations in 0.. {
        std::fs::remove_dir_all(world.lake()).unwrap();
        copy(untouched.path(), &world.lake());
        let store = world.store().stopping_after(operations);
        let watch = Arc::new(crate::roll::Unwatched);
        let rolled = world.roll_with(&store, &ids, &small(), watch).await;
        stopped += u64::from(rolled.is_err());
        let through = rolled.is_ok();
        // Other sizes do not matter once it was begun.
        let plan = format!("state/exports/{}/plan.json", report.export_id);
        let begun = world.lake().join(plan).exists();
        let options = crate::roll::RollOptions {
            object_bytes: if begun { 5_000_000 } else { 5_000 },
            ..small()
        };
        let watch = Arc::new(crate::roll::Unwatched);
        let report = world.roll_with(&world.store(), &ids, &options, watch).await;
        let report = report.unwrap();
        assert!(report.done);
        world.commit(&report).await;
        assert!(
            tree(&world.lake()) == expected,
            "after {operations} operations"
        );
        if through {
            break;
        }
    }
    assert!(stopped > 20, "{stopped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_roll_that_is_told_to_stop_goes_on_after_its_last_object() {
    let (world, ids) = ready().await;
    let untouched = tempfile::tempdir().unwrap();
    copy(&world.lake(), untouched.path());
    let report = world.roll(&ids).await.unwrap();
    assert!(report.tables["products"].objects >= 2, "{report:?}");
    let expected = tree(&world.lake());
    for looks in [1, 2, 3] {
        std::fs::remove_dir_all(world.lake()).unwrap();
        copy(untouched.path(), &world.lake());
        let mut calls = 0;
        loop {
            calls += 1;
            let watch = Arc::new(Stopping(AtomicU64::new(looks * calls)));
            let report = world.roll_with(&world.store(), &ids, &small(), watch).await;
            if report.unwrap().done {
                break;
            }
            assert!(calls < 100);
        }
        assert!(calls > 1);
        assert!(tree(&world.lake()) == expected, "{looks} looks");
    }
}
