use serde_json::json;

use crate::world::World;

#[test]
fn the_demo_lake_is_audited_against_a_second_export() {
    let world = World::new();
    world.run(&["demo", "shop"]).exits(0);
    let args = [
        "audit",
        "shop/lake",
        "--schemas",
        "shop/schemas/ecommerce",
        "--format",
        "json",
    ];
    let first = world.run(&args).exits(0);
    assert_eq!(first.json()["older"], json!(null));
    assert!(
        world
            .path("shop/lake/state/audits/20261101T000000Z.json")
            .is_file()
    );
    let people = world.run(&["audit", "shop/lake"]).exits(0);
    assert_eq!(
        people.out,
        "export 20261101T000000Z is the first baseline: there is nothing to compare it with\n"
    );
    assert!(!people.err.contains("_aws"), "{}", people.err);
    let unknown = world
        .run(&[&args[..], &["--against", "20200101T000000Z"]].concat())
        .exits(2);
    assert!(unknown.err.contains("20200101T000000Z"), "{}", unknown.err);
    let wrong = world
        .run(&[&args[..], &["--against", "yesterday"]].concat())
        .exits(2);
    assert!(wrong.err.contains("20260501T000000Z"), "{}", wrong.err);
}
