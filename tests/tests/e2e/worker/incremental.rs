//! The steps of incremental exports: the lake is the one that the command makes, byte for byte.

use std::path::PathBuf;

use dynalake_export_job::export_writer::{ExportSpec, NetEffect, write_incremental_export};
use dynalake_export_job::manifest::ExportView;
use serde_json::json;

use super::world::{EXPORT_TIME, World, comparable, difference, refused, user};

const HOUR: i64 = 3_600_000;

fn window(world: &World, from: i64, to: i64, effects: &[NetEffect]) -> PathBuf {
    let spec = ExportSpec {
        data_files: 2,
        ..ExportSpec::incremental("shop", from, to, ExportView::NewImage)
    };
    write_incremental_export(&world.path("bucket"), &spec, effects).unwrap()
}

fn effect(n: u32, after: Option<&str>) -> NetEffect {
    NetEffect {
        keys: format!(r#"{{"PK":{{"S":"USER#u{n}"}},"SK":{{"S":"PROFILE"}}}}"#),
        before: Some(user(n, "名")),
        after: after.map(|note| user(n, note)),
        written_micros: 1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_in_any_order_roll_the_baseline_forward_as_the_command_does() {
    let world = World::new();
    let full = world.export(2, 80);
    let (t1, t2) = (EXPORT_TIME + HOUR, EXPORT_TIME + 2 * HOUR);
    let first = window(
        &world,
        EXPORT_TIME,
        t1,
        &[effect(1, Some("a")), effect(2, None)],
    );
    let second = window(
        &world,
        t1,
        t2,
        &[effect(1, Some("b")), effect(2, Some("c"))],
    );
    let windows = [second.as_path(), first.as_path()];

    let mut worker = world.start("lake", &[]);
    let (kind, message) = worker.fail(&json!({"step": "plan", "exports": windows}));
    assert_eq!(kind, "dynalake.Refused");
    assert!(message.contains("full"), "{message}");
    let (_, lines) = worker.plan(&[full.as_path()]);
    for line in &lines {
        worker.convert(line);
    }
    worker.commit(&[full.as_path()]);

    // A missing window is told before anything is converted.
    let before = world.objects("lake").await;
    let (kind, message) = worker.fail(&json!({"step": "plan", "exports": [second]}));
    assert_eq!(kind, "dynalake.Refused");
    assert!(message.contains("--incremental"), "{message}");
    assert_eq!(world.objects("lake").await, before);

    let (plan, lines) = worker.plan(&windows);
    assert_eq!((&plan["kind"], lines.len()), (&json!("incremental"), 4));
    let roll = json!({"step": "roll", "exports": windows, "run": "r1"});
    let (kind, message) = worker.fail(&roll);
    assert!(
        kind == "dynalake.Refused" && message.contains("not whole"),
        "{message}"
    );
    for line in &lines {
        worker.convert(line);
    }
    // Without time nothing is rolled, and the next call goes on.
    let answer = worker.0.invoke_until(roll.to_string(), 1).unwrap();
    assert_eq!(answer["done"], false);
    // But not for ever.
    let (kind, message) = refused(worker.0.invoke_until(roll.to_string(), 1));
    assert_eq!(kind, "dynalake.Deadline");
    assert!(message.contains("DYNALAKE_OBJECT_MB"), "{message}");
    let (kind, message) = worker.fail(&json!({"step": "commit", "exports": windows}));
    assert!(
        kind == "dynalake.Refused" && message.contains("`roll`"),
        "{message}"
    );
    assert_eq!(worker.call(&roll)["done"], true);
    let committed = worker.commit(&windows);
    assert_eq!(
        (&committed["outcome"], &committed["label"]),
        (&json!("committed"), &json!("20261118T082640Z"))
    );
    assert_eq!(committed["audit"]["verdict"], "different");
    assert_eq!(committed["audit_done"], true);

    world.converted_locally("local", &[full.as_path()]).await;
    let expected = comparable(world.converted_locally("local", &windows).await);
    let lake = comparable(world.objects("lake").await);
    assert_eq!(difference(&lake, &expected), [""; 0]);

    // Everything again is no harm.
    assert_eq!(worker.plan(&windows).0["todo"], 0);
    assert_eq!(worker.call(&roll)["unchanged"], true);
    assert_eq!(worker.commit(&windows)["outcome"], "unchanged");
    let again = comparable(world.objects("lake").await);
    assert_eq!(difference(&lake, &again), [""; 0]);
}
