//! Stopped after every single operation on the store, and run again.

use super::*;

/// The lake after everything is done and all grace times are over.
async fn finished(world: &World) -> BTreeMap<String, Vec<u8>> {
    let options = CompactOptions {
        before: DAY + 1,
        ..CompactOptions::at(LATER + 2 * DAY_MS)
    };
    world.compact(&options).await;
    world.objects()
}

/// A lake with several units of work: two days, and a small target, so that outputs are merged further.
async fn world() -> (World, CompactOptions) {
    let world = busy().await;
    for n in 0..14 {
        let key = n.to_string();
        let day = NOON - DAY_MS;
        world
            .changes(&[
                (&key, &seq(400 + n), day, Some("x")),
                ("z", &seq(500 + n), day, None),
            ])
            .await;
    }
    let options = CompactOptions {
        target_bytes: 9_000,
        ..CompactOptions::at(NOW)
    };
    (world, options)
}

#[tokio::test]
async fn a_compaction_that_dies_after_any_operation_is_finished_by_the_next() {
    let (base, options) = world().await;
    let expected_rows = base.seen().await;
    let undisturbed = base.copy();
    let report = undisturbed.compact(&options).await;
    assert!(report.tables["things"].len() == 2, "{report:?}");
    let expected = finished(&undisturbed).await;
    let mut crashes = 0;
    for operations in 0.. {
        let world = base.copy();
        let store = world.store.stopping_after(operations);
        let outcome = world.try_compact(&store, &options).await;
        assert_eq!(
            world.seen().await,
            expected_rows,
            "stopped after {operations}"
        );
        if outcome.is_ok() {
            break;
        }
        crashes += 1;
        world.compact(&options).await;
        assert_eq!(
            world.seen().await,
            expected_rows,
            "stopped after {operations}"
        );
        assert!(
            finished(&world).await == expected,
            "stopped after {operations}"
        );
        assert_eq!(
            world.seen().await,
            expected_rows,
            "stopped after {operations}"
        );
    }
    assert!(crashes >= 8, "{crashes}");
}

#[tokio::test]
async fn deletions_that_die_after_any_operation_are_finished_by_the_next() {
    let (base, options) = world().await;
    let expected_rows = base.seen().await;
    base.compact(&options).await;
    let expected = finished(&base.copy()).await;
    let later = CompactOptions {
        now_ms: LATER,
        ..options
    };
    let mut crashes = 0;
    for operations in 0.. {
        let world = base.copy();
        let store = world.store.stopping_after(operations);
        let outcome = world.try_compact(&store, &later).await;
        assert_eq!(
            world.seen().await,
            expected_rows,
            "stopped after {operations}"
        );
        if outcome.is_ok() {
            break;
        }
        crashes += 1;
        world.compact(&later).await;
        assert!(
            finished(&world).await == expected,
            "stopped after {operations}"
        );
        assert_eq!(
            world.seen().await,
            expected_rows,
            "stopped after {operations}"
        );
    }
    assert!(crashes > 12, "{crashes}");
}

#[tokio::test]
async fn objects_that_arrive_between_a_crash_and_the_next_run_are_not_lost() {
    let (base, options) = world().await;
    for operations in 0.. {
        let world = base.copy();
        let store = world.store.stopping_after(operations);
        let done = world.try_compact(&store, &options).await.is_ok();
        world
            .changes(&[("a", &seq(2_000), NOON, Some("late"))])
            .await;
        let rows = world.seen().await;
        world.compact(&options).await;
        assert_eq!(world.seen().await, rows, "stopped after {operations}");
        finished(&world).await;
        finished(&world).await;
        assert_eq!(world.seen().await, rows, "stopped after {operations}");
        if done {
            break;
        }
    }
}
