//! Every trap of the rule (design.md, section 5), each with keys of its own, in one lake.

use dynalake_tests::{duckdb, duckdb_available};
use serde_json::json;

use super::assert_agreement;
use super::world::{Change, Key, M, World};

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// Four minutes after midnight: B − M is on the day before.
pub const B: i64 = 20_000 * DAY + 240 * SECOND;
/// The stream before it was made anew, and after.
const FIRST: &str = "2024-01-01T00:00:00.000";
const SECOND_STREAM: &str = "2024-06-01T00:00:00.000";

fn put(key: Key, number: &'static str, at: i64, value: &'static str) -> Change {
    Change {
        key,
        stream: FIRST,
        number,
        at,
        before: Some("thing"),
        after: Some(("thing", value)),
    }
}

fn insert(key: Key, number: &'static str, at: i64, value: &'static str) -> Change {
    Change {
        before: None,
        ..put(key, number, at, value)
    }
}

fn delete(key: Key, number: &'static str, at: i64) -> Change {
    Change {
        after: None,
        ..put(key, number, at, "")
    }
}

/// The keys of a table with a sort key, or of one without.
fn key(sort_key: bool, name: &'static str) -> Key {
    (name, sort_key.then_some("x"))
}

/// A lake that has them all; values say whether a row may be seen.
pub async fn trapped(sort_key: bool) -> World {
    let mut world = World::new(sort_key);
    let k = |name| key(sort_key, name);
    // One delivery per line, so that most keys are spread over objects.
    let deliveries = [
        // Numbers of different lengths.
        vec![put(k("digits"), "10000000000000000000000", B, "right")],
        vec![put(k("digits"), "9999999999999999999999", B, "wrong")],
        // A gap: what came before it must not beat the export that repaired it.
        vec![put(k("gap"), "101", B - HOUR, "wrong")],
        // The insert was seen, the delete was lost, the export has no such item.
        vec![insert(k("ghost"), "102", B - HOUR, "wrong")],
        // Clocks differ: not in the export, though dated before it. To the millisecond.
        vec![put(k("margin"), "103", B - 200 * SECOND, "right")],
        vec![put(k("margin, last"), "104", B - M, "right")],
        vec![put(k("margin, past"), "105", B - M - 1, "wrong")],
        // Times that do not rise with the numbers: the newest row is dated before the one that
        // makes changes decide; by a little, and on the day before that of B - M.
        vec![put(k("backwards"), "106", B + SECOND, "wrong")],
        vec![put(k("backwards"), "107", B - M - 1, "right")],
        vec![put(k("backwards, a day"), "108", B + SECOND, "wrong")],
        vec![put(
            k("backwards, a day"),
            "109",
            B - M - 30 * HOUR,
            "right",
        )],
        vec![put(k("backwards, gone"), "110", B + SECOND, "wrong")],
        vec![delete(k("backwards, gone"), "111", B - M - 2)],
        // Deletes: after the export, and before it (it was put again in a gap).
        vec![delete(k("deleted"), "112", B + 10)],
        vec![delete(k("back again"), "113", B - HOUR)],
        // Delete and insert again within a second, in one delivery and in two.
        vec![
            insert(k("again"), "114", B + SECOND, "wrong"),
            delete(k("again"), "115", B + SECOND),
            insert(k("again"), "116", B + SECOND, "right"),
        ],
        vec![delete(k("again, late"), "118", B + SECOND)],
        vec![insert(k("again, late"), "117", B + SECOND, "wrong")],
        // Delivered twice, the second time in other bounds.
        vec![
            put(k("twice"), "119", B + DAY, "wrong"),
            put(k("twice"), "120", B + DAY, "right"),
        ],
        vec![put(k("twice"), "120", B + DAY, "right")],
        // Without a creation time: retried a day later, it has another time.
        vec![put(k("no time"), "121", B - HOUR, "right")],
        vec![put(k("no time"), "121", B + DAY, "right")],
        // The stream was made anew; its numbers begin anew.
        vec![put(k("new stream"), "900", B + SECOND, "wrong")],
        vec![Change {
            stream: SECOND_STREAM,
            ..put(k("new stream"), "1", B + SECOND, "right")
        }],
        // Moved to the other table, and back.
        vec![Change {
            after: Some(("other", "right")),
            ..put(k("moved"), "122", B + SECOND, "")
        }],
        vec![Change {
            after: Some(("other", "wrong")),
            ..put(k("moved twice"), "123", B + SECOND, "")
        }],
        vec![Change {
            before: Some("other"),
            ..put(k("moved twice"), "124", B + 2 * SECOND, "right")
        }],
        // Newer than the export, older than it, and both.
        vec![put(k("changed"), "126", B + 5 * DAY, "right")],
        vec![put(k("changed"), "125", B - 5 * DAY, "wrong")],
        vec![insert(k("new"), "127", B + SECOND, "right")],
        // Keys that differ in case or in where a separator stands.
        vec![put(k("case"), "128", B + SECOND, "right, lower")],
        vec![delete(("CASE", sort_key.then_some("x")), "129", B + SECOND)],
        vec![put(
            ("a#b", sort_key.then_some("c")),
            "130",
            B + SECOND,
            "right 1",
        )],
        vec![delete(("a", sort_key.then_some("b#c")), "131", B + SECOND)],
        // Or in what a careless comparison passes over: a blank, an accent's form, a NUL.
        vec![
            delete(("pad ", sort_key.then_some("x")), "132", B + SECOND),
            delete(("e\u{301}", sort_key.then_some("x")), "133", B + SECOND),
            delete(("nul\0", sort_key.then_some("x")), "134", B + SECOND),
        ],
        vec![delete(
            ("\u{ffff}", sort_key.then_some("x")),
            "135",
            B + SECOND,
        )],
    ];
    for delivery in &deliveries {
        world.deliver(delivery).await;
    }
    let thing = |key, value| (key, "thing", value);
    let mut items = vec![
        thing(k("gap"), "right"),
        thing(k("margin"), "wrong"),
        thing(k("margin, last"), "wrong"),
        thing(k("margin, past"), "right"),
        thing(k("backwards"), "wrong"),
        thing(k("backwards, a day"), "wrong"),
        thing(k("backwards, gone"), "wrong"),
        thing(k("deleted"), "wrong"),
        thing(k("back again"), "right"),
        thing(k("again, late"), "wrong"),
        thing(k("no time"), "wrong"),
        thing(k("moved"), "wrong"),
        thing(k("changed"), "wrong"),
        thing(k("untouched"), "right"),
        thing(k("case"), "wrong"),
        thing(k("CASE"), "wrong"),
        thing(k("Case"), "right, mixed"),
        thing(k("pad "), "wrong"),
        thing(k("pad"), "right, unpadded"),
        thing(k("e\u{301}"), "wrong"),
        thing(k("\u{e9}"), "right, one letter"),
        thing(k("nul\0"), "wrong"),
        thing(k("nul"), "right, without NUL"),
        // Sorted before the key above in UTF-16, behind it in UTF-8.
        thing(k("\u{ffff}"), "wrong"),
        thing(k("\u{10000}"), "right, beyond"),
        (k("other"), "other", "right"),
    ];
    if sort_key {
        // The same partition key, another sort key.
        items.push(thing(("deleted", Some("y")), "right"));
        items.push(thing(("a", Some("b#c")), "wrong"));
        items.push(thing(("ab", Some("#c")), "right 2"));
    }
    world.commit(B, &items).await;
    world
}

