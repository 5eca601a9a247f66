//! `export convert` of incremental exports.

use dynalake_export_job::export_writer::{
    ExportSpec, NetEffect, write_full_export, write_incremental_export,
};
use dynalake_export_job::format::DataFormat;
use dynalake_export_job::manifest::ExportView;

use crate::world::{MAY_1, World, shop_schemas};

const HOUR: i64 = 3_600_000;

fn order(id: u32, rest: &str) -> String {
    format!(r#"{{"PK":{{"S":"USER#1"}},"SK":{{"S":"ORDER#{id}"}}{rest}}}"#)
}

fn effect(id: u32, before: Option<&str>, after: Option<&str>) -> NetEffect {
    NetEffect {
        keys: order(id, ""),
        before: before.map(|rest| order(id, rest)),
        after: after.map(|rest| order(id, rest)),
        written_micros: MAY_1 * 1000,
    }
}

/// Windows in Ion and JSON in turn: any goes with any.
fn window(world: &World, from: i64, to: i64, effects: &[NetEffect]) -> String {
    let format = if from % 2 == 0 {
        DataFormat::Ion
    } else {
        DataFormat::Json
    };
    let (from, to) = (MAY_1 + from * HOUR, MAY_1 + to * HOUR);
    let spec = ExportSpec {
        format,
        ..ExportSpec::incremental("shop", from, to, ExportView::NewAndOldImages)
    };
    let folder = write_incremental_export(&world.path("bucket"), &spec, effects).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// A world with a committed baseline of the orders 1 to 3; the sources of two windows after it.
fn world() -> (World, [String; 2]) {
    let world = World::new();
    shop_schemas(&world);
    let items = [1, 2, 3].map(|id| order(id, ""));
    let folder = write_full_export(
        &world.path("bucket"),
        &ExportSpec::new("shop", MAY_1),
        items,
    )
    .unwrap();
    convert(&world, &[folder.to_str().unwrap()], &[]).exits(0);
    let many = r#","quantity":{"S":"many"}"#;
    let first = [
        effect(1, Some(""), Some(r#","quantity":{"N":"1"}"#)),
        effect(2, Some(""), None),
        effect(3, Some(""), Some(many)),
        effect(4, None, Some("")),
    ];
    let second = [effect(4, Some(""), None), effect(5, None, Some(""))];
    let sources = [window(&world, 0, 1, &first), window(&world, 1, 2, &second)];
    (world, sources)
}

fn convert(world: &World, sources: &[&str], more: &[&str]) -> crate::world::Run {
    let args = [
        &["export", "convert"],
        sources,
        &["--lake", "lake", "--schemas", "schemas"],
        more,
    ];
    world.run(&args.concat())
}

/// Ids of the orders of a baseline.
fn orders(world: &World) -> String {
    let run = world
        .run(&["current", "lake", "orders", "--format", "json"])
        .exits(0);
    let rows = run.json();
    let ids = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["order_id"].as_str().unwrap());
    ids.collect::<Vec<_>>().join(" ")
}

#[test]
fn windows_roll_the_baseline_forward() {
    let (world, [first, second]) = world();
    assert_eq!(orders(&world), "1 2 3");
    let run = convert(&world, &[&second, &first], &[]).exits(0);
    for text in [
        "4 changes = 3 rows + 1 in quarantine, and 1 tombstones",
        "baseline 20260501T000000Z, rolled forward by 2 incremental exports to 20260501T020000Z",
        "committed as baseline 20260501T020000Z",
    ] {
        assert!(run.out.contains(text), "{text}\n{run:#?}");
    }
    assert!(
        run.err
            .contains("rolling `orders`: 3 rows of the baseline, 6 of windows"),
        "{run:#?}"
    );
    assert_eq!(orders(&world), "1 5");
    let run = convert(&world, &[&first, &second], &["--format", "json"]).exits(0);
    assert_eq!(run.json()["baseline"], "unchanged");
    assert_eq!(run.json()["roll"]["label"], "20260501T020000Z");
    let list = world
        .run(&["baselines", "list", "lake", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(list["baselines"][1]["kind"], "rolled", "{list}");

    // What is in quarantine comes back with its window.
    let toml = std::fs::read_to_string(world.path("schemas/order.toml")).unwrap();
    let quantity = "{ type = \"int\", on_mismatch = \"quarantine\" }";
    world.write("schemas/order.toml", toml.replace(quantity, "\"int\""));
    let replay = ["quarantine", "replay", "lake", "--schemas", "schemas"];
    let run = world.run(&replay).exits(1);
    assert!(run.out.contains("--replace"), "{run:#?}");
    let run = convert(
        &world,
        &[&first, &second],
        &["--replace", "--format", "json"],
    )
    .exits(0);
    assert_eq!(run.json()["roll"]["decoded_again"], true);
    assert_eq!(run.json()["baseline"], "committed");
    assert_eq!(orders(&world), "1 3 5");
}

#[test]
fn an_item_of_the_last_window_is_replayed_into_its_baseline() {
    let (world, [first, _]) = world();
    convert(&world, &[&first], &[]).exits(0);
    assert_eq!(orders(&world), "1 4");
    let toml = std::fs::read_to_string(world.path("schemas/order.toml")).unwrap();
    let quantity = "{ type = \"int\", on_mismatch = \"quarantine\" }";
    world.write("schemas/order.toml", toml.replace(quantity, "\"int\""));
    world
        .run(&["quarantine", "replay", "lake", "--schemas", "schemas"])
        .exits(0);
    assert_eq!(orders(&world), "1 3 4");
}

#[test]
fn what_comes_back_into_a_baseline_that_was_rolled_forward_is_said_to_be_left_behind() {
    let world = World::new();
    shop_schemas(&world);
    let items = [order(1, ""), order(3, r#","quantity":{"S":"many"}"#)];
    let spec = ExportSpec::new("shop", MAY_1);
    let full = write_full_export(&world.path("bucket"), &spec, items).unwrap();
    convert(&world, &[full.to_str().unwrap()], &[]).exits(0);
    let source = window(&world, 0, 1, &[effect(4, None, Some(""))]);
    convert(&world, &[&source], &[]).exits(0);
    assert_eq!(orders(&world), "1 4");
    let toml = std::fs::read_to_string(world.path("schemas/order.toml")).unwrap();
    let quantity = "{ type = \"int\", on_mismatch = \"quarantine\" }";
    world.write("schemas/order.toml", toml.replace(quantity, "\"int\""));
    let replay = ["quarantine", "replay", "lake", "--schemas", "schemas"];
    let run = world.run(&replay).exits(1);
    for part in [
        "came back into baseline 20260501T000000Z",
        "baseline 20260501T010000Z, which was rolled forward",
        "--replace",
    ] {
        assert!(run.err.contains(part), "{part}: {run:#?}");
    }
    assert_eq!(orders(&world), "1 4");
    convert(&world, &[&source], &["--replace"]).exits(0);
    assert_eq!(orders(&world), "1 3 4");
}

#[test]
fn a_missing_window_is_told_with_the_command_and_nothing_is_converted() {
    let (world, [_, second]) = world();
    let run = convert(&world, &[&second], &[]).exits(1);
    assert!(
        run.err.contains(
            "dynalake export run --table-arn arn:aws:dynamodb:eu-west-1:123456789012:table/shop \
             --bucket example-bucket --incremental --from 2026-05-01T00:00:00Z \
             --to 2026-05-01T01:00:00Z --lake lake --schemas schemas"
        ),
        "{run:#?}"
    );
    assert!(!world.path("lake/deltas").exists());
    let folders = std::fs::read_dir(world.path("bucket/AWSDynamoDB")).unwrap();
    let full = folders
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("data").exists())
        .unwrap();
    let run = convert(&world, &[full.to_str().unwrap(), &second], &[]).exits(2);
    assert!(run.err.contains("one by one"), "{run:#?}");
}

#[test]
fn an_item_that_was_deleted_and_inserted_again_is_there_once_and_new() {
    let (world, _) = world();
    let new = |quantity: u32| format!(r#","quantity":{{"N":"{quantity}"}}"#);
    // Within a window one line tells both; the other item is deleted in one window and comes back in
    // the next, or in one that is rolled later.
    let first = [
        effect(1, Some(""), Some(&new(11))),
        effect(2, Some(""), None),
        effect(3, Some(""), None),
    ];
    let second = [effect(2, None, Some(&new(12)))];
    let third = [effect(3, None, Some(&new(13)))];
    let [first, second, third] = [(0, &first[..]), (1, &second), (2, &third)]
        .map(|(from, effects)| window(&world, from, from + 1, effects));
    convert(&world, &[&first, &second], &[]).exits(0);
    assert_eq!(orders(&world), "1 2");
    convert(&world, &[&third], &[]).exits(0);
    let run = world
        .run(&["current", "lake", "orders", "--format", "json"])
        .exits(0);
    let rows = run.json();
    let of = |name: &str| {
        let values = rows.as_array().unwrap().iter().map(|row| &row[name]);
        values
            .map(|value| value.to_string().replace('"', ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("order_id"), ["1", "2", "3"]);
    assert_eq!(of("quantity"), ["11", "12", "13"]);
}

#[test]
fn commands_that_are_printed_survive_a_space() {
    let (world, [_, second]) = world();
    let args = ["export", "convert", &second, "--lake"];
    let args = [&args[..], &["my lake", "--schemas", "schemas"]].concat();
    let run = world.run(&args).exits(1);
    assert!(
        run.err.contains("--lake 'my lake' --schemas schemas`"),
        "{run:#?}"
    );
}
