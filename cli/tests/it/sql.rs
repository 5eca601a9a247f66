use dynalake_export_job::export_writer::{ExportSpec, write_full_export};

use crate::world::{EVENT, MAY_1, World, shop_schemas};

const ITEMS: [&str; 1] =
    [r#"{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#7"},"total":{"N":"12.50"},"quantity":{"N":"2"}}"#];

/// A lake with changes and no baseline.
fn world() -> World {
    let world = World::new();
    shop_schemas(&world);
    world.write("event.json", EVENT);
    world
        .run(&[
            "replay",
            "event.json",
            "--lake",
            "lake",
            "--schemas",
            "schemas",
        ])
        .exits(0);
    world
}

fn convert(world: &World) {
    let spec = ExportSpec {
        data_files: 1,
        ..ExportSpec::new("shop", MAY_1)
    };
    let source = write_full_export(&world.path("export"), &spec, ITEMS).unwrap();
    let source = source.to_str().unwrap();
    world
        .run(&[
            "export",
            "convert",
            source,
            "--lake",
            "lake",
            "--schemas",
            "schemas",
        ])
        .exits(0);
}

#[test]
fn views_for_athena_hold_the_baseline_of_the_lake() {
    let world = world();
    let args = ["sql", "lake", "--schemas", "schemas", "--engine", "athena"];
    let run = world.run(&args).exits(0);
    assert!(run.err.contains("no baseline yet"), "{}", run.err);
    assert!(!run.out.contains("orders_snapshot"), "{}", run.out);
    convert(&world);
    let run = world.run(&args).exits(0);
    assert_eq!(run.err, "");
    for part in [
        "CREATE OR REPLACE VIEW \"shop\".\"orders\" AS\n",
        "CREATE OR REPLACE VIEW \"shop\".\"users_flat\" AS\n",
        "WHERE b.\"export\" = '20260501T000000Z'",
        "WHERE \"dt\" >= '2026-04-29'",
    ] {
        assert!(run.out.contains(part), "{part} is not in {}", run.out);
    }
    // Without a lake: schemas alone.
    let run = world
        .run(&["sql", "--schemas", "schemas", "--engine", "athena"])
        .exits(0);
    assert!(!run.out.contains("orders_snapshot") && run.err.contains("no lake is given"));
    let run = world
        .run(&["sql", "--schemas", "schemas", "--engine", "duckdb"])
        .exits(2);
    assert!(
        run.err.contains("no lake is given") && run.err.contains("hint:"),
        "{}",
        run.err
    );
}

#[test]
fn lake_sql_has_absolute_paths_and_follows_the_baseline() {
    let world = world();
    let run = world
        .run(&["duckdb", "lake", "--schemas", "schemas"])
        .exits(0);
    assert!(
        run.out.contains("lake.sql written (no baseline yet"),
        "{}",
        run.out
    );
    assert!(run.err.contains("duckdb -init"), "{}", run.err);
    let script = || std::fs::read_to_string(world.path("lake/lake.sql")).unwrap();
    let root = world.path("lake").canonicalize().unwrap();
    let pattern = format!("glob('{}/changes/orders/dt=*/*.parquet')", root.display());
    assert!(
        script().contains(&pattern),
        "{pattern} is not in {}",
        script()
    );
    assert!(!script().contains("20260501T000000Z"));
    convert(&world);
    assert!(
        script().contains("b.\"export\" = '20260501T000000Z'"),
        "{}",
        script()
    );

    // What is printed is what is written.
    let args = ["sql", "lake", "--schemas", "schemas", "--engine", "duckdb"];
    assert_eq!(world.run(&args).exits(0).out, script());
    let args = [
        "duckdb",
        "lake",
        "--schemas",
        "schemas",
        "--output",
        "other.sql",
    ];
    world.run(&args).exits(0);
    assert_eq!(
        std::fs::read_to_string(world.path("other.sql")).unwrap(),
        script()
    );
    // The lake's other readers do not mind the script.
    world.run(&["tables", "lake"]).exits(0);
}
