use serde_json::json;

use crate::world::{Run, World, shop_schemas};

/// A stream event with one order of 2026-05-01.
fn event(number: u32) -> String {
    let keys = format!(r#"{{"PK":{{"S":"USER#1"}},"SK":{{"S":"ORDER#{number}"}}}}"#);
    let image = keys.replace("}}}", r#"}},"total":{"N":"12.5"}}"#);
    format!(
        r#"{{"Records":[{{"eventID":"e{number}","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{{"ApproximateCreationDateTime":1777593601,"Keys":{keys},"NewImage":{image},"SequenceNumber":"{number:021}","StreamViewType":"NEW_AND_OLD_IMAGES"}},"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-05-01T00:00:00.000"}}]}}"#
    )
}

/// A lake with four change objects of one day.
fn world() -> World {
    let world = World::new();
    shop_schemas(&world);
    for number in 1..=4 {
        let args = ["replay", "-", "--lake", "lake", "--schemas", "schemas"];
        world
            .run_with_input(&args, event(number).as_bytes())
            .exits(0);
    }
    world
}

fn compact(world: &World, more: &[&str]) -> Run {
    let args = ["compact", "lake", "--schemas", "schemas"];
    world.run(&[&args[..], more].concat())
}

/// What `show --changes` and `current` print, and how many objects `tables` counts.
fn seen(world: &World) -> (String, String, serde_json::Value) {
    let show = ["show", "lake", "orders", "--changes", "--format", "csv"];
    let current = ["current", "lake", "orders", "--format", "csv"];
    let tables = ["tables", "lake", "--format", "json"];
    let tables = world.run(&tables).exits(0).json();
    let changes = &tables["tables"][0]["changes"];
    (
        world.run(&show).exits(0).out,
        world.run(&current).exits(0).out,
        json!([
            changes["objects"],
            changes["rows"],
            changes["superseded"]["objects"]
        ]),
    )
}

#[test]
fn small_objects_of_closed_days_become_one_and_nobody_sees_a_difference() {
    let world = world();
    let before = seen(&world);
    assert_eq!(before.2, json!([4, 4, 0]));
    let dry = compact(&world, &["--dry-run"]).exits(0);
    assert!(
        dry.out.contains("2026-05-01") && dry.err.contains("nothing was written"),
        "{dry:#?}"
    );
    assert_eq!(seen(&world), before);

    let run = compact(&world, &[]).exits(0);
    assert!(
        run.out.contains("4 objects") && run.out.contains("became 1 object,"),
        "{run:#?}"
    );
    assert!(run.err.contains("4 objects merged into 1"), "{run:#?}");
    let during = seen(&world);
    assert_eq!((&during.0, &during.1), (&before.0, &before.1));
    assert_eq!(during.2, json!([1, 4, 4]));
    let tables = world.run(&["tables", "lake"]).exits(0);
    assert!(
        tables.err.contains("not counted: 4 objects"),
        "{}",
        tables.err
    );

    // Nothing is due: not merging, not deleting.
    let again = compact(&world, &["--format", "json"]).exits(0).json();
    assert_eq!(again["deleted"]["objects"], 0);
    assert_eq!(again["in_grace"]["objects"], 4);
    assert_eq!(again["tables"], json!({}));
    let last = compact(&world, &["--grace-hours", "0", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(last["deleted"]["objects"], 4);
    assert_eq!(
        (&last["objects_before"], &last["problems"]),
        (&last["objects_after"], &json!([]))
    );
    let after = seen(&world);
    assert_eq!((&after.0, &after.1), (&before.0, &before.1));
    assert_eq!(after.2, json!([1, 4, 0]));
}

#[test]
fn days_that_are_not_closed_and_days_that_cannot_be_merged_are_left() {
    let world = world();
    let run = compact(&world, &["--before", "2026-05-01"]).exits(0);
    assert!(
        run.err.contains("nothing to merge before 2026-05-01"),
        "{}",
        run.err
    );
    let run = compact(&world, &["--before", "May"]).exits(2);
    assert!(run.err.contains("YYYY-MM-DD"), "{}", run.err);
    compact(&world, &["--target-mb", "0"]).exits(2);
    compact(&world, &["--spool", "nowhere"]).exits(2);
    world.write(
        "lake/changes/orders/dt=2026-05-01/broken.parquet",
        "PAR1 no",
    );
    let run = compact(&world, &[]).exits(1);
    assert!(run.err.contains("broken.parquet"), "{}", run.err);
    assert!(!world.path("lake/state/compactions").exists());
}
