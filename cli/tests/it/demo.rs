use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::world::World;

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn the_demo_builds_the_same_lake_every_time_and_tells_what_arrived() {
    let world = World::new();
    let run = world.run(&["demo"]).exits(0);
    for text in [
        "25 items of an export and 13 changes",
        "unmatched",
        "malformed_attribute_value",
        "mismatch",
        "置き配希望",
        "ttl",
        "Try next:",
    ] {
        assert!(run.out.contains(text), "no `{text}` in {}", run.out);
    }
    let first = files(&world.path("demo-lake"));
    assert!(
        first
            .keys()
            .any(|name| name.starts_with("lake/changes/orders/dt=2026-11-02/"))
    );
    world.run(&["demo"]).exits(0);
    assert_eq!(files(&world.path("demo-lake")), first);
    // Elsewhere, too.
    world.run(&["demo", "my shop/x"]).exits(0);
    assert_eq!(files(&world.path("my shop/x")), first);
}

#[test]
fn nothing_of_the_shop_is_lost_or_shown_in_clear() {
    let world = World::new();
    world.run(&["demo"]).exits(0);
    let tables = world
        .run(&["tables", "demo-lake/lake", "--format", "json"])
        .exits(0)
        .json();
    let rows: u64 = tables["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| {
            let snapshots = table["snapshots"].as_array().unwrap();
            table["changes"]["rows"].as_u64().unwrap()
                + snapshots
                    .iter()
                    .map(|one| one["rows"].as_u64().unwrap())
                    .sum::<u64>()
        })
        .sum();
    assert_eq!(rows + 2, 25 + 13, "all but the two in quarantine");
    for table in ["users", "payments"] {
        for changes in [&[][..], &["--changes"]] {
            let args = [
                &["show", "demo-lake/lake", table, "--format", "json"][..],
                changes,
            ]
            .concat();
            let out = world.run(&args).exits(0).out;
            // Transformed columns: the address, the phone number, the token, the hash.
            for clear in [
                "taro@example.com",
                "+81-",
                "tok_demo",
                "argon2id",
                "TARO YAMADA",
            ] {
                assert!(!out.contains(clear), "{table}: {clear}");
            }
        }
    }
}

#[test]
fn the_commands_to_try_next_work_as_they_stand() {
    let world = World::new();
    let run = world.run(&["demo", "a demo"]).exits(0);
    let commands: Vec<&str> = run
        .out
        .lines()
        .skip_while(|line| *line != "Try next:")
        .skip(1)
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert!(commands.len() > 10, "{commands:#?}");
    for command in commands {
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(world.path(""))
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        // A record that no schema can repair stays: that is a finding.
        let expected = i32::from(command.contains("quarantine replay"));
        assert_eq!(output.status.code(), Some(expected), "{command}\n{err}");
    }
    let payments = world
        .run(&["show", "a demo/lake", "payments", "--format", "json"])
        .exits(0)
        .json();
    let amounts: Vec<_> = payments
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["amount"])
        .collect();
    assert!(amounts.contains(&&"98765432109.50".into()), "{amounts:?}");
}

#[test]
fn edited_schemas_are_kept_and_used() {
    let world = World::new();
    world.run(&["demo"]).exits(0);
    let path = world.path("demo-lake/schemas/ecommerce/user.toml");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("version = 1", "version = 2");
    let edited = text + "favorite_color = \"string\"\n";
    fs::write(&path, &edited).unwrap();
    world.run(&["demo"]).exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    let args = [
        "show",
        "demo-lake/lake",
        "users",
        "--where",
        "user_id=1002",
        "--format",
        "json",
    ];
    assert_eq!(
        world.run(&args).exits(0).json()[0]["favorite_color"],
        "藍色"
    );
    fs::write(&path, "entity = 1").unwrap();
    let run = world.run(&["demo"]).exits(2);
    assert!(run.err.contains("dynalake schemas check"), "{}", run.err);
}

#[test]
fn a_folder_of_somebody_elses_is_left_alone() {
    let world = World::new();
    world.write("mine/lake/changes/precious.parquet", "data");
    for args in [&["demo", "mine"][..], &["demo", "mine", "--force"]] {
        let run = world.run(args).exits(2);
        assert!(run.err.contains("hint:"), "{}", run.err);
        assert_eq!(
            fs::read(world.path("mine/lake/changes/precious.parquet")).unwrap(),
            b"data"
        );
    }
    world.write("other/notes.txt", "keep");
    let run = world.run(&["demo", "other"]).exits(2);
    assert!(run.err.contains("--force"), "{}", run.err);
    world.run(&["demo", "other", "--force"]).exits(0);
    world.run(&["demo", "other"]).exits(0);
    assert_eq!(fs::read(world.path("other/notes.txt")).unwrap(), b"keep");
    world.write("file", "");
    world.run(&["demo", "file"]).exits(2);
}
