//! What MiniStack does not do: exports that take their time, fail, are throttled or refused.

use std::sync::{Mutex, mpsc};

use dynalake_export_job::request::{MAX_WINDOW_MS, MIN_WINDOW_MS};
use dynalake_pipeline::time::format_iso8601;
use dynalake_tests::{Action, FaultProxy, S3Place, Said, ScriptedDynamo, seaweed};
use serde_json::{Value, json};

use super::world::{ARN, World, now_ms, ran, write_export};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// Point-in-time recovery over the last days.
fn recovery(days: i64) -> Said {
    let seconds = |ms: i64| ms / 1000;
    Said::Answer(json!({"ContinuousBackupsDescription": {
        "ContinuousBackupsStatus": "ENABLED",
        "PointInTimeRecoveryDescription": {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": 35,
            "EarliestRestorableDateTime": seconds(now_ms() - days * DAY),
            "LatestRestorableDateTime": seconds(now_ms() - 5 * MINUTE),
        },
    }}))
}

fn export_arn(number: usize) -> String {
    format!("{ARN}/export/{:014}-0000000{number}", now_ms())
}

fn description(arn: &str, status: &str) -> Value {
    json!({
        "ExportArn": arn, "ExportStatus": status, "TableArn": ARN, "StartTime": now_ms() / 1000,
    })
}

fn answer(description: &Value) -> Said {
    Said::Answer(json!({"ExportDescription": description}))
}

/// The instant that a request asks for, milliseconds.
fn asked_ms(parameters: &Value) -> i64 {
    parameters["ExportTime"].as_i64().unwrap() * 1000
}

