use crate::world::World;

#[test]
fn inferred_schemas_stand_check_and_take_the_same_export_without_a_mismatch() {
    let world = World::new();
    world.run(&["demo", "shop"]).exits(0);
    let exports = world.path("shop/export/AWSDynamoDB");
    let export = std::fs::read_dir(exports)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("manifest-summary.json").is_file())
        .unwrap();
    let export = export.to_str().unwrap();
    let infer = ["infer", export, "--out", "inferred/shop", "--explain"];
    let run = world.run(&infer).exits(0);
    assert!(run.out.contains("told apart by"), "{run:#?}");
    world.run(&infer).exits(2);
    world.run(&["schemas", "check", "inferred/shop"]).exits(0);
    let report = world
        .run(&[
            "export",
            "convert",
            export,
            "--lake",
            "lake",
            "--schemas",
            "inferred/shop",
            "--format",
            "json",
        ])
        .exits(0)
        .json();
    assert_eq!(report["quarantined"], 0);
    let tables = report["tables"].as_object().unwrap();
    assert!(tables.len() > 2, "{report:#}");
    for (table, outcome) in tables {
        let mismatches = outcome["mismatches"].as_object().unwrap();
        assert!(mismatches.is_empty(), "{table}: {outcome:#}");
        assert!(table != "unmatched" || outcome["rows"] == 0, "{outcome:#}");
    }
}

#[test]
fn lines_of_items_will_do_and_missing_keys_are_asked_for() {
    let world = World::new();
    world.write(
        "items.jsonl",
        "{\"PK\":{\"S\":\"USER#1\"},\"SK\":{\"S\":\"PROFILE\"},\"n\":{\"N\":\"1\"}}\n\
         {\"Item\":{\"PK\":{\"S\":\"USER#1\"},\"SK\":{\"S\":\"ORDER#1\"},\"n\":{\"N\":\"1\"}}}\n",
    );
    let report = world
        .run(&["infer", "items.jsonl", "--out", "s", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(report["items"], 2);
    assert_eq!(report["entities"].as_array().unwrap().len(), 2);
    world.run(&["schemas", "check", "s"]).exits(0);
    world.write(
        "other.jsonl",
        "{\"a\":{\"S\":\"1\"}}\n{\"b\":{\"S\":\"1\"}}\n",
    );
    let run = world.run(&["infer", "other.jsonl", "--out", "t"]).exits(2);
    assert!(run.err.contains("--partition-key"), "{run:#?}");
}
