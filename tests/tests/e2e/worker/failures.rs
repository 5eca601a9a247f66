//! What steps refuse, under which name, and what they leave.

use serde_json::json;

use super::world::{USER_TOML, Worker, World, refused, start};

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_a_stable_name_say_what_to_do_and_publish_nothing() {
    let world = World::new();
    let export = world.export(3, 60);
    let exports = [export.as_path()];
    let mut worker = world.start("lake", &[]);

    let (kind, message) = worker.fail(&json!({"step": "plans"}));
    assert_eq!(kind, "dynalake.Event");
    assert!(message.contains("requests, plan, convert"), "{message}");
    let (kind, message) = worker.fail(&json!({}));
    assert_eq!(kind, "dynalake.Event", "{message}");
    let (kind, message) = worker.fail(&json!({"step": "plan", "exports": []}));
    assert!(
        kind == "dynalake.Event" && message.contains("`exports`"),
        "{message}"
    );
    let nowhere = world.path("bucket/AWSDynamoDB/none");
    let (kind, message) = worker.fail(&json!({"step": "plan", "exports": [nowhere]}));
    assert_eq!(kind, "dynalake.Refused", "{message}");
    let (kind, message) = worker.fail(&json!({"step": "plan", "exports": [export, export]}));
    assert_eq!(kind, "dynalake.Event", "{message}");
    let (kind, message) = worker.fail(&json!({"step": "commit", "exports": exports}));
    assert!(
        kind == "dynalake.Refused" && message.contains("plan"),
        "{message}"
    );

    let (_, lines) = worker.plan(&exports);
    let (kind, message) = worker.fail(&json!({"step": "commit", "exports": exports}));
    assert_eq!(kind, "dynalake.Refused");
    assert!(
        message.contains("3 of 3 data files are not whole"),
        "{message}"
    );
    let (kind, message) = worker.fail(&json!({"step": "roll", "exports": exports}));
    assert!(
        kind == "dynalake.Event" && message.contains("full export"),
        "{message}"
    );

    // A data file that was changed: named, and nothing of it in the lake.
    let file = export.join("data").join(lines[0]["file"].as_str().unwrap());
    let right = std::fs::read(&file).unwrap();
    let mut wrong = right.clone();
    wrong.extend_from_slice(&dynalake_export_job::export_writer::gzip(b"").unwrap());
    std::fs::write(&file, &wrong).unwrap();
    let before = world.objects("lake").await;
    let convert = json!({"step": "convert", "line": lines[0]});
    let (kind, message) = worker.fail(&convert);
    assert_eq!(kind, "dynalake.Refused");
    assert!(message.contains("MD5") && message.contains(lines[0]["file"].as_str().unwrap()));
    assert_eq!(world.objects("lake").await, before);
    assert_eq!(world.spooled(), 0);
    std::fs::write(&file, &right).unwrap();

    // Time that is over before a part is done.
    let (kind, message) = refused(worker.0.invoke_until(convert.to_string(), 1));
    assert_eq!(kind, "dynalake.Deadline");
    assert!(message.contains("DYNALAKE_PART_MB"), "{message}");
    assert_eq!(world.objects("lake").await, before);

    // Another catalog than that of the plan.
    let other = USER_TOML.replace("age = \"int\"", "age = \"bigint\"");
    std::fs::write(world.path("schemas/user.toml"), other).unwrap();
    let mut changed = world.start("lake", &[]);
    let (kind, message) = changed.fail(&convert);
    assert!(
        kind == "dynalake.Refused" && message.contains("other schemas"),
        "{message}"
    );
    let (kind, _) = changed.fail(&json!({"step": "plan", "exports": exports}));
    assert_eq!(kind, "dynalake.Refused");
    changed.call(&json!({"step": "plan", "exports": exports, "replace": true}));

    let keys: Vec<String> = world.objects("lake").await.into_keys().collect();
    assert!(
        !keys
            .iter()
            .any(|key| key.contains("baselines") || key.contains("complete"))
    );
    // Errors are in the log, with the invocation's id.
    let errors = worker.0.json_log();
    assert!(errors.iter().any(|line| line["error_type"] == "dynalake.Deadline"
        && line["request_id"].is_string()));
}

#[tokio::test]
async fn a_wrong_deployment_is_told_at_the_start_with_all_its_problems() {
    let world = World::new();
    let mut variables = world.variables("lake");
    for (name, value) in [
        ("DYNALAKE_PART_MB", "0"),
        ("DYNALAKE_OBJECT_MB", "much"),
        ("DYNALAKE_WORKS", "s3://x"),
        ("DYNALAKE_SCHEMAS", "/no/such/folder"),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    let error = start(&variables).unwrap_err();
    let text = error.text();
    for name in variables
        .keys()
        .filter(|name| name.starts_with("DYNALAKE_"))
    {
        let wrong = !["DYNALAKE_LAKE", "DYNALAKE_WORK"].contains(&name.as_str());
        assert_eq!(text.contains(&format!("{name}:")), wrong, "{name}: {text}");
    }
    let body = error.body.unwrap();
    assert_eq!(body["errorType"], "dynalake.Config");

    // A step that needs what is not configured says so; others work.
    let mut variables = world.variables("lake");
    variables.remove("DYNALAKE_WORK");
    variables.insert("_HANDLER".to_owned(), "compact".to_owned());
    let mut worker = Worker(start(&variables).unwrap());
    let (kind, message) = worker.fail(&json!({"step": "plan", "exports": ["x"]}));
    assert!(
        kind == "dynalake.Config" && message.contains("DYNALAKE_WORK"),
        "{message}"
    );
    let (kind, message) = worker.fail(&json!({"step": "publish"}));
    assert!(
        kind == "dynalake.Config" && message.contains("Glue"),
        "{message}"
    );
    // The event of a schedule names no step: the handler does.
    let report = worker.call(&json!({"time": "2026-05-01T00:00:00Z"}));
    assert_eq!(report["unfinished"], false);
}
