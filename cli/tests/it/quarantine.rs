use dynalake_pipeline::quarantine::{QuarantineEntry, RecordOrigin, to_jsonl};
use dynalake_pipeline::record::Origin;
use dynalake_pipeline::reject::{ReasonCode, Reject};

use crate::world::{MAY_1, World};

fn entry(reason: ReasonCode, at: i64, payload: &str) -> QuarantineEntry {
    let reject =
        Reject::new(reason, "a number of 38 digits at most was expected").at("NewImage.total");
    let origin = RecordOrigin::Stream {
        arn: Some("arn:aws:dynamodb:eu-west-1:1:table/t/stream/s".into()),
    };
    QuarantineEntry::new(reject, Origin::Stream, origin, at, payload.into())
}

fn lake() -> World {
    let world = World::new();
    world.write(
        "lake/quarantine/dt=2026-05-01/a.jsonl",
        to_jsonl(&[
            entry(ReasonCode::Mismatch, MAY_1, "{\"secret\":\"\u{1b}[2J\"}"),
            entry(ReasonCode::Mismatch, MAY_1, "second"),
            entry(ReasonCode::BadKey, MAY_1, "third"),
        ]),
    );
    world.write(
        "lake/quarantine/dt=2026-05-02/b.jsonl",
        to_jsonl(&[entry(
            ReasonCode::MalformedJson,
            MAY_1 + 86_400_000,
            "fourth",
        )]),
    );
    world.write(
        "lake/quarantine/replayed/dt=2026-05-01/old.jsonl",
        "not counted",
    );
    world
}

#[test]
fn quarantine_is_counted_per_object_and_reason_newest_first() {
    let world = lake();
    let report = world
        .run(&["quarantine", "list", "lake", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(report["records"], 4);
    assert_eq!(
        report["objects"][0]["object"],
        "quarantine/dt=2026-05-02/b.jsonl"
    );
    assert_eq!(
        report["objects"][1]["reasons"],
        serde_json::json!({"bad_key": 1, "mismatch": 2})
    );
    let run = world.run(&["quarantine", "list", "lake"]).exits(0);
    assert_eq!(run.out.lines().count(), 5, "{}", run.out);
    let empty = World::new();
    empty.write("lake/x", "");
    assert!(
        empty
            .run(&["quarantine", "list", "lake"])
            .exits(0)
            .err
            .contains("nothing")
    );
}

#[test]
fn payloads_are_shown_only_when_asked_for_and_harmless() {
    let world = lake();
    let run = world.run(&["quarantine", "show", "lake"]).exits(0);
    assert!(
        run.out.contains("mismatch") && run.out.contains("NewImage.total"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("table/t/stream/s") && !run.out.contains("secret"),
        "{}",
        run.out
    );
    let run = world
        .run(&["quarantine", "show", "lake", "--payload"])
        .exits(0);
    assert!(
        run.out.contains("secret") && run.out.contains("\\u{1b}[2J"),
        "{}",
        run.out
    );
    assert!(!run.out.contains('\u{1b}'));

    let json = world
        .run(&["quarantine", "show", "lake", "--format", "json"])
        .exits(0);
    assert!(!json.out.contains("secret"));
    assert_eq!(json.json()[0]["reason"], "malformed_json");
    assert_eq!(json.json()[1]["object"], "quarantine/dt=2026-05-01/a.jsonl");
    assert_eq!(
        (&json.json()[1]["line"], &json.json()[1]["at"]),
        (&1.into(), &MAY_1.into())
    );
    let json = world
        .run(&[
            "quarantine",
            "show",
            "lake",
            "--payload",
            "--format",
            "json",
        ])
        .exits(0);
    assert_eq!(json.json()[2]["payload"], "second");
}

#[test]
fn records_are_chosen_by_reason_object_and_number() {
    let world = lake();
    let payloads = |more: &[&str]| -> Vec<String> {
        let args = [
            "quarantine",
            "show",
            "lake",
            "--payload",
            "--format",
            "json",
        ];
        let json = world.run(&[&args[..], more].concat()).exits(0).json();
        json.as_array()
            .unwrap()
            .iter()
            .map(|one| one["payload"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(payloads(&["--reason", "bad_key"]), ["third"]);
    assert_eq!(payloads(&["quarantine/dt=2026-05-02/"]), ["fourth"]);
    assert_eq!(payloads(&["-n", "1"]), ["fourth"]);
    let run = world
        .run(&["quarantine", "show", "lake", "-n", "1"])
        .exits(0);
    assert!(run.err.contains("newest 1 records"), "{}", run.err);
    let run = world
        .run(&["quarantine", "show", "lake", "quarantine/dt=1999"])
        .exits(2);
    assert!(run.err.contains("quarantine list"), "{}", run.err);
}

#[test]
fn an_object_that_is_not_quarantine_is_named() {
    let world = lake();
    world.write("lake/quarantine/dt=2026-05-02/c.jsonl", "{\"reason\":1}\n");
    let run = world.run(&["quarantine", "list", "lake"]).exits(1);
    assert!(
        run.err.contains("c.jsonl") && run.err.contains("line 1"),
        "{}",
        run.err
    );
}
