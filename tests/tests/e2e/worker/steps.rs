//! The steps of a full export: the lake is the one that the command makes, byte for byte.

use std::thread;

use serde_json::{Value, json};

use super::world::{LABEL, World, comparable, difference};

#[tokio::test(flavor = "multi_thread")]
async fn plan_convert_and_commit_make_the_lake_that_the_command_makes() {
    let world = World::new();
    let export = world.export(5, 400);
    let exports = [export.as_path()];
    let mut worker = world.start("lake", &[]);
    let (plan, lines) = worker.plan(&exports);
    assert_eq!((&plan["kind"], &plan["todo"]), (&json!("full"), &json!(5)));
    assert_eq!((&plan["files"], &plan["items"]), (&json!(5), &json!(402)));
    assert_eq!(plan["labels"], json!([LABEL]));
    // A batch as an ItemBatcher hands it over, one line, and what is left of the list.
    let batch = json!({"step": "convert", "BatchInput": {}, "Items": lines[..2]});
    let answer = worker.call(&batch);
    assert_eq!(answer["done"].as_array().unwrap().len(), 2);
    assert_eq!(answer.get("next"), None);
    assert_eq!(worker.convert(&lines[2]), 1);
    let (plan, rest) = worker.plan(&exports);
    assert_eq!((&plan["todo"], rest.len()), (&json!(2), 2));
    assert_eq!(rest, lines[3..]);
    for line in &rest {
        worker.convert(line);
    }
    let committed = worker.commit(&exports);
    assert_eq!(committed["label"], LABEL);
    assert_eq!(committed["outcome"], "committed");
    assert_eq!(committed["audit_done"], true);
    assert_eq!(committed["audit"]["verdict"], "first");
    assert_eq!(committed["rows"], 401);
    assert_eq!(world.spooled(), 0);

    let lake = comparable(world.objects("lake").await);
    let expected = comparable(world.converted_locally("local", &exports).await);
    assert_eq!(difference(&lake, &expected), [""; 0]);

    // Everything again is no harm.
    let (plan, _) = worker.plan(&exports);
    assert_eq!(plan["todo"], 0);
    for line in &lines {
        worker.convert(line);
    }
    assert_eq!(worker.commit(&exports)["outcome"], "unchanged");
    let again = comparable(world.objects("lake").await);
    assert_eq!(difference(&lake, &again), [""; 0]);
}

/// Two data files of some three parts each.
const IN_PARTS: [(&str, &str); 2] = [("DYNALAKE_PART_MB", "1"), ("DYNALAKE_PARTS_PER_CALL", "1")];
const USERS: u32 = 45_000;

#[tokio::test(flavor = "multi_thread")]
async fn files_in_parts_by_several_killed_and_mixed_with_the_command() {
    let world = World::new();
    let export = world.export(2, USERS);
    let exports = [export.as_path()];
    let mut worker = world.start("lake", &IN_PARTS);
    let (plan, lines) = worker.plan(&exports);
    assert_eq!(plan["todo"], 2);

    // The command goes on with the plan of the function, in parts of its size.
    copy(&world, "lake", "local");
    let expected = world.converted_locally("local", &exports).await;
    let parts = expected.keys().filter(|key| key.contains("/parts/"));
    assert!(parts.count() >= 4);
    let expected = comparable(expected);

    // Killed in the middle of a file, by whichever part.
    let mut calls = 1;
    let first = worker.call(&json!({"step": "convert", "line": lines[0]}));
    assert_eq!(
        (&first["done"], &first["next"]["Items"]),
        (&json!([]), &json!([lines[0]]))
    );
    let objects = world.path("lake");
    let before = count(&objects);
    let event = json!({"step": "convert", "line": first["next"]});
    let _killed = worker.0.begin(event.to_string());
    while count(&objects) == before && worker.0.is_alive() {
        thread::yield_now();
    }
    worker.0.kill();
    let mut worker = world.start("lake", &IN_PARTS);
    calls += worker.convert(&first["next"]);
    assert!(calls >= 2, "{calls}");
    // What the killed one had on the disk is gone.
    assert_eq!(world.spooled(), 0);

    // The other file by two at once.
    thread::scope(|scope| {
        for _ in 0..2 {
            let (world, lines) = (&world, &lines);
            scope.spawn(move || world.start("lake", &IN_PARTS).convert(&lines[1]));
        }
    });
    worker.commit(&exports);
    let lake = comparable(world.objects("lake").await);
    assert_eq!(difference(&lake, &expected), [""; 0]);

    // The function goes on with what the command began; the command's files are whole.
    let mut worker = world.start("whole", &[("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "10240")]);
    let whole = comparable(world.converted_locally("whole", &exports).await);
    assert!(!whole.keys().any(|key| key.contains("/parts/")));
    std::fs::remove_dir_all(world.path("whole/state/baselines")).unwrap();
    std::fs::remove_file(file_record(&world, "whole", &lines[1])).unwrap();
    let (plan, rest) = worker.plan(&exports);
    assert_eq!((&plan["todo"], rest.len()), (&json!(1), 1));
    assert_eq!(worker.convert(&rest[0]), 1);
    worker.commit(&exports);
    let again = comparable(world.objects("whole").await);
    assert_eq!(difference(&whole, &again), [""; 0]);
}

/// Number of files in a folder and those within.
fn count(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let path = entry.path();
            if path.is_dir() { count(&path) } else { 1 }
        })
        .sum()
}

fn copy(world: &World, from: &str, to: &str) {
    let status = std::process::Command::new("cp")
        .arg("-r")
        .args([world.path(from), world.path(to)])
        .status();
    assert!(status.unwrap().success());
}

fn file_record(world: &World, lake: &str, line: &Value) -> std::path::PathBuf {
    let id = super::world::spec(2).export_id();
    let name = line["file"].as_str().unwrap();
    world.path(&format!("{lake}/state/exports/{id}/{name}.json"))
}
