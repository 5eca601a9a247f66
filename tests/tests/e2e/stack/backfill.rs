//! The workflow is started once, followed, and its failure told.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use dynalake_tests::{Said, ScriptedDynamo};
use serde_json::json;

use super::world::World;
use crate::request::ran;

const QUICK: [&str; 3] = ["backfill", "--poll-seconds", "0"];

#[test]
fn an_export_is_started_once_followed_and_left_running_when_interrupted() {
    let Some(mut world) = World::deploy("backfill") else {
        return;
    };
    let first = world.run(&["backfill", "--follow"]).exits(2);
    first.says(&[
        "no export of this stack yet",
        "`dynalake backfill --stack backfill-lake`",
    ]);
    let started = world.run(&["backfill", "--no-wait"]).exits(0);
    started.says(&[
        "started full-",
        "`dynalake backfill --stack backfill-lake --follow`",
    ]);

    // One at a time.
    let second = world.run(&["backfill"]).exits(2);
    second.says(&["runs already: full-", "--follow"]);
    let other = world.run(&["backfill", "--incremental"]).exits(2);
    other.says(&["runs already: full-"]);

    // Ctrl-C stops looking, not the export.
    let mut command = world.command(&["backfill", "--follow", "--poll-seconds", "0"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("after 0 min"), "{said}");
    assert!(
        said.contains("interrupted; the export goes on in AWS") && said.contains("--follow`"),
        "{said}"
    );

    world.open_gate();
    let follow = [&QUICK[..], &["--follow"]].concat();
    let followed = world.run(&follow).exits(0);
    assert!(followed.out.contains("succeeded at 20"), "{followed:?}");
    // It is over: how it ended can still be asked.
    let followed = world.run(&follow).exits(0);
    assert!(followed.out.contains("succeeded"), "{followed:?}");

    // Another request is another execution.
    let another = world.run(&QUICK).exits(0);
    assert_ne!(first_word(&another.out), first_word(&followed.out));
}

#[test]
fn a_failed_export_says_why_and_what_to_do() {
    let Some(world) = World::deploy("backfill-fails") else {
        return;
    };
    let failed = world
        .run(&[&QUICK[..], &["--incremental"]].concat())
        .exits(3);
    failed.says(&[
        "failed in step `Export`: Point in time recovery is not enabled \
         (DynamoDb.PointInTimeRecoveryUnavailableException)",
        "turn point-in-time recovery on for arn:aws:dynamodb:",
        "`dynalake backfill --stack backfill-fails-lake --resume`",
    ]);
    // Its files are gone on with.
    let resume = [&QUICK[..], &["--resume"]].concat();
    let resumed = world.run(&resume).exits(0).says(&["started resumed-"]);
    assert!(resumed.out.contains("succeeded"), "{resumed:?}");
    let over = world.run(&resume).exits(2);
    over.says(&["did not fail: nothing to go on with"]);
}

#[test]
fn progress_is_told_with_the_parts_done_through_failed_looks() {
    let Some(world) = World::deploy("backfill-told") else {
        return;
    };
    let arn = "arn:aws:states:eu-west-1:000000000000:execution:x-export:full-1";
    let execution = move |status: &str| {
        json!({
            "executionArn": arn, "stateMachineArn": "arn:aws:states:x", "name": "full-1",
            "status": status, "startDate": 1_777_629_600, "stopDate": 1_777_629_700,
        })
    };
    let counts = json!({
        "pending": 27, "running": 0, "succeeded": 12, "failed": 1, "timedOut": 0, "aborted": 0,
        "total": 40, "resultsWritten": 0,
    });
    // What MiniStack does not have: counts of a map while it runs, and a service that is busy.
    let sfn = ScriptedDynamo::start(move |operation, _, before| match operation {
        "ListExecutions" => Said::Answer(json!({"executions": [execution("RUNNING")]})),
        "DescribeExecution" => match before {
            1 => Said::Refusal(400, "ThrottlingException", "Rate exceeded"),
            0..4 => Said::Answer(execution("RUNNING")),
            _ => Said::Answer(execution("TIMED_OUT")),
        },
        "GetExecutionHistory" => Said::Answer(json!({"events": [{
            "id": 7, "type": "MapStateEntered", "timestamp": 1_777_629_600,
            "stateEnteredEventDetails": {"name": "Convert"},
        }]})),
        "ListMapRuns" => Said::Answer(json!({"mapRuns": [{
            "executionArn": arn, "mapRunArn": "arn:map", "stateMachineArn": "arn:aws:states:x",
            "startDate": 1_777_629_600,
        }]})),
        "DescribeMapRun" => Said::Answer(json!({
            "mapRunArn": "arn:map", "executionArn": arn, "status": "RUNNING",
            "startDate": 1_777_629_600, "maxConcurrency": 1,
            "toleratedFailurePercentage": 0.0, "toleratedFailureCount": 0,
            "itemCounts": counts, "executionCounts": counts,
        })),
        other => panic!("{other}"),
    });
    let mut command = world.command(&[&QUICK[..], &["--follow"]].concat());
    command.env("AWS_ENDPOINT_URL_SFN", sfn.endpoint());
    let followed = ran(command.output().unwrap()).exits(3);
    followed.says(&[
        "Convert, 12 of 40 parts done, 1 failed",
        "full-1 timed out in step `Convert`",
    ]);
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap()
}
