//! The workflow's definition, as it is in the repository, run by Step Functions with the real function.

use std::process::Command;

use dynalake_export_job::export_writer::{
    ExportSpec, NetEffect, gzip, write_full_export, write_incremental_export,
};
use dynalake_export_job::manifest::ExportView;
use serde_json::{Value, json};

use super::cloud::{Cloud, LAKE, WORK};
use super::world::{LABEL, World, comparable, difference, items, objects, spec, user};

/// Data files of some three parts each, one per invocation.
const IN_PARTS: [(&str, &str); 2] = [("DYNALAKE_PART_MB", "1"), ("DYNALAKE_PARTS_PER_CALL", "1")];

fn recovery(cloud: &Cloud, enabled: bool) {
    cloud.call(
        "DynamoDB_20120810.UpdateContinuousBackups",
        &json!({
            "TableName": "shop",
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": enabled},
        }),
    );
}

fn manifest(folder: &str) -> Value {
    json!({"bucket": WORK, "manifest": format!("{folder}/manifest-summary.json")})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_export_is_asked_for_converted_in_parts_committed_and_published() {
    let world = World::new();
    let Some(cloud) = Cloud::new(&world, &IN_PARTS, &json!({})).await else {
        return;
    };
    let export = world.export(2, 45_000);

    cloud
        .run(&json!({"type": "SOME"}))
        .failed("dynalake.Event", "INCREMENTAL");
    cloud
        .run(&json!({"type": "FULL"}))
        .failed("dynalake.Refused", "point-in-time-recovery");
    recovery(&cloud, true);
    // MiniStack's recovery reaches back to now only, and there is no baseline anyway.
    cloud
        .run(&json!({"type": "INCREMENTAL"}))
        .failed("dynalake.Refused", "no baseline");

    let execution = cloud.start(None, &json!({"type": "FULL"}));
    let id = cloud.export_asked_for(0);
    let folder = format!("AWSDynamoDB/{id}");
    cloud.upload(&export, &folder).await;
    let ended = cloud.end(&execution);
    let commit = &ended.succeeded()["commit"];
    assert_eq!(
        (&commit["label"], &commit["outcome"]),
        (&json!(LABEL), &json!("committed"))
    );
    let asked = cloud.call(
        "DynamoDB_20120810.DescribeExport",
        &json!({"ExportArn": format!("arn:aws:dynamodb:eu-west-1:000000000000:table/shop/export/{id}")}),
    );
    let asked = &asked["ExportDescription"];
    assert_eq!(
        (&asked["S3Prefix"], &asked["ExportFormat"]),
        (&json!("exports"), &json!("DYNAMODB_JSON"))
    );
    assert!(
        asked["ExportTime"].is_string() || asked["ExportTime"].is_number(),
        "{asked}"
    );
    assert!(asked["ClientToken"].is_string(), "{asked}");

    // The same lake as the command's, which goes on with the same plan.
    let lake = objects(&cloud.bucket(LAKE)).await;
    let plan = format!("state/exports/{}/plan.json", spec(2).export_id());
    let copy = world.path("local").join(&plan);
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::write(copy, &lake[&plan]).unwrap();
    let expected = world.converted_locally("local", &[export.as_path()]).await;
    assert!(
        expected
            .keys()
            .filter(|key| key.contains("/parts/"))
            .count()
            >= 4
    );
    assert_eq!(
        difference(&comparable(lake.clone()), &comparable(expected)),
        [""; 0]
    );
    assert_eq!(
        cloud.views(),
        [
            "unmatched",
            "unmatched_flat",
            "unmatched_history",
            "users",
            "users_flat",
            "users_history"
        ]
    );

    // The same export again: nothing is done twice.
    let again = cloud.run(&json!({"exports": [manifest(&folder)]}));
    assert_eq!(again.succeeded()["commit"]["outcome"], "unchanged");
    assert_eq!(again.output["plan"]["todo"], 0);
    assert_eq!(objects(&cloud.bucket(LAKE)).await, lake);
    cloud
        .run(&json!({"exports": [manifest("AWSDynamoDB/none")]}))
        .failed("dynalake.Refused", "there is no such file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_fails_the_workflow_and_once_repaired_it_goes_on() {
    let world = World::new();
    let Some(cloud) = Cloud::new(&world, &[], &json!({})).await else {
        return;
    };
    let export = world.export(3, 90);
    let name = std::fs::read_dir(export.join("data"))
        .unwrap()
        .next()
        .unwrap();
    let file = name.unwrap().path();
    let right = std::fs::read(&file).unwrap();
    std::fs::write(&file, [right.clone(), gzip(b"").unwrap()].concat()).unwrap();
    cloud.upload(&export, "copy").await;
    let input = json!({"exports": [manifest("copy")]});
    cloud.run(&input).failed("dynalake.Convert", "Map Run");
    let keys = objects(&cloud.bucket(LAKE)).await.into_keys();
    let records = keys.filter(|key| key.ends_with(".json.gz.json")).count();
    assert_eq!(records, 2);
    assert_eq!(cloud.views(), [""; 0]);
    std::fs::write(&file, right).unwrap();
    cloud.upload(&export, "copy").await;
    let ended = cloud.run(&input);
    assert_eq!(ended.succeeded()["plan"]["todo"], 1);
    assert_eq!(ended.output["commit"]["outcome"], "committed");
}

/// Milliseconds since 1970-01-01 UTC, whole minutes.
fn this_minute() -> i64 {
    let output = Command::new("date").arg("+%s").output().unwrap();
    let seconds: i64 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    seconds / 60 * 60_000
}

#[tokio::test(flavor = "multi_thread")]
async fn the_windows_since_the_last_baseline_are_asked_for_and_rolled_into_a_new_one() {
    let world = World::new();
    // MiniStack's recovery reaches back to now only; this table's is older.
    let mocks = json!({
        "StateMachines": {"export": {"TestCases": {"old": {"Describe backups": "reach"}}}},
        "MockedResponses": {"reach": {"0": {"Return": {"ContinuousBackupsDescription": {
            "PointInTimeRecoveryDescription": {
                "PointInTimeRecoveryStatus": "ENABLED",
                "EarliestRestorableDateTime": "2026-01-01T00:00:00Z",
                "LatestRestorableDateTime": "2100-01-01T00:00:00Z",
            },
        }}}}},
    });
    let Some(cloud) = Cloud::new(&world, &[], &mocks).await else {
        return;
    };
    // A full export of an hour ago.
    let begin = this_minute() - 3_600_000;
    let base = ExportSpec {
        data_files: 2,
        ..ExportSpec::new("shop", begin)
    };
    let full = write_full_export(&world.path("bucket"), &base, items(50)).unwrap();
    cloud.upload(&full, "full").await;
    let ended = cloud.run(&json!({"exports": [manifest("full")]}));
    let label = ended.succeeded()["commit"]["label"].clone();

    let execution = cloud.start(Some("old"), &json!({"type": "INCREMENTAL"}));
    let id = cloud.export_asked_for(0);
    // What was asked for is in the history.
    let history = cloud.history(&execution).to_string();
    let time = |name: &str| {
        let at = history.find(&format!("\\\"{name}\\\": \\\"")).unwrap() + name.len() + 8;
        history[at..at + 20].to_owned()
    };
    let millis = |text: &str| {
        let held = dynalake_pipeline::time::parse_iso8601(text).unwrap();
        held.0
    };
    let (from, to) = (millis(&time("from")), millis(&time("to")));
    assert_eq!(from, begin);
    assert!(to > from + 50 * 60_000, "{from} {to}");
    let key = |n: u32| format!(r#"{{"PK":{{"S":"USER#u{n}"}},"SK":{{"S":"PROFILE"}}}}"#);
    let effects = [
        NetEffect {
            keys: key(1),
            before: Some(user(1, "名")),
            after: Some(user(1, "later")),
            written_micros: (from + 1) * 1000,
        },
        NetEffect {
            keys: key(2),
            before: Some(user(2, "名")),
            after: None,
            written_micros: (from + 2) * 1000,
        },
        NetEffect {
            keys: key(99),
            before: None,
            after: Some(user(99, "new")),
            written_micros: (from + 3) * 1000,
        },
    ];
    let window = ExportSpec {
        data_files: 2,
        ..ExportSpec::incremental("shop", from, to, ExportView::NewAndOldImages)
    };
    let incremental = world.path("window");
    let folder = write_incremental_export(&incremental, &window, &effects).unwrap();
    // The manifests in the export's folder, the data in the one that exports share.
    cloud
        .upload(&folder.parent().unwrap().join("data"), "AWSDynamoDB/data")
        .await;
    cloud.upload(&folder, &format!("AWSDynamoDB/{id}")).await;
    let ended = cloud.end(&execution);
    let commit = &ended.succeeded()["commit"];
    assert_eq!(commit["outcome"], "committed");
    assert_ne!(commit["label"], label);
    assert_eq!(ended.output["plan"]["kind"], "incremental");
    assert_eq!(ended.output["roll"]["done"], true);

    // The same rows as the command's.
    let lake = comparable(objects(&cloud.bucket(LAKE)).await);
    world.converted_locally("local", &[full.as_path()]).await;
    let expected = world.converted_locally("local", &[folder.as_path()]).await;
    let expected = comparable(expected);
    let rows = |objects: &super::world::Objects| -> super::world::Objects {
        let rows = objects.iter().filter(|(key, _)| !key.starts_with("state/"));
        rows.map(|(key, body)| (key.clone(), body.clone()))
            .collect()
    };
    assert_eq!(difference(&rows(&lake), &rows(&expected)), [""; 0]);

    // Too early for another one: nothing to do is no failure.
    let ended = cloud.end(&cloud.start(Some("old"), &json!({"type": "INCREMENTAL"})));
    assert_eq!(ended.succeeded()["wanted"]["count"], 0);
}
