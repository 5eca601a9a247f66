//! What needs attention is said; what may not be seen is unknown; views are published.

use dynalake_tests::{Action, FaultProxy};
use serde_json::{Value, json};

use super::world::World;
use crate::request::ran;

const STATUS: [&str; 4] = ["status", "--path-style", "--format", "json"];

fn check<'a>(status: &'a Value, name: &str) -> &'a Value {
    let checks = status["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name} in {status}"))
}

/// Verdicts of all checks, in their order.
fn verdicts(status: &Value) -> Vec<(&str, &str)> {
    let checks = status["checks"].as_array().unwrap();
    checks
        .iter()
        .map(|check| {
            (
                check["name"].as_str().unwrap(),
                check["verdict"].as_str().unwrap(),
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_attention_is_said_and_makes_exit_1() {
    let Some(world) = World::deploy("status") else {
        return;
    };
    // Nothing has happened yet: all that is missing is a baseline.
    let fresh = world.run(&STATUS).exits(1).json();
    let looked: Vec<_> = verdicts(&fresh)
        .into_iter()
        .filter(|(_, verdict)| *verdict != "ok")
        .collect();
    assert_eq!(looked, [("baseline", "attention")], "{fresh}");
    let next = check(&fresh, "baseline")["next"].as_str().unwrap();
    assert_eq!(next, "`dynalake backfill --stack status-lake`");
    assert_eq!(check(&fresh, "mapping")["facts"]["state"], "Enabled");

    // A baseline and an audit that found nothing: all is well.
    let lake = world.lake();
    let put = async |key: &str, text: Value| {
        lake.put(key, text.to_string().into_bytes().into())
            .await
            .unwrap();
    };
    put(
        "state/baselines/20260501T000000Z.json",
        json!({
            "version": 1, "label": "20260501T000000Z", "at_ms": 1_777_593_600_000_i64,
            "kind": "full_export", "export_id": "01777593600000-0a1b2c3d", "table_arn": "arn",
            "tables": {}, "committed_at_ms": 1_777_593_660_000_i64,
        }),
    )
    .await;
    let audit = |different: u64| {
        json!({
            "version": 1, "database": "status-lake", "label": "20260501T000000Z",
            "at_ms": 1_777_593_600_000_i64, "older": "20260401T000000Z",
            "tables": {"users": {
                "equal": 12, "missing": 0, "extra": 0, "different": different, "unsure": 0,
                "attributes": {}, "samples": [],
            }},
        })
    };
    put("state/audits/20260501T000000Z.json", audit(0)).await;
    let well = world.run(&STATUS).exits(0).json();
    assert_eq!(well["attention"], false);
    assert_eq!(check(&well, "audit")["facts"]["equal"], 12);

    // And then everything at once.
    put("state/audits/20260502T000000Z.json", audit(3)).await;
    let today = dynalake_pipeline::layout::day_text(dynalake_pipeline::layout::day_of(
        crate::request::now_ms(),
    ));
    put(&format!("quarantine/dt={today}/a.jsonl"), json!({})).await;
    let parked = "aws/lambda/mapping/shard/2026/05/01/2026-05-01T10.00.00-1";
    let work = world.work();
    work.put(parked, "{}".into()).await.unwrap();
    let replayed = "aws/lambda/replayed/mapping/shard/2026/05/01/2026-05-01T09.00.00-1";
    work.put(replayed, "{}".into()).await.unwrap();
    for (metric, value) in [
        ("unmatched", "3"),
        ("mismatches", "2"),
        ("lag_ms", "1800000"),
    ] {
        world.server.query(
            "monitoring",
            &[
                ("Action", "PutMetricData"),
                ("Namespace", "dynalake"),
                ("MetricData.member.1.MetricName", metric),
                ("MetricData.member.1.Value", value),
                ("MetricData.member.1.Dimensions.member.1.Name", "database"),
                (
                    "MetricData.member.1.Dimensions.member.1.Value",
                    "status-lake",
                ),
            ],
        );
    }
    world.server.query(
        "monitoring",
        &[
            ("Action", "SetAlarmState"),
            ("AlarmName", "status-lake-stream-errors"),
            ("StateValue", "ALARM"),
            ("StateReason", "test"),
        ],
    );
    let failed = world.run(&["backfill", "--incremental", "--poll-seconds", "0"]);
    failed.exits(3);
    let bad = world.run(&STATUS).exits(1).json();
    let attention: Vec<_> = verdicts(&bad)
        .into_iter()
        .filter(|(_, verdict)| *verdict == "attention")
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        attention,
        [
            "lag",
            "export",
            "unmatched",
            "mismatches",
            "audit",
            "quarantine",
            "parked batches",
            "alarms"
        ],
        "{bad}"
    );
    assert_eq!(check(&bad, "lag")["facts"]["lag_ms"], 1_800_000);
    assert_eq!(check(&bad, "unmatched")["facts"]["count"], 3);
    assert_eq!(check(&bad, "parked batches")["facts"]["objects"], 1);
    assert_eq!(check(&bad, "audit")["facts"]["different"], 3);
    let export = check(&bad, "export")["says"].as_str().unwrap();
    assert!(
        export.contains("Point in time recovery is not enabled"),
        "{export}"
    );

    let table = world.run(&["status", "--path-style"]).exits(1);
    assert!(table.out.contains("LOOK"), "{table:?}");
    table.says(&[
        "replay --failed --stack status-lake",
        "The stream function failed.",
    ]);
}

#[test]
fn what_may_not_be_seen_is_unknown_and_no_failure() {
    let Some(world) = World::deploy("status-blind") else {
        return;
    };
    let proxy = FaultProxy::start(world.server.address());
    // All but CloudFormation, which is how the rest is found.
    proxy.set(|_| Action::Deny);
    let mut command = world.command(&STATUS);
    for service in ["S3", "LAMBDA", "SFN", "CLOUDWATCH"] {
        command.env(format!("AWS_ENDPOINT_URL_{service}"), proxy.endpoint());
    }
    let status = ran(command.output().unwrap()).exits(0).json();
    for (name, verdict) in verdicts(&status) {
        let expected = if name == "stack" { "ok" } else { "unknown" };
        assert_eq!(verdict, expected, "{name} in {status}");
    }
    for (name, right) in [
        ("lag", "cloudwatch:GetMetricData"),
        ("alarms", "cloudwatch:DescribeAlarms"),
        ("mapping", "lambda:GetEventSourceMapping"),
        ("export", "states:ListExecutions"),
        ("baseline", "s3:ListBucket"),
        ("quarantine", "s3:ListBucket"),
    ] {
        let says = check(&status, name)["says"].as_str().unwrap();
        assert!(
            says.contains(&format!("no right `{right}`")),
            "{name}: {says}"
        );
    }
}

#[test]
fn a_stack_that_is_not_there_is_said() {
    let Some(mut absent) = World::deploy("status-gone") else {
        return;
    };
    absent.stack = "nowhere".to_owned();
    let absent = absent.run(&["status"]).exits(2);
    absent.says(&[
        "there is no stack `nowhere` in eu-west-1",
        "infra/deploy.sh",
    ]);
}

#[test]
fn publishing_says_what_became_of_the_views() {
    let Some(world) = World::deploy("publish") else {
        return;
    };
    let published = world.run(&["publish"]).exits(0);
    for words in [["users", "created"], ["orders", "updated"]] {
        let line = published
            .out
            .lines()
            .find(|line| line.starts_with(words[0]));
        assert!(line.unwrap().contains(words[1]), "{published:?}");
    }
    assert!(published.out.contains("3 unchanged"), "{published:?}");
    let json = world.run(&["publish", "--format", "json"]).exits(0).json();
    assert_eq!(json["created"], json!(["users"]));
}
