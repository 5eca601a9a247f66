use dynalake_pipeline::quarantine::{QuarantineEntry, RecordOrigin, to_jsonl};
use dynalake_pipeline::record::Origin;
use dynalake_pipeline::reject::{ReasonCode, Reject};

use crate::world::{EVENT, MAY_1, World, shop_schemas};

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

#[test]
fn a_replay_takes_in_what_fits_now_and_keeps_the_rest() {
    let world = World::new();
    shop_schemas(&world);
    world.write("event.json", EVENT);
    let target = ["--lake", "lake", "--schemas", "schemas"];
    world
        .run(&[&["replay", "event.json"][..], &target].concat())
        .exits(0);
    let replay = |more: &[&str], code: i32| {
        let args = ["quarantine", "replay", "lake", "--schemas", "schemas"];
        world.run(&[&args[..], more].concat()).exits(code)
    };
    let orders = || {
        let args = [
            "show",
            "lake",
            "orders",
            "--changes",
            "--format",
            "csv",
            "--columns",
            "order_id,quantity,_source",
        ];
        world.run(&args).exits(0).out
    };
    // Nothing is repaired: nothing changes.
    let run = replay(&[], 1);
    assert!(run.err.contains("2 records stay in quarantine"), "{run:#?}");
    assert_eq!(orders(), "order_id,quantity,_source\n7,,replay\n");

    let order = std::fs::read_to_string(world.path("schemas/order.toml")).unwrap();
    world.write("schemas/order.toml", order.replace("\"int\"", "\"bigint\""));
    let dry = replay(&["--dry-run", "--format", "json"], 1).json();
    assert_eq!(
        (&dry["dry_run"], &dry["objects"][0]["rows"]["orders"]),
        (&true.into(), &1.into())
    );
    assert_eq!(orders().lines().count(), 2);

    let report = replay(&["--format", "json"], 1).json();
    assert_eq!(
        report["objects"][0]["remaining"][0]["reason"],
        "malformed_attribute_value"
    );
    assert_eq!(report["objects"][0]["moved_to"], serde_json::Value::Null);
    assert_eq!(
        orders(),
        "order_id,quantity,_source\n7,,replay\n8,3000000000,replay\n"
    );
    // The object stays as long as one of its records does; again is the same.
    replay(&[], 1);
    assert_eq!(orders().lines().count(), 3);
    assert!(!world.path("lake/quarantine/replayed").exists());
}

#[test]
fn an_object_whose_records_all_became_rows_leaves_quarantine() {
    let world = World::new();
    shop_schemas(&world);
    let second = EVENT.lines().nth(2).unwrap().trim_end_matches(',');
    world.write("event.json", format!("{{\"Records\":[{second}]}}"));
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
    let order = std::fs::read_to_string(world.path("schemas/order.toml")).unwrap();
    world.write("schemas/order.toml", order.replace("\"int\"", "\"bigint\""));
    let args = ["quarantine", "replay", "lake", "--schemas", "schemas"];
    let run = world.run(&args).exits(0);
    assert!(
        run.out.contains("quarantine/replayed/dt=2026-05-01/"),
        "{run:#?}"
    );
    assert!(
        world
            .run(&args)
            .exits(0)
            .err
            .contains("nothing is in quarantine")
    );
    let list = world
        .run(&["quarantine", "list", "lake", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(list["records"], 0);
    let run = world
        .run(&["show", "lake", "orders", "--changes", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(
        (&run[0]["quantity"], &run[0]["_event_id"]),
        (&3_000_000_000_u64.into(), &"e2".into())
    );
}

/// The old image of the last record is already of the entity that could not hold the one before it.
#[test]
fn an_item_that_moved_into_quarantine_is_no_ghost_in_the_table_that_it_left() {
    let world = World::new();
    world.write(
        "schemas/lake.toml",
        "database = \"x\"\n[source]\npartition_key = \"PK\"\n",
    );
    for (name, column) in [
        ("lead", "age = \"int\""),
        (
            "client",
            "age = { type = \"int\", on_mismatch = \"quarantine\" }",
        ),
    ] {
        world.write(
            &format!("schemas/{name}.toml"),
            format!(
                "entity = \"{name}\"\ntable = \"{name}s\"\n[match]\nattributes = {{ kind = \"{name}\" }}\n\
                 [columns]\n{column}\n"
            ),
        );
    }
    let lead = r#""kind":{"S":"lead"}"#;
    let client = r#""kind":{"S":"client"},"age":{"S":"seven"}"#;
    let deliver = |number: u64, name: &str, old: &str, new: &str| {
        let image = |label: &str, attributes: &str| match attributes {
            "" => String::new(),
            some => format!(r#","{label}":{{"PK":{{"S":"P#1"}},{some}}}"#),
        };
        let event = format!(
            r#"{{"Records":[{{"eventID":"e{number}","eventName":"{name}","eventSource":"aws:dynamodb","dynamodb":{{"ApproximateCreationDateTime":{},"Keys":{{"PK":{{"S":"P#1"}}}}{}{},"SequenceNumber":"10000000000000000000{number}","StreamViewType":"NEW_AND_OLD_IMAGES"}},"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/x/stream/2026-05-01T00:00:00.000"}}]}}"#,
            MAY_1 / 1000,
            image("OldImage", old),
            image("NewImage", new),
        );
        world.write("event.json", event);
        world.run(&[
            "replay",
            "event.json",
            "--lake",
            "lake",
            "--schemas",
            "schemas",
        ])
    };
    let rows = |table: &str| {
        let args = [
            "current",
            "lake",
            table,
            "--schemas",
            "schemas",
            "--format",
            "json",
        ];
        let rows = world.run(&args).exits(0).json();
        rows.as_array().unwrap().len()
    };
    deliver(1, "INSERT", "", lead).exits(0);
    assert_eq!((rows("leads"), rows("clients")), (1, 0));
    let quarantined = deliver(2, "MODIFY", lead, client);
    assert!(
        quarantined.out.contains("quarantined, mismatch: 1"),
        "{quarantined:?}"
    );
    assert_eq!((rows("leads"), rows("clients")), (0, 0));
    deliver(3, "REMOVE", client, "").exits(0);
    assert_eq!((rows("leads"), rows("clients")), (0, 0));
    // What comes back from quarantine finds its place behind the delete.
    world.write(
        "schemas/client.toml",
        "entity = \"client\"\ntable = \"clients\"\n[match]\nattributes = { kind = \"client\" }\n\
         [columns]\nage = \"int\"\n",
    );
    world
        .run(&["quarantine", "replay", "lake", "--schemas", "schemas"])
        .exits(0);
    assert_eq!((rows("leads"), rows("clients")), (0, 0));
}
