use dynalake_export_job::export_writer::{ExportSpec, write_full_export};
use serde_json::json;

use crate::world::{MAY_1, Run, World, shop_schemas};

const DAY: i64 = 86_400_000;

/// A world with schemas.
fn world() -> World {
    let world = World::new();
    shop_schemas(&world);
    world
}

/// Converts an export with so many users, taken `day` days after the first of May.
fn convert(world: &World, day: i64, users: usize, more: &[&str]) -> Run {
    let items: Vec<String> = (0..users)
        .map(|n| format!(r#"{{"PK":{{"S":"USER#{n}"}},"SK":{{"S":"PROFILE"}}}}"#))
        .collect();
    let spec = ExportSpec {
        prefix: Some(format!("day{day}")),
        ..ExportSpec::new("shop", MAY_1 + day * DAY)
    };
    let folder = write_full_export(&world.path("bucket"), &spec, items).unwrap();
    let args = [
        "export",
        "convert",
        folder.to_str().unwrap(),
        "--lake",
        "lake",
        "--schemas",
        "schemas",
    ];
    world.run(&[&args[..], more].concat())
}

fn current(world: &World) -> serde_json::Value {
    let args = ["baselines", "list", "lake", "--format", "json"];
    world.run(&args).exits(0).json()["current"].take()
}

fn rows(world: &World) -> usize {
    let args = ["show", "lake", "users", "--format", "json"];
    let rows = world.run(&args).exits(0).json();
    rows.as_array().unwrap().len()
}

#[test]
fn readers_take_a_converted_export_once_it_is_committed() {
    let world = world();
    let run = convert(&world, 0, 2, &["--no-commit"]).exits(0);
    assert!(run.out.contains("not committed"), "{}", run.out);
    let run = world.run(&["show", "lake", "users"]).exits(2);
    assert!(
        run.err.contains("no baseline") && run.err.contains("--export"),
        "{}",
        run.err
    );
    let run = world.run(&["tables", "lake"]).exits(0);
    assert!(run.out.contains("1 (1 not committed)"), "{}", run.out);
    let run = world.run(&["baselines", "list", "lake"]).exits(0);
    assert!(run.err.contains("has no baseline"), "{}", run.err);

    let run = convert(&world, 0, 2, &[]).exits(0);
    assert!(run.out.contains("committed as baseline 20260501T000000Z"));
    assert_eq!(
        (rows(&world), current(&world)),
        (2, "20260501T000000Z".into())
    );
    let again = convert(&world, 0, 2, &["--format", "json"]).exits(0).json();
    assert_eq!(
        (&again["baseline"], &again["items"]),
        (&"unchanged".into(), &2.into())
    );

    // A newer one without users: that is what is shown, not the older one's users.
    let report = convert(&world, 7, 0, &["--format", "json"]).exits(0).json();
    assert_eq!(report["baseline"], "committed");
    assert_eq!(
        (rows(&world), current(&world)),
        (0, "20260508T000000Z".into())
    );
    let run = world
        .run(&["show", "lake", "users", "--where", "name=x"])
        .exits(0);
    assert!(
        run.err.contains("users as of baseline 20260508T000000Z"),
        "{}",
        run.err
    );
    assert!(run.err.contains("no rows"), "{}", run.err);

    // A late backfill of an older export does not win.
    let run = convert(&world, 3, 5, &[]).exits(0);
    assert!(
        run.err.contains("readers keep baseline 20260508T000000Z"),
        "{}",
        run.err
    );
    assert_eq!(current(&world), "20260508T000000Z");
    let args = ["tables", "lake", "--format", "json"];
    let tables = world.run(&args).exits(0).json();
    assert_eq!(tables["baseline"], "20260508T000000Z");
    let snapshots: Vec<_> = tables["tables"][0]["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["committed"].clone(), one["current"].clone()))
        .collect();
    assert_eq!(
        snapshots,
        [(json!(true), json!(false)), (json!(true), json!(false))]
    );
}

#[test]
fn baselines_are_listed_dropped_and_retained() {
    let world = world();
    for day in [0, 7, 14, 21] {
        convert(&world, day, 3, &[]).exits(0);
    }
    let run = world.run(&["baselines", "list", "lake"]).exits(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 6, "{}", run.out);
    assert!(lines[2].starts_with("20260522T000000Z") && lines[2].contains("current"));
    assert!(lines[5].starts_with("20260501T000000Z") && !lines[5].contains("current"));

    let run = world
        .run(&["baselines", "drop", "lake", "20260522T000000Z"])
        .exits(2);
    assert!(run.err.contains("is the current one"), "{}", run.err);
    let run = world
        .run(&["baselines", "drop", "lake", "20200101T000000Z"])
        .exits(2);
    assert!(
        run.err.contains("no baseline 20200101T000000Z"),
        "{}",
        run.err
    );
    world.run(&["baselines", "drop", "lake", "../x"]).exits(2);
    let report = world
        .run(&[
            "baselines",
            "drop",
            "lake",
            "20260508T000000Z",
            "--format",
            "json",
        ])
        .exits(0)
        .json();
    assert_eq!(
        (&report["labels"], &report["objects"]),
        (&json!(["20260508T000000Z"]), &json!(1))
    );
    assert!(
        !world
            .path("lake/snapshot/users/export=20260508T000000Z/x")
            .exists()
    );
    // Forced: the one before it is current then, and in the views.
    world.write("lake/lake.sql", "");
    let run = world
        .run(&["baselines", "drop", "lake", "20260522T000000Z", "--force"])
        .exits(0);
    assert!(run.err.contains("lake.sql written anew"), "{}", run.err);
    let script = std::fs::read_to_string(world.path("lake/lake.sql")).unwrap();
    assert!(
        script.contains("b.\"export\" = '20260515T000000Z'"),
        "{script}"
    );
    assert_eq!(
        (rows(&world), current(&world)),
        (3, "20260515T000000Z".into())
    );
    // It can come back.
    convert(&world, 21, 3, &[]).exits(0);
    assert_eq!(current(&world), "20260522T000000Z");

    // All were committed a moment ago: a query that runs may still read any of them.
    let run = world
        .run(&["baselines", "retain", "lake", "--newest", "1"])
        .exits(0);
    assert!(run.err.contains("nothing to remove"), "{}", run.err);
    for label in ["20260501T000000Z", "20260515T000000Z", "20260522T000000Z"] {
        let path = format!("lake/state/baselines/{label}.json");
        let text = std::fs::read_to_string(world.path(&path)).unwrap();
        let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
        record["committed_at_ms"] = (MAY_1 + 22 * DAY).into();
        world.write(&path, record.to_string());
    }
    let run = world
        .run(&["baselines", "retain", "lake", "--newest", "2", "--dry-run"])
        .exits(0);
    assert_eq!(run.out, "20260501T000000Z\n");
    assert!(run.err.contains("would remove 1 baselines"), "{}", run.err);
    let args = [
        "baselines",
        "retain",
        "lake",
        "--days",
        "0",
        "--format",
        "json",
    ];
    let report = world.run(&args).exits(0).json();
    assert_eq!(
        report["labels"],
        json!(["20260501T000000Z", "20260515T000000Z"])
    );
    assert_eq!(
        (rows(&world), current(&world)),
        (3, "20260522T000000Z".into())
    );
    world.run(&["baselines", "retain", "lake"]).exits(2);
    world
        .run(&["baselines", "retain", "lake", "--newest", "0"])
        .exits(2);
}

#[test]
fn a_lock_that_was_left_is_named_and_removed() {
    let world = world();
    world.write(
        "lake/state/lock.json",
        r#"{"holder":"bob@lab","purpose":"commit of baseline x","since_ms":1777593600000}"#,
    );
    let run = convert(&world, 0, 2, &[]).exits(3);
    for part in [
        "bob@lab",
        "commit of baseline x",
        "2026-05-01T00:00:00Z",
        "baselines unlock",
    ] {
        assert!(run.err.contains(part), "{}", run.err);
    }
    let run = world.run(&["baselines", "list", "lake"]).exits(0);
    assert!(run.err.contains("locked by bob@lab"), "{}", run.err);
    let run = world.run(&["baselines", "unlock", "lake"]).exits(0);
    assert!(run.out.contains("bob@lab"), "{}", run.out);
    let run = world.run(&["baselines", "unlock", "lake"]).exits(0);
    assert!(run.err.contains("not locked"), "{}", run.err);
    convert(&world, 0, 2, &[]).exits(0);
    assert_eq!(current(&world), "20260501T000000Z");
}
