use super::{AuditReport, TableAudit, Verdict, audit, store_report};
use crate::current::MergeOptions;
use crate::current::tests::{MINUTE, NOON, World};
use crate::layout::export_label;

async fn audited(world: &World, at: i64) -> AuditReport {
    let options = MergeOptions {
        memory_bytes: 64 << 20,
        spool: world.folder.path().join("spool"),
    };
    let label = export_label(at).unwrap();
    audit(&world.store, &world.catalog, &label, at, 10, &options)
        .await
        .unwrap()
}

fn counts(table: &TableAudit) -> [u64; 5] {
    [
        table.equal,
        table.missing,
        table.extra,
        table.different,
        table.unsure,
    ]
}

const HOUR: i64 = 60 * MINUTE;

#[tokio::test]
async fn a_lake_that_followed_every_change_is_equal() {
    let world = World::new();
    world
        .baseline(NOON, &[("a", "1"), ("b", "1"), ("c", "1")])
        .await;
    world
        .changes(&[
            ("a", "1", NOON + 10 * MINUTE, Some("2")),
            ("b", "2", NOON + 20 * MINUTE, None),
            ("d", "3", NOON + 30 * MINUTE, Some("1")),
            // After the export: not its business.
            ("a", "4", NOON + 3 * HOUR, Some("3")),
        ])
        .await;
    world
        .baseline(NOON + 2 * HOUR, &[("a", "2"), ("c", "1"), ("d", "1")])
        .await;
    let report = audited(&world, NOON + 2 * HOUR).await;
    assert_eq!(report.verdict(), Verdict::Equal);
    assert_eq!(counts(&report.tables["things"]), [3, 0, 0, 0, 0]);
    assert_eq!(report.older, export_label(NOON));
}

#[tokio::test]
async fn what_was_lost_is_counted_and_named_without_values() {
    let world = World::new();
    world
        .baseline(NOON, &[("a", "1"), ("b", "1"), ("c", "1")])
        .await;
    // Lost: a changed to 2, b was deleted, d was inserted.
    world
        .baseline(NOON + 2 * HOUR, &[("a", "secret"), ("c", "1"), ("d", "1")])
        .await;
    let report = audited(&world, NOON + 2 * HOUR).await;
    assert_eq!(report.verdict(), Verdict::Different);
    let things = &report.tables["things"];
    assert_eq!(counts(things), [1, 1, 1, 1, 0]);
    assert_eq!(things.attributes.keys().collect::<Vec<_>>(), ["v"]);
    let kinds: Vec<_> = things
        .samples
        .iter()
        .map(|sample| sample.kind.as_str())
        .collect();
    assert_eq!(kinds, ["different", "extra", "missing"]);
    store_report(&world.store, &report).await.unwrap();
    let key = super::report_key(&report.label);
    let text = world.store.get(&key).await.unwrap().unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(serde_json::from_str::<AuditReport>(&text).unwrap(), report);
    assert!(report.metric_line(0).contains("\"audit_missing\":1"));
}

#[tokio::test]
async fn a_change_near_the_time_of_the_export_is_not_judged() {
    let world = World::new();
    world.baseline(NOON, &[("a", "1"), ("b", "1")]).await;
    let at = NOON + 2 * HOUR;
    world
        .changes(&[
            ("a", "1", at - MINUTE, Some("2")),
            ("b", "2", at + MINUTE, Some("2")),
        ])
        .await;
    // The export was a little before a's change, and a little after b's.
    world.baseline(at, &[("a", "1"), ("b", "2")]).await;
    let report = audited(&world, at).await;
    assert_eq!(counts(&report.tables["things"]), [0, 0, 0, 0, 2]);
    assert_eq!(report.verdict(), Verdict::Equal);
}

#[tokio::test]
async fn a_first_baseline_has_nothing_to_differ_from() {
    let world = World::new();
    world
        .changes(&[("a", "1", NOON - 2 * HOUR, Some("1"))])
        .await;
    world.baseline(NOON, &[("a", "1"), ("b", "1")]).await;
    let report = audited(&world, NOON).await;
    assert_eq!(report.verdict(), Verdict::First);
    assert_eq!(counts(&report.tables["things"]), [1, 1, 0, 0, 0]);
    assert!(report.metric_line(0).contains("\"audit_missing\":0"));
}
