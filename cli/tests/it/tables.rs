use serde_json::json;

use crate::world::{World, small_lake};

#[test]
fn tables_of_a_lake_are_counted_from_footers() {
    let world = small_lake();
    let run = world.run(&["tables", "lake", "--format", "json"]).exits(0);
    let mut report = run.json();
    for table in report["tables"].as_array_mut().unwrap() {
        table["changes"]["bytes"]
            .take()
            .as_u64()
            .filter(|bytes| *bytes > 0)
            .unwrap();
        for snapshot in table["snapshots"].as_array_mut().unwrap() {
            snapshot["bytes"]
                .take()
                .as_u64()
                .filter(|bytes| *bytes > 0)
                .unwrap();
        }
    }
    assert_eq!(
        report,
        json!({
            "lake": "lake",
            "baseline": "20260501T000000Z",
            "tables": [
                {
                    "table": "orders",
                    "changes": {
                        "days": 2, "first_day": "2026-05-01", "last_day": "2026-05-02",
                        "last_change": "2026-05-02T00:00:00.123Z",
                        "objects": 3, "rows": 5, "bytes": null,
                        "superseded": {"objects": 0, "bytes": 0},
                    },
                    "snapshots": [
                        {"export": "20260501T000000Z", "complete": true, "committed": true, "current": true,
                         "objects": 1, "rows": 4, "bytes": null},
                        {"export": "20260502T000000Z", "complete": false, "committed": false, "current": false,
                         "objects": 1, "rows": 1, "bytes": null},
                    ],
                },
                {
                    "table": "users",
                    "changes": {
                        "days": 1, "first_day": "2026-05-01", "last_day": "2026-05-01",
                        "last_change": "2026-05-01T00:00:00Z",
                        "objects": 1, "rows": 1, "bytes": null,
                        "superseded": {"objects": 0, "bytes": 0},
                    },
                    "snapshots": [],
                },
            ],
            "quarantine_objects": 1,
        })
    );
    assert_eq!(run.err, "");
}

#[test]
fn tables_for_people_say_what_is_complete_and_point_at_quarantine() {
    let run = small_lake().run(&["tables", "lake"]).exits(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", run.out);
    assert!(lines[0].starts_with("table "), "{}", run.out);
    assert!(lines[2].contains("20260501T000000Z") && lines[2].contains("2 (1 incomplete)"));
    assert!(lines[3].starts_with("users "));
    assert!(
        run.err.contains("dynalake quarantine list lake"),
        "{}",
        run.err
    );
}

#[test]
fn a_lake_that_is_not_there_is_a_usage_error() {
    let world = World::new();
    let run = world.run(&["tables", "nowhere"]).exits(2);
    assert!(
        run.err.contains("`nowhere` does not exist") && run.err.contains("hint:"),
        "{}",
        run.err
    );
    let run = world.run(&["tables", "s3a://bucket/x"]).exits(2);
    assert!(run.err.contains("s3://"), "{}", run.err);
    // No region, no guess.
    let run = world.run(&["tables", "s3://bucket/x"]).exits(2);
    assert!(run.err.contains("AWS_REGION"), "{}", run.err);
    world.write("empty/x", "");
    let run = world.run(&["tables", "empty"]).exits(0);
    assert!(run.err.contains("holds no tables"), "{}", run.err);
    assert_eq!(
        world
            .run(&["tables", "empty", "--format", "json"])
            .exits(0)
            .json()["tables"],
        serde_json::json!([])
    );
}

#[test]
fn a_broken_object_is_named() {
    let world = small_lake();
    world.write(
        "lake/changes/orders/dt=2026-05-02/broken.parquet",
        "PAR1 this is not Parquet",
    );
    let run = world.run(&["tables", "lake"]).exits(1);
    assert!(
        run.err
            .contains("changes/orders/dt=2026-05-02/broken.parquet"),
        "{}",
        run.err
    );
}
