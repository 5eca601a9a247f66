use crate::world::{World, shop_schemas};

#[test]
fn a_good_folder_is_said_to_be_good() {
    let world = World::new();
    shop_schemas(&world);
    let run = world.run(&["schemas", "check", "schemas"]).exits(0);
    assert!(run.out.contains("shop: 2 entities, 0 errors"), "{run:#?}");
    let report = world
        .run(&["schemas", "check", "schemas", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(report["errors"], 0);
}

#[test]
fn all_problems_come_at_once_with_file_line_and_remedy() {
    let world = World::new();
    shop_schemas(&world);
    world.write(
        "schemas/bad.toml",
        "entity = \"bad\"\ntable = \"bads\"\nversion = 1\n[match]\npartition_key = \"BAD#{id}\"\n\
         [columns]\nid = \"strnig\"\ntotal = \"decimal(50,2)\"\n",
    );
    let run = world.run(&["schemas", "check", "schemas"]).exits(1);
    assert!(run.out.contains("bad.toml:7: error:"), "{}", run.out);
    assert!(run.out.contains("bad.toml:8: error:"), "{}", run.out);
    assert!(run.out.contains("remedy:"), "{}", run.out);
    let report = world
        .run(&["schemas", "check", "schemas", "--format", "json"])
        .exits(1)
        .json();
    assert!(run.out.contains("2 errors, 1 warning\n"), "{}", run.out);
    assert_eq!(report["errors"], 2);
    assert_eq!(report["problems"][0]["line"], 7);
    assert!(!report["problems"][0]["remedy"].as_str().unwrap().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_a_finding() {
    let run = World::new().run(&["schemas", "check", "nowhere"]).exits(1);
    assert!(run.out.contains("lake.toml"), "{}", run.out);
}

#[test]
fn a_lock_holds_the_schemas_to_what_old_files_can_follow() {
    let world = World::new();
    shop_schemas(&world);
    let run = world.run(&["schemas", "lock", "schemas"]).exits(0);
    assert!(run.out.contains("schemas/lake.lock written"), "{run:#?}");
    let run = world.run(&["schemas", "lock", "schemas"]).exits(0);
    assert!(run.out.contains("is up to date"), "{run:#?}");
    let order = std::fs::read_to_string(world.path("schemas/order.toml")).unwrap();
    world.write(
        "schemas/order.toml",
        order.replace("decimal(12,2)", "string"),
    );
    let run = world.run(&["schemas", "check", "schemas"]).exits(1);
    assert!(
        run.out.contains("order.toml:") && run.out.contains("total"),
        "{run:#?}"
    );
    let run = world.run(&["schemas", "lock", "schemas"]).exits(1);
    assert!(run.err.contains("not written"), "{run:#?}");
}

#[test]
fn schemas_are_shown_with_their_types() {
    let world = World::new();
    shop_schemas(&world);
    let run = world.run(&["schemas", "show", "schemas"]).exits(0);
    assert!(
        run.out.contains("order → table orders, version 1"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("Decimal128(12, 2)") && run.out.contains("ORDER#{order_id}"),
        "{}",
        run.out
    );
    let json = world
        .run(&["schemas", "show", "schemas", "--format", "json"])
        .exits(0)
        .json();
    let order = json["entities"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["entity"] == "order")
        .unwrap();
    assert_eq!(order["columns"][2]["athena_type"], "decimal(12,2)");
    assert_eq!(world.run(&["schemas", "show", "nowhere"]).exits(2).out, "");
}

#[test]
fn ddl_is_for_a_lake_in_s3() {
    let world = World::new();
    shop_schemas(&world);
    let run = world
        .run(&[
            "schemas",
            "ddl",
            "schemas",
            "--location",
            "s3://bucket/lake",
        ])
        .exits(0);
    assert!(
        run.out.contains("CREATE EXTERNAL TABLE") && run.out.contains("'s3://bucket/lake/"),
        "{}",
        run.out
    );
    for location in ["./lake", "s3://", "s3://b/x'y"] {
        let run = world
            .run(&["schemas", "ddl", "schemas", "--location", location])
            .exits(2);
        assert!(run.err.contains("not an S3 location"), "{}", run.err);
    }
}