#[tokio::test]
async fn views_give_what_the_rule_gives() {
    if !duckdb_available() {
        return;
    }
    for sort_key in [true, false] {
        let world = trapped(sort_key).await;
        // The traps are as they are meant.
        let things = world.expected("thing");
        assert!(
            things.values().all(|value| value.starts_with("right")),
            "{things:?}"
        );
        assert!(
            things.len() > 12 && world.expected("other").len() == 2,
            "{things:?}"
        );
        assert_agreement(&world).await;
    }
}

#[tokio::test]
async fn an_older_export_committed_late_changes_nothing() {
    if !duckdb_available() {
        return;
    }
    let mut world = World::new(true);
    let k = |name| key(true, name);
    world
        .commit(
            B - 10 * DAY,
            &[(k("a"), "thing", "wrong"), (k("b"), "thing", "wrong")],
        )
        .await;
    world.commit(B, &[(k("a"), "thing", "right")]).await;
    assert_agreement(&world).await;
}

#[tokio::test]
async fn without_a_baseline_changes_decide_alone() {
    if !duckdb_available() {
        return;
    }
    let mut world = World::new(true);
    let k = |name| key(true, name);
    world
        .deliver(&[
            put(k("a"), "10", B - 900 * DAY, "right"),
            put(k("b"), "11", B, "wrong"),
        ])
        .await;
    world
        .deliver(&[
            put(k("a"), "9", B, "wrong"),
            delete(k("b"), "12", B - 30 * DAY),
        ])
        .await;
    assert_agreement(&world).await;
}

