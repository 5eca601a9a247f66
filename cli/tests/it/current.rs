use serde_json::json;

use crate::world::World;

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