/// Writes the files of an export from a thread without a runtime.
fn write(place: &S3Place, arn: &str, at_ms: i64) {
    let (place, arn) = (place.clone(), arn.to_owned());
    std::thread::spawn(move || write_export(&place, &arn, at_ms))
        .join()
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_takes_its_time_is_waited_for_through_throttling_and_broken_lines() {
    let Some(server) = seaweed() else { return };
    let place = server.place("request-slow");
    let export = Mutex::new(None);
    let files = place.clone();
    let dynamo = ScriptedDynamo::start(move |operation, parameters, before| match operation {
        "DescribeContinuousBackups" => recovery(35),
        "ExportTableToPointInTime" => {
            let arn = export_arn(1);
            *export.lock().unwrap() = Some((arn.clone(), asked_ms(parameters)));
            answer(&description(&arn, "IN_PROGRESS"))
        }
        "DescribeExport" => {
            let (arn, at) = export.lock().unwrap().clone().unwrap();
            match before {
                1 => Said::Refusal(400, "ThrottlingException", "Rate exceeded"),
                3 => Said::HangUp,
                5 => Said::Refusal(500, "InternalServerError", "Sorry"),
                0..8 => answer(&description(&arn, "IN_PROGRESS")),
                _ => {
                    write(&files, &arn, at);
                    let mut whole = description(&arn, "COMPLETED");
                    whole["EndTime"] = json!(now_ms() / 1000 + 360);
                    whole["ItemCount"] = json!(3);
                    whole["BilledSizeBytes"] = json!(123_456);
                    answer(&whole)
                }
            }
        }
        other => panic!("{other}"),
    });
    let world = World::new(dynamo.endpoint(), Some(place.clone()));
    let more = ["--kms-key", "alias/lake", "--bucket-owner", "210987654321"];
    let run = world.run(&world.run_args(ARN, &more)).exits(0);
    assert!(run.out.contains("committed as baseline"), "{run:#?}");
    run.says(&["0 of 1 exports done after 0 min, DynamoDB takes 5 min at least"]);
    assert_eq!(world.baselines().await.len(), 1);

    // What was asked for, once.
    let asked = dynamo.calls_of("ExportTableToPointInTime");
    assert_eq!(asked.len(), 1);
    let asked = &asked[0];
    for (name, value) in [
        ("TableArn", ARN),
        ("S3Bucket", place.bucket),
        ("S3Prefix", &place.prefix),
        ("S3BucketOwner", "210987654321"),
        ("S3SseAlgorithm", "KMS"),
        ("S3SseKmsKeyId", "alias/lake"),
        ("ExportFormat", "DYNAMODB_JSON"),
        ("ExportType", "FULL_EXPORT"),
    ] {
        assert_eq!(asked[name], value, "{name}");
    }
    let request = world.status().remove(0);
    assert_eq!(asked["ClientToken"], request["exports"][0]["client_token"]);
    assert_eq!(request["exports"][0]["billed_bytes"], 123_456);
    // A finished request is not looked at again.
    assert_eq!(dynamo.calls_of("DescribeExport").len(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_fails_says_why_and_is_asked_for_again_under_another_token() {
    let Some(server) = seaweed() else { return };
    let place = server.place("request-fails");
    let files = place.clone();
    let dynamo = ScriptedDynamo::start(move |operation, parameters, before| match operation {
        "DescribeContinuousBackups" => recovery(35),
        "ExportTableToPointInTime" => {
            let arn = export_arn(before);
            if before == 1 {
                write(&files, &arn, asked_ms(parameters));
            }
            answer(&description(&arn, "IN_PROGRESS"))
        }
        "DescribeExport" => {
            let arn = parameters["ExportArn"].as_str().unwrap();
            if arn.ends_with('1') {
                return answer(&description(arn, "COMPLETED"));
            }
            let mut failed = description(arn, "FAILED");
            failed["FailureCode"] = json!("S3AccessDenied");
            failed["FailureMessage"] = json!("Access Denied");
            answer(&failed)
        }
        other => panic!("{other}"),
    });
    let world = World::new(dynamo.endpoint(), Some(place));
    world.run(&world.run_args(ARN, &[])).exits(3).says(&[
        "Access Denied (S3AccessDenied)",
        "`s3:PutObject`",
        "dynalake export resume lake",
    ]);
    assert_eq!(world.status()[0]["stage"], "failed");
    let status = world.run(&["export", "status", "lake"]).exits(0);
    assert!(status.out.contains("failed"), "{status:#?}");
    status.says(&["S3AccessDenied"]);
    world.resume(&[]).exits(0);
    let tokens: Vec<Value> = dynamo
        .calls_of("ExportTableToPointInTime")
        .iter()
        .map(|asked| asked["ClientToken"].clone())
        .collect();
    assert_eq!(tokens.len(), 2);
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!(world.baselines().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_while_it_converts_it_says_how_to_go_on_and_keeps_what_is_done() {
    let Some(server) = seaweed() else { return };
    let place = server.place("request-convert");
    let files = place.clone();
    let dynamo = ScriptedDynamo::start(move |operation, parameters, _| match operation {
        "DescribeContinuousBackups" => recovery(35),
        "ExportTableToPointInTime" => {
            let arn = export_arn(1);
            write(&files, &arn, asked_ms(parameters));
            answer(&description(&arn, "COMPLETED"))
        }
        other => panic!("{other}"),
    });
    let proxy = FaultProxy::start(server.address());
    let world = World::new(dynamo.endpoint(), Some(place.through(proxy.endpoint())));
    // The bytes of the second data file do not come.
    let (arrived, arrives) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let first = Mutex::new(None);
    proxy.set(move |request| {
        if request.method == "GET" && request.target.contains("/data/") {
            let mut first = first.lock().unwrap();
            let path = request.target.split('?').next().unwrap().to_owned();
            if first.get_or_insert_with(|| path.clone()) != &path {
                arrived.send(()).unwrap();
                // Until the other end has gone.
                assert!(released.recv().is_err());
            }
        }
        Action::Pass
    });
    let child = world.start(&world.run_args(ARN, &["--workers", "1"]));
    arrives.recv().unwrap();
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    let run = ran(child.wait_with_output().unwrap()).exits(130);
    run.says(&["To go on", "dynalake export resume lake"]);
    drop(release);
    proxy.heal();
    let report = world.resume(&["--report", "json"]).exits(0).json();
    assert_eq!(
        report["files"],
        json!({"total": 2, "converted": 1, "resumed": 1})
    );
    assert_eq!(world.baselines().await.len(), 1);
    assert_eq!(dynamo.calls_of("ExportTableToPointInTime").len(), 1);
}

#[test]
fn a_refusal_says_what_to_do_and_leaves_nothing_behind() {
    for (operation, code, says) in [
        (
            "DescribeContinuousBackups",
            "AccessDeniedException",
            "`dynamodb:DescribeContinuousBackups`",
        ),
        (
            "DescribeContinuousBackups",
            "TableNotFoundException",
            "check the ARN",
        ),
        (
            "ExportTableToPointInTime",
            "AccessDeniedException",
            "`dynamodb:ExportTableToPointInTime`",
        ),
        (
            "ExportTableToPointInTime",
            "ExportConflictException",
            "wait a minute",
        ),
        (
            "ExportTableToPointInTime",
            "InvalidExportTimeException",
            "looks at its range",
        ),
        (
            "ExportTableToPointInTime",
            "PointInTimeRecoveryUnavailableException",
            "turn point-in-time recovery on",
        ),
        (
            "ExportTableToPointInTime",
            "S3NoSuchBucket",
            "make the bucket `exports`",
        ),
        (
            "ExportTableToPointInTime",
            "LimitExceededException",
            "too many exports",
        ),
    ] {
        let dynamo = ScriptedDynamo::start(move |called, _, _| {
            if called == operation {
                return Said::Refusal(400, code, "No.");
            }
            recovery(35)
        });
        let world = World::new(dynamo.endpoint(), None);
        world.run(&world.run_args(ARN, &[])).exits(3).says(&[
            &format!("No. ({code})"),
            "hint:",
            says,
        ]);
        assert!(world.status().is_empty(), "{code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn incremental_exports_cover_the_time_since_the_baseline_in_legal_windows() {
    let dynamo = ScriptedDynamo::start(|operation, parameters, before| match operation {
        "DescribeContinuousBackups" => recovery(35),
        "ExportTableToPointInTime" => answer(&description(&export_arn(before), "IN_PROGRESS")),
        "DescribeExport" => answer(&description(
            parameters["ExportArn"].as_str().unwrap(),
            "IN_PROGRESS",
        )),
        other => panic!("{other}"),
    });
    let world = World::new(dynamo.endpoint(), None);
    // Whole seconds; two days and a few minutes ago.
    let from = (now_ms() / 1000) * 1000 - 2 * DAY - 10 * MINUTE;
    world.baseline(ARN, from).await;
    let more = [
        "--incremental",
        "--no-wait",
        "--view",
        "new-and-old",
        "--format",
        "ion",
    ];
    let run = world.run(&world.run_args(ARN, &more)).exits(0);
    run.says(&["changes from", "dynalake export resume lake"]);
    let asked = dynamo.calls_of("ExportTableToPointInTime");
    assert_eq!(asked.len(), 3);
    let mut at = from;
    for one in &asked {
        assert_eq!(one["ExportType"], "INCREMENTAL_EXPORT");
        assert_eq!(one["ExportFormat"], "ION");
        let window = &one["IncrementalExportSpecification"];
        assert_eq!(window["ExportViewType"], "NEW_AND_OLD_IMAGES");
        let time = |name: &str| window[name].as_i64().unwrap() * 1000;
        assert_eq!(time("ExportFromTime"), at);
        at = time("ExportToTime");
        let length = at - time("ExportFromTime");
        assert!(
            (MIN_WINDOW_MS..=MAX_WINDOW_MS).contains(&length),
            "{length}"
        );
    }
    let behind = now_ms() - at;
    assert!((5 * MINUTE..=7 * MINUTE).contains(&behind), "{behind}");
    let requests = world.status();
    assert_eq!(requests[0]["stage"], "exporting");
    assert_eq!(requests[0]["exports"].as_array().unwrap().len(), 3);

    // It runs: another one is not begun by accident.
    let again = world.run(&world.run_args(ARN, &["--incremental"])).exits(2);
    again.says(&["is not finished", "dynalake export resume lake"]);

    // A gap is filled with the window that is asked for.
    let (begin, end) = (from + 60 * MINUTE, from + 90 * MINUTE);
    let text = |at: i64| format_iso8601(at).unwrap();
    let gap = ["--from", &text(begin), "--to", &text(end), "--anew"];
    let more = [&["--incremental", "--no-wait"][..], &gap].concat();
    world.run(&world.run_args(ARN, &more)).exits(0);
    let asked = dynamo.calls_of("ExportTableToPointInTime");
    let window = &asked[3]["IncrementalExportSpecification"];
    assert_eq!(window["ExportFromTime"], json!(begin / 1000));
    assert_eq!(window["ExportToTime"], json!(end / 1000));
    assert_eq!(window["ExportViewType"], "NEW_IMAGE");
}

#[tokio::test(flavor = "multi_thread")]
async fn incremental_exports_that_are_not_possible_say_what_is() {
    let dynamo = ScriptedDynamo::start(|_, _, _| recovery(3));
    let world = World::new(dynamo.endpoint(), None);
    let args = world.run_args(ARN, &["--incremental"]);
    let full = format!("dynalake export run --table-arn {ARN} --bucket exports --prefix nightly");
    world.run(&args).exits(2).says(&["no baseline", &full]);

    world.baseline(ARN, now_ms() - 4 * DAY).await;
    world
        .run(&args)
        .exits(2)
        .says(&["cannot be exported any more", &full]);

    let newest = now_ms() - 10 * MINUTE;
    world.baseline(ARN, newest).await;
    let possible = newest + 21 * MINUTE;
    let possible = format!(
        "run the same command at {} or later",
        format_iso8601(possible).unwrap()
    );
    world.run(&args).exits(2).says(&[&possible]);

    let other = "arn:aws:dynamodb:eu-west-1:123456789012:table/other";
    let run = world
        .run(&world.run_args(other, &["--incremental"]))
        .exits(2);
    run.says(&["one lake holds one table"]);
    assert!(dynamo.calls_of("ExportTableToPointInTime").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_yesterday_is_looked_for_by_its_token_before_it_is_sent() {
    let Some(server) = seaweed() else { return };
    let place = server.place("request-yesterday");
    let made = Mutex::new(None);
    let files = place.clone();
    let dynamo = ScriptedDynamo::start(move |operation, parameters, before| {
        let found = |status| {
            let (arn, token): (String, Value) = made.lock().unwrap().clone().unwrap();
            let mut whole = description(&arn, status);
            whole["ClientToken"] = token;
            answer(&whole)
        };
        match operation {
            "DescribeContinuousBackups" => recovery(35),
            "ExportTableToPointInTime" => {
                let arn = export_arn(1);
                write(&files, &arn, asked_ms(parameters));
                *made.lock().unwrap() = Some((arn, parameters["ClientToken"].clone()));
                Said::HangUp
            }
            // Two pages; the first one is of another request.
            "ListExports" if before == 0 => {
                let summary = json!({"ExportArn": export_arn(7), "ExportStatus": "COMPLETED"});
                Said::Answer(json!({"ExportSummaries": [summary], "NextToken": "more"}))
            }
            "ListExports" => {
                assert_eq!(parameters["NextToken"], "more");
                let arn = made.lock().unwrap().clone().unwrap().0;
                let summary = json!({"ExportArn": arn, "ExportStatus": "COMPLETED"});
                Said::Answer(json!({"ExportSummaries": [summary]}))
            }
            "DescribeExport" if parameters["ExportArn"].as_str().unwrap().ends_with('7') => {
                let mut other = description(&export_arn(7), "COMPLETED");
                other["ClientToken"] = json!("another");
                answer(&other)
            }
            "DescribeExport" => found("COMPLETED"),
            other => panic!("{other}"),
        }
    });
    let world = World::new(dynamo.endpoint(), Some(place));
    let run = world.run(&world.run_args(ARN, &[])).exits(3);
    run.says(&["to go on: `dynalake export resume lake"]);
    let sent = dynamo.calls_of("ExportTableToPointInTime").len();

    // The request was made eight hours earlier than it was.
    let key = world
        .lake()
        .list("state/requests/")
        .await
        .unwrap()
        .remove(0)
        .key;
    let text = world.lake().get(&key).await.unwrap().unwrap();
    let mut record: Value = serde_json::from_slice(&text).unwrap();
    let asked = record["exports"][0]["asked_at_ms"].as_i64().unwrap();
    record["exports"][0]["asked_at_ms"] = json!(asked - 8 * 60 * MINUTE);
    world
        .lake()
        .put(&key, record.to_string().into())
        .await
        .unwrap();

    world.resume(&[]).exits(0);
    assert_eq!(dynamo.calls_of("ExportTableToPointInTime").len(), sent);
    assert_eq!(world.baselines().await.len(), 1);
}

#[test]
fn slips_are_found_before_anything_is_asked_for() {
    let dynamo = ScriptedDynamo::start(|operation, _, _| panic!("{operation}"));
    let world = World::new(dynamo.endpoint(), None);
    world
        .run(&world.run_args("shop", &[]))
        .exits(2)
        .says(&["is no ARN"]);
    let stream = format!("{ARN}/stream/2026-05-01T00:00:00.000");
    world
        .run(&world.run_args(&stream, &[]))
        .exits(2)
        .says(&["of a stream"]);
    let both = ["--incremental", "--export-time", "2026-05-01T00:00:00Z"];
    world.run(&world.run_args(ARN, &both)).exits(2);
    std::fs::write(
        world.path("schemas/lake.toml"),
        "database = \"shop\"\n[source]\ntable = \"prod\"\npartition_key = \"PK\"\nsort_key = \"SK\"\n",
    )
    .unwrap();
    let run = world.run(&world.run_args(ARN, &[])).exits(2);
    run.says(&["the schemas are for table `prod`"]);
    world
        .resume(&["nothing"])
        .exits(2)
        .says(&["no request `nothing`"]);
    assert!(dynamo.calls().is_empty());
}
