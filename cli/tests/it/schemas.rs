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
    assert_eq!(report["errors"], 2);
    assert_eq!(report["problems"][0]["line"], 7);
    assert!(!report["problems"][0]["remedy"].as_str().unwrap().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_a_finding() {
    let run = World::new().run(&["schemas", "check", "nowhere"]).exits(1);
    assert!(run.out.contains("lake.toml"), "{}", run.out);
}
