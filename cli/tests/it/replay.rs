use crate::world::{EVENT, World, shop_schemas};

fn world() -> World {
    let world = World::new();
    shop_schemas(&world);
    world.write("event.json", EVENT);
    world
}

const TARGET: [&str; 4] = ["--lake", "lake", "--schemas", "schemas"];

#[test]
fn an_event_becomes_rows_and_quarantine() {
    let world = world();
    let run = world
        .run(&[&["replay", "event.json"][..], &TARGET].concat())
        .exits(0);
    assert!(run.out.contains("quarantined, mismatch: 1"), "{run:#?}");
    assert!(
        run.err.contains("dynalake quarantine show lake"),
        "{run:#?}"
    );
    // The same event once more, from standard input: the same objects.
    let args = [&["replay", "-", "--format", "json"][..], &TARGET].concat();
    let json = world
        .run_with_input(&args, EVENT.as_bytes())
        .exits(0)
        .json();
    assert_eq!(json[0]["event"], "-");
    assert_eq!(json[0]["report"]["records"], 3);
    assert_eq!(json[0]["report"]["quarantined"], 2);
    assert_eq!(json[0]["report"]["tables"]["orders"]["rows"], 1);
    let tables = world
        .run(&["tables", "lake", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(tables["tables"][0]["changes"]["objects"], 1);
    assert_eq!(tables["quarantine_objects"], 1);
    let rows = world
        .run(&["show", "lake", "orders", "--changes", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(
        (&rows[0]["total"], &rows[0]["_source"]),
        (&"12.50".into(), &"replay".into())
    );
    assert_eq!(rows[0]["_seq"], "0000000000000000000100000000000000000001");
}

#[test]
fn what_is_no_event_of_this_table_is_refused() {
    let world = world();
    world.write("bad.json", "{\"Records\": 1}");
    let run = world
        .run(&[&["replay", "event.json", "bad.json"][..], &TARGET].concat())
        .exits(1);
    assert!(run.err.contains("`bad.json`"), "{run:#?}");
    let run = world
        .run(&[&["replay", "nothing.json"][..], &TARGET].concat())
        .exits(2);
    assert!(run.err.contains("cannot read `nothing.json`"), "{run:#?}");
    let mut command = world.command(&[&["replay", "event.json"][..], &TARGET].concat());
    let output = command
        .env("DYNALAKE_SOURCE_TABLE", "other")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("comes from table `shop`")
    );
}
