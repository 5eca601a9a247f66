//! A rolled baseline says what a full export of its instant would.

use dynalake_pipeline::baseline::{self, BaselineKind};

use super::world::*;
use crate::RefusalKind;
use crate::format::DataFormat;
use crate::manifest::ExportView;

/// Views, and the format of the exports that are tried with each.
const VIEWS: [(ExportView, DataFormat); 2] = [
    (ExportView::NewImage, DataFormat::Json),
    (ExportView::NewAndOldImages, DataFormat::Ion),
];

#[tokio::test(flavor = "multi_thread")]
async fn windows_of_either_view_give_what_a_full_export_gives() {
    let [first, second, third] = history();
    let (t1, t2) = (T0 + 5 * HOUR, T0 + 6 * HOUR);
    let full = World::new();
    full.baseline(t1, &second).await;
    let label1 = full.baseline(t1, &second).await.label;
    let label2 = full.baseline(t2, &third).await.label;
    for (view, format) in VIEWS {
        let mut world = World::new();
        world.format = format;
        let base = world.baseline(T0, &first).await;
        let effects1 = effects(&first, &second, t1);
        let effects2 = effects(&second, &third, t2);
        let ids = [
            world.window((t1, t2), view, &effects2).await,
            world.window((T0, t1), view, &effects1).await,
        ];
        let report = world.roll(&ids).await.unwrap();
        assert!(report.done && !report.unchanged && !report.decoded_again);
        assert_eq!(report.windows, [ids[1].clone(), ids[0].clone()]);
        assert_eq!(world.rows(&label2), full.rows(&label2));
        // The merges had to spill, and the tables have several objects.
        assert!(report.tables["products"].objects > 1, "{report:?}");
        let readers = baseline::current(&world.store(), None).await.unwrap();
        assert_eq!(readers.unwrap(), base);
        let record = world.commit(&report).await;
        assert_eq!((record.kind, record.at_ms), (BaselineKind::Rolled, t2));
        assert_eq!(record.label, label2);
        assert_eq!(record.schema_fingerprint, base.schema_fingerprint);
        let users = record.tables["users"].rows;
        assert_eq!(users, 19, "one user is in quarantine");

        // The same again, and the same exports twice, are no harm.
        let before = tree(&world.lake());
        let again = [ids.clone(), ids.clone()].concat();
        let report = world.roll(&again).await.unwrap();
        assert!(report.done && report.unchanged);
        assert!(tree(&world.lake()) == before);

        // Window by window.
        let mut other = World::new();
        other.format = format;
        other.baseline(T0, &first).await;
        let id = other.window((T0, t1), view, &effects1).await;
        let report = other.roll(std::slice::from_ref(&id)).await.unwrap();
        other.commit(&report).await;
        assert_eq!(other.rows(&label1), full.rows(&label1));
        let next = other.window((t1, t2), view, &effects2).await;
        let report = other.roll(&[id, next]).await.unwrap();
        assert_eq!(
            (report.base.as_str(), report.windows.len()),
            (label1.as_str(), 1)
        );
        other.commit(&report).await;
        assert_eq!(other.rows(&label2), full.rows(&label2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_tell_which_road_they_took_and_windows_leave_no_changes() {
    let [first, second, _] = history();
    let world = World::new();
    world.baseline(T0, &first).await;
    let t1 = T0 + HOUR;
    let id = world
        .window(
            (T0, t1),
            ExportView::NewImage,
            &effects(&first, &second, t1),
        )
        .await;
    let files = tree(&world.lake());
    assert!(files.keys().any(|key| {
        key.starts_with("deltas/products/export=20261118T110640Z-20261118T120640Z/")
            && key.contains(&id)
    }));
    let report = world.roll(std::slice::from_ref(&id)).await.unwrap();
    let record = world.commit(&report).await;
    assert!(
        tree(&world.lake())
            .keys()
            .all(|key| !key.starts_with("changes/"))
    );
    let quarantine = tree(&world.lake().join("quarantine"));
    let text = String::from_utf8(quarantine.into_values().flatten().collect()).unwrap();
    assert_eq!(text.matches("incremental_export").count(), 2, "{text}");
    assert_eq!(text.matches(&id).count(), 2);
    // Only as a baseline can it be committed.
    let alone = crate::commit_export(&world.store(), &id, "me", 0)
        .await
        .unwrap_err();
    assert_eq!(alone.refusal(), Some(RefusalKind::Incremental), "{alone}");
    // A full export of that second has no place beside it.
    baseline::drop(&world.store(), &record.label, true, "me", 0)
        .await
        .unwrap();
    let files = tree(&world.lake());
    assert!(
        files.keys().all(|key| !key.contains("rolled-")),
        "{:?}",
        files.keys()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_rolled_is_refused() {
    let [first, second, third] = history();
    let world = World::new();
    let view = ExportView::NewImage;
    let (t1, t2) = (T0 + HOUR, T0 + 2 * HOUR);
    let late = world
        .window((t1, t2), view, &effects(&second, &third, t2))
        .await;
    let error = world.roll(std::slice::from_ref(&late)).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::NoBase), "{error}");
    let base = world.baseline(T0, &first).await;
    let error = world.roll(std::slice::from_ref(&late)).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::MissingWindow), "{error}");
    let error = world.roll(&[base.export_id]).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::Full), "{error}");
    let error = world.roll(&["0-0".to_owned()]).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::Unfinished), "{error}");
    let whole = world
        .window((T0, t2), view, &effects(&first, &third, t2))
        .await;
    let error = world.roll(&[late, whole.clone()]).await.unwrap_err();
    assert_eq!(
        error.refusal(),
        Some(RefusalKind::OverlappingWindow),
        "{error}"
    );
    std::fs::rename(world.lake().join("deltas"), world.lake().join("gone")).unwrap();
    let error = world.roll(std::slice::from_ref(&whole)).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::Unfinished), "{error}");
    std::fs::rename(world.lake().join("gone"), world.lake().join("deltas")).unwrap();
    assert!(world.roll(&[whole]).await.unwrap().done);
}
