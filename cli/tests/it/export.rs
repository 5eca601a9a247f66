use dynalake_export_job::export_writer::{ExportSpec, write_full_export};
use dynalake_export_job::format::DataFormat;

use crate::world::{MAY_1, World, shop_schemas};

const ITEMS: [&str; 5] = [
    r#"{"PK":{"S":"USER#1"},"SK":{"S":"PROFILE"},"name":{"S":"山田"},"tags":{"SS":["b","a"]}}"#,
    r#"{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#7"},"total":{"N":"12.50"},"quantity":{"N":"2"}}"#,
    r#"{"PK":{"S":"USER#2"},"SK":{"S":"ORDER#8"},"total":{"N":"0.125"}}"#,
    r#"{"PK":{"S":"USER#2"},"SK":{"S":"ORDER#9"},"quantity":{"S":"many"}}"#,
    r#"{"PK":{"S":"COUPON#1"},"SK":{"S":"x"}}"#,
];

/// A world with schemas and the export of the items; the export's folder.
fn world() -> (World, String) {
    world_in(DataFormat::Json)
}

fn world_in(format: DataFormat) -> (World, String) {
    let world = World::new();
    shop_schemas(&world);
    let spec = ExportSpec {
        format,
        data_files: 2,
        ..ExportSpec::new("shop", MAY_1)
    };
    let folder = write_full_export(&world.path("export"), &spec, ITEMS).unwrap();
    let folder = folder.to_str().unwrap().to_owned();
    (world, folder)
}

#[test]
fn an_export_becomes_tables_and_every_item_is_accounted_for() {
    for format in [DataFormat::Json, DataFormat::Ion] {
        becomes_tables(world_in(format));
    }
}

fn becomes_tables((world, source): (World, String)) {
    let args = [
        "export",
        "convert",
        &source,
        "--lake",
        "lake",
        "--schemas",
        "schemas",
    ];
    let run = world.run(&args).exits(0);
    assert!(
        run.out.contains("5 items = 4 rows + 1 in quarantine"),
        "{run:#?}"
    );
    assert!(run.err.contains("2 of 2 data files done"), "{}", run.err);

    // Again: nothing is left to do, and the report is the same.
    let report = world
        .run(&[&args[..], &["--format", "json"]].concat())
        .exits(0)
        .json();
    assert_eq!(report["items"], 5);
    assert_eq!(report["files"]["resumed"], 2);
    assert_eq!(report["tables"]["orders"]["rows"], 2);
    assert_eq!(
        report["quarantine_reasons"],
        serde_json::json!({"mismatch": 1})
    );

    // And the other commands see it.
    let tables = world
        .run(&["tables", "lake", "--format", "json"])
        .exits(0)
        .json();
    let names: Vec<&str> = tables["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["table"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["orders", "unmatched", "users"]);
    assert_eq!(tables["tables"][0]["snapshots"][0]["complete"], true);
    let users = world
        .run(&["show", "lake", "users", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(users[0]["name"], "山田");
    assert_eq!(users[0]["_rest"], r#"{"tags":{"SS":["a","b"]}}"#);
    let order = world
        .run(&[
            "show",
            "lake",
            "orders",
            "--where",
            "order_id=8",
            "--format",
            "json",
        ])
        .exits(0);
    assert_eq!(order.json()[0]["total"], serde_json::Value::Null);
    assert_eq!(order.json()[0]["_rest"], r#"{"total":{"N":"0.125"}}"#);
    let quarantine = world
        .run(&["quarantine", "show", "lake", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(quarantine[0]["reason"], "mismatch");
}

#[test]
fn refusals_name_the_file_and_publish_nothing() {
    let (world, source) = world();
    let data = std::path::Path::new(&source).join("data");
    let first = std::fs::read_dir(data)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::remove_file(&first).unwrap();
    let run = world
        .run(&[
            "export",
            "convert",
            &source,
            "--lake",
            "lake",
            "--schemas",
            "schemas",
        ])
        .exits(1);
    assert!(
        run.err
            .contains(first.file_name().unwrap().to_str().unwrap()),
        "{}",
        run.err
    );
    assert!(run.err.contains("hint:"), "{}", run.err);
    assert!(!world.path("lake/snapshot").exists());
}

#[test]
fn what_is_no_export_or_no_schema_is_a_usage_error() {
    let (world, source) = world();
    let run = world
        .run(&[
            "export",
            "convert",
            "nowhere",
            "--lake",
            "lake",
            "--schemas",
            "schemas",
        ])
        .exits(2);
    assert!(run.err.contains("manifest-summary.json"), "{}", run.err);
    let run = world
        .run(&[
            "export",
            "convert",
            &source,
            "--lake",
            "lake",
            "--schemas",
            "nowhere",
        ])
        .exits(2);
    assert!(
        run.err.contains("dynalake schemas check nowhere"),
        "{}",
        run.err
    );
    let run = world.run(&["export", "convert", &source]).exits(2);
    assert!(run.err.contains("--lake"), "{}", run.err);
}

#[test]
fn quarantined_items_join_their_snapshot_once_they_fit() {
    for format in [DataFormat::Json, DataFormat::Ion] {
        join_their_snapshot(world_in(format));
    }
}

fn join_their_snapshot((world, source): (World, String)) {
    world
        .run(&[
            "export",
            "convert",
            &source,
            "--lake",
            "lake",
            "--schemas",
            "schemas",
        ])
        .exits(0);
    let order = std::fs::read_to_string(world.path("schemas/order.toml")).unwrap();
    let text = order.replace(
        "{ type = \"int\", on_mismatch = \"quarantine\" }",
        "\"string\"",
    );
    world.write("schemas/order.toml", text);
    world
        .run(&["quarantine", "replay", "lake", "--schemas", "schemas"])
        .exits(0);
    let run = world
        .run(&[
            "show",
            "lake",
            "orders",
            "--where",
            "order_id=9",
            "--format",
            "json",
        ])
        .exits(0);
    let order = &run.json()[0];
    assert_eq!(
        (&order["quantity"], &order["_source"]),
        (&"many".into(), &"replay".into())
    );
    assert_eq!(
        (&order["_op"], &order["_at"]),
        (&"SNAPSHOT".into(), &"2026-05-01T00:00:00Z".into())
    );
}