#[tokio::test]
async fn tables_without_files_are_empty_and_later_files_are_seen() {
    if !duckdb_available() {
        return;
    }
    let mut world = World::new(true);
    std::fs::create_dir_all(world.root()).unwrap();
    // Written while the lake was empty, as `lake.sql` is.
    let script = world.script().await;
    for view in [
        "things",
        "things_flat",
        "things_history",
        "things_changes",
        "things_snapshot",
        "unmatched",
        "quarantine",
    ] {
        assert_eq!(
            duckdb(&format!("{script}\nSELECT * FROM {view}")),
            [] as [serde_json::Value; 0]
        );
    }
    assert_agreement(&world).await;
    world.deliver(&[put(key(true, "a"), "1", B, "right")]).await;
    assert_eq!(super::things(&script), world.expected("thing"));
    // Baseline, but no file of the table in it.
    world
        .commit(B + DAY, &[(key(true, "o"), "other", "right")])
        .await;
    assert_agreement(&world).await;
    let quarantined = "{\"reason\":\"bad_key\",\"entity\":null,\"path\":\"Keys\",\"message\":\"m\",\
        \"source\":\"stream\",\"origin\":{\"stream\":{\"arn\":null}},\"at\":5,\"event_id\":\"e\",\
        \"sequence_number\":\"1\",\"payload\":\"{}\",\"payload_base64\":null}\n";
    let key = "quarantine/dt=2026-05-01/a.jsonl";
    world.store.put(key, quarantined.into()).await.unwrap();
    let script = world.script().await;
    let rows = duckdb(&format!(
        "{script}\nSELECT reason, path, \"at\", payload, dt FROM quarantine"
    ));
    assert_eq!(
        json!(rows),
        json!([{"reason": "bad_key", "path": "Keys", "at": 5, "payload": "{}", "dt": "2026-05-01"}])
    );
}

#[tokio::test]
async fn the_script_refuses_a_lake_with_another_baseline() {
    if !duckdb_available() {
        return;
    }
    let mut world = World::new(true);
    world.deliver(&[put(key(true, "a"), "1", B, "right")]).await;
    let script = world.script().await;
    world
        .commit(B + DAY, &[(key(true, "a"), "thing", "right")])
        .await;
    let refused = std::panic::catch_unwind(|| duckdb(&format!("{script}\nSELECT 1")));
    let refused = refused.unwrap_err();
    let message = refused.downcast_ref::<String>().unwrap();
    assert!(
        message.contains("write it anew with `dynalake duckdb`"),
        "{message}"
    );
}

#[tokio::test]
async fn history_has_one_row_per_change() {
    if !duckdb_available() {
        return;
    }
    let world = trapped(true).await;
    let script = world.script().await;
    let select = "SELECT _pk, _sk, _stream, _seq, epoch_ms(_at) AS at FROM";
    let athena = world
        .athena(&[("history", &format!("{select} lake.things_history"))])
        .await;
    let duckdb = duckdb(&format!("{script}\n{select} things_history"));
    for rows in [&duckdb, &athena["history"]] {
        let text = |row: &serde_json::Value, name: &str| row[name].as_str().map(str::to_owned);
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                let key = (text(row, "_pk").unwrap(), text(row, "_sk"));
                let position = (text(row, "_stream").unwrap(), text(row, "_seq").unwrap());
                (
                    (key.0, key.1, position.0, position.1),
                    row["at"].as_i64().unwrap(),
                )
            })
            .collect();
        let expected = world.expected_history("thing");
        assert_eq!(found.len(), expected.len());
        assert_eq!(
            found
                .into_iter()
                .collect::<std::collections::BTreeMap<_, _>>(),
            expected
        );
    }
}
