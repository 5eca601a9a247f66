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

#[test]
fn a_lake_is_read_with_the_schemas_of_its_baseline_where_none_are_given() {
    let world = world();
    // Changes alone do not say what they were made with.
    for args in [
        &["sql", "lake", "--engine", "athena"][..],
        &["duckdb", "lake"],
        &["compact", "lake"],
    ] {
        let run = world.run(args).exits(2);
        assert!(
            run.err.contains("no baseline yet") && run.err.contains("`--schemas DIR`"),
            "{}",
            run.err
        );
    }
    assert!(
        world
            .run(&["sql", "--engine", "athena"])
            .exits(2)
            .err
            .contains("--schemas")
    );
    convert(&world);
    let mut given: Vec<String> = Vec::new();
    for engine in ["athena", "duckdb"] {
        let args = ["sql", "lake", "--schemas", "schemas", "--engine", engine];
        given.push(world.run(&args).exits(0).out);
    }
    let args = [
        "sql",
        "lake",
        "--engine",
        "athena",
        "--database",
        "shop_test",
    ];
    let run = world.run(&args).exits(0);
    assert_eq!(run.out, given[0].replace("\"shop\".", "\"shop_test\"."));
    // Nobody needs the folder any more.
    std::fs::rename(world.path("schemas"), world.path("gone")).unwrap();
    for (engine, given) in ["athena", "duckdb"].iter().zip(&given) {
        let run = world.run(&["sql", "lake", "--engine", engine]).exits(0);
        assert_eq!(run.out, *given);
        assert!(
            run.err.contains("those of export 20260501T000000Z"),
            "{}",
            run.err
        );
    }
    world.run(&["duckdb", "lake"]).exits(0);
    let script = std::fs::read_to_string(world.path("lake/lake.sql")).unwrap();
    assert_eq!(script, given[1]);
    world.run(&["audit", "lake"]).exits(0);
    world.run(&["compact", "lake"]).exits(0);
    // Columns in the order of the schemas, though no file of the table is needed for that.
    let run = world
        .run(&["current", "lake", "users", "--format", "csv"])
        .exits(0);
    assert!(
        run.out.lines().next().unwrap().contains("user_id,name"),
        "{}",
        run.out
    );
    let kept: Vec<_> = std::fs::read_dir(world.path("lake/state/schemas"))
        .unwrap()
        .collect();
    assert_eq!(kept.len(), 1);
}

#[test]
fn columns_that_came_after_the_baseline_are_shown_by_current_and_kept_by_compact() {
    let world = world();
    convert(&world);
    let order = std::fs::read_to_string(world.path("schemas/order.toml")).unwrap();
    let newer = order.replace("version = 1", "version = 2") + "note = \"string\"\n";
    world.write("schemas/order.toml", newer);
    let event = EVENT.replace(r#""total":"#, r#""note":{"S":"later"},"total":"#);
    assert_ne!(event, EVENT);
    for (name, number) in [("event.json", "7"), ("event2.json", "8")] {
        world.write(name, event.replace("ORDER#7", &format!("ORDER#{number}")));
        let args = ["replay", name, "--lake", "lake", "--schemas", "schemas"];
        world.run(&args).exits(0);
    }
    let run = world
        .run(&["current", "lake", "orders", "--format", "csv"])
        .exits(0);
    assert!(
        run.out.lines().next().unwrap().ends_with(",note"),
        "{}",
        run.out
    );
    assert!(run.out.contains(",later"), "{}", run.out);
    // The older schemas do not know the column: nothing is merged, and that is said.
    let run = world.run(&["compact", "lake"]).exits(1);
    assert!(
        run.err.contains("`note`") && run.err.contains("newest schemas"),
        "{}",
        run.err
    );
    world
        .run(&["compact", "lake", "--schemas", "schemas"])
        .exits(0);
    let run = world
        .run(&["current", "lake", "orders", "--format", "csv"])
        .exits(0);
    assert!(run.out.contains(",later"), "{}", run.out);
}
