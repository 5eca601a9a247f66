use dynalake_export_job::export_writer::{ExportSpec, write_full_export};
use serde_json::json;

use crate::world::{MAY_1, World, shop_schemas};

/// The demo's lake, whose export is a committed baseline.
fn demo() -> World {
    let world = World::new();
    world.run(&["demo", "shop"]).exits(0);
    world
}

#[test]
fn a_table_is_its_baseline_and_what_has_changed_since() {
    let world = demo();
    let rows = |more: &[&str]| {
        let run = world.run(
            &[
                &["current", "shop/lake", "orders", "--format", "json"],
                more,
            ]
            .concat(),
        );
        let rows: Vec<_> = run
            .exits(0)
            .json()
            .as_array()
            .unwrap()
            .iter()
            .map(|row| json!([row["order_id"], row["status"], row["total"]]))
            .collect();
        json!(rows)
    };
    let before = json!([
        ["O-9001", "paid", "6772.00"],
        ["O-9002", "open", "1296.00"],
        ["O-9003", "shipped", "9020.50"]
    ]);
    let after = json!([
        ["O-9001", "paid", "6772.00"],
        ["O-9002", "shipped", "1296.00"],
        ["O-9003", "shipped", "9020.50"],
        ["O-9005", "open", "4510.50"]
    ]);
    assert_eq!(rows(&[]), after);
    assert_eq!(rows(&["--schemas", "shop/schemas/ecommerce"]), after);
    assert_eq!(rows(&["--as-of", "2026-11-01T00:00:00Z"]), before);
    assert_eq!(rows(&["--as-of", "1793491200"]), before);
    assert_eq!(rows(&["--as-of", "1793491200000"]), before);
    // Deletes are gone, by people or by time to live.
    let keys = world
        .run(&[
            "current",
            "shop/lake",
            "idempotency_keys",
            "--format",
            "csv",
        ])
        .exits(0);
    assert!(!keys.out.contains("IDEM#2f1c#taro#6772"), "{}", keys.out);
}

#[test]
fn rows_may_become_one_parquet_file() {
    let world = demo();
    let args = [
        "current",
        "shop/lake",
        "orders",
        "--format",
        "parquet",
        "--output",
        "orders.parquet",
    ];
    let run = world.run(&args).exits(0);
    assert!(
        run.err.contains("4 rows, from baseline 20261101T000000Z"),
        "{}",
        run.err
    );
    let inspected = world.run(&["inspect", "orders.parquet"]).exits(0);
    assert!(
        inspected.out.contains("total") && inspected.out.contains("12,2"),
        "{}",
        inspected.out
    );
    world.run(&args[..5]).exits(2);
}

#[test]
fn what_cannot_be_is_said_with_a_remedy() {
    let world = demo();
    let unknown = world.run(&["current", "shop/lake", "order"]).exits(2);
    assert!(
        unknown.err.contains("`order`") && unknown.err.contains("dynalake tables"),
        "{}",
        unknown.err
    );
    let instant = world
        .run(&["current", "shop/lake", "orders", "--as-of", "yesterday"])
        .exits(2);
    assert!(
        instant.err.contains("`yesterday`") && instant.err.contains("2026-05-01"),
        "{}",
        instant.err
    );
}

/// The stream is read with the new schemas only, so that nobody tells the old table of what left it.
#[test]
fn schemas_that_route_otherwise_leave_no_row_behind_once_there_is_a_new_baseline() {
    const HOUR: i64 = 3_600_000;
    let item =
        r#"{"PK":{"S":"USER#1"},"SK":{"S":"PROFILE"},"kind":{"S":"vip"},"name":{"S":"Ann"}}"#;
    let world = World::new();
    shop_schemas(&world);
    world.run(&["schemas", "lock", "schemas"]).exits(0);
    let convert = |at: i64| {
        let spec = ExportSpec {
            data_files: 1,
            ..ExportSpec::new("shop", at)
        };
        let source = write_full_export(&world.path("export"), &spec, [item]).unwrap();
        let source = source.to_str().unwrap();
        let args = [
            "export",
            "convert",
            source,
            "--lake",
            "lake",
            "--schemas",
            "schemas",
        ];
        world.run(&args).exits(0);
    };
    let rows = |table: &str| {
        let args = [
            "current",
            "lake",
            table,
            "--schemas",
            "schemas",
            "--format",
            "json",
        ];
        world.run(&args).exits(0).json().as_array().unwrap().len()
    };
    convert(MAY_1);
    assert_eq!(rows("users"), 1);

    world.write(
        "schemas/vip.toml",
        "entity = \"vip\"\ntable = \"vips\"\n[match]\npartition_key = \"USER#{user_id}\"\n\
         sort_key = \"PROFILE\"\nattributes = { kind = \"vip\" }\n[columns]\nuser_id = \"string\"\n",
    );
    let check = world.run(&["schemas", "check", "schemas"]).exits(0);
    assert!(check.out.contains("table `vips` is new"), "{}", check.out);
    let event = json!({"Records": [{
        "eventID": "e1", "eventName": "MODIFY", "eventSource": "aws:dynamodb",
        "eventSourceARN":
            "arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-05-01T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": (MAY_1 + HOUR) / 1000,
            "Keys": {"PK": {"S": "USER#1"}, "SK": {"S": "PROFILE"}},
            "NewImage": serde_json::from_str::<serde_json::Value>(item).unwrap(),
            "OldImage": serde_json::from_str::<serde_json::Value>(item).unwrap(),
            "SequenceNumber": "100000000000000000001",
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }]});
    world.write("event.json", event.to_string());
    let args = [
        "replay",
        "event.json",
        "--lake",
        "lake",
        "--schemas",
        "schemas",
    ];
    world.run(&args).exits(0);
    assert_eq!((rows("users"), rows("vips")), (1, 1), "as `check` said");
    convert(MAY_1 + 2 * HOUR);
    assert_eq!((rows("users"), rows("vips")), (0, 1));
}
