//! MiniStack makes exports but writes no files: the proxy before it puts them into the bucket when
//! somebody asks how far an export is.

use std::sync::Mutex;

use dynalake_tests::{Action, FaultProxy, MiniStack, ProxiedRequest, S3Place, ministack, seaweed};
use serde_json::{Value, json};

use super::world::{World, ran, write_export};

const EXPORT: &str = "DynamoDB_20120810.ExportTableToPointInTime";
const DESCRIBE: &str = "DynamoDB_20120810.DescribeExport";
const LIST: &str = "DynamoDB_20120810.ListExports";

/// A table with point-in-time recovery in MiniStack, and a proxy before it.
struct Bench {
    server: &'static MiniStack,
    proxy: FaultProxy,
    place: S3Place,
    arn: String,
    world: World,
}

impl Bench {
    fn new(name: &str) -> Option<Self> {
        let (server, s3) = (ministack()?, seaweed()?);
        let place = s3.place(name);
        let proxy = FaultProxy::start(server.address());
        let table = server.table(name);
        let arn = table.stream_arn().split("/stream/").next().unwrap();
        let bench = Self {
            server,
            arn: arn.to_owned(),
            world: World::new(proxy.endpoint(), Some(place.clone())),
            proxy,
            place,
        };
        bench.recovery(name, true);
        bench.fill(|_| Action::Pass);
        Some(bench)
    }

    fn recovery(&self, name: &str, on: bool) {
        let body = json!({
            "TableName": name,
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": on},
        });
        let operation = "DynamoDB_20120810.UpdateContinuousBackups";
        self.server.client().call(operation, &body).unwrap();
    }

    /// Before an export is looked at for the first time, its files are written.
    fn fill(&self, rule: impl Fn(&ProxiedRequest) -> Action + Send + 'static) {
        let (place, arn, server) = (self.place.clone(), self.arn.clone(), self.server);
        let written = Mutex::new(Vec::new());
        self.proxy.set(move |request| {
            if request.header("x-amz-target") == Some(DESCRIBE) {
                let mut written = written.lock().unwrap();
                for export in exports_of(server, &arn) {
                    if !written.contains(&export) {
                        write_export(&place, &export, at_of(server, &export));
                        written.push(export);
                    }
                }
            }
            rule(request)
        });
    }

    fn exports(&self) -> Vec<String> {
        exports_of(self.server, &self.arn)
    }
}

fn exports_of(server: &MiniStack, arn: &str) -> Vec<String> {
    let listed = server
        .client()
        .call(LIST, &json!({"TableArn": arn}))
        .unwrap();
    let summaries = listed["ExportSummaries"].as_array().unwrap().iter();
    summaries
        .map(|one| one["ExportArn"].as_str().unwrap().to_owned())
        .collect()
}

/// The instant that was asked for.
fn at_of(server: &MiniStack, export: &str) -> i64 {
    let body = json!({"ExportArn": export});
    let described = server.client().call(DESCRIBE, &body).unwrap();
    let seconds: &Value = &described["ExportDescription"]["ExportTime"];
    seconds.as_i64().unwrap() * 1000
}

fn is(request: &ProxiedRequest, operation: &str) -> bool {
    request.header("x-amz-target") == Some(operation)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_asked_for_waited_for_converted_and_committed() {
    let Some(bench) = Bench::new("export-run") else {
        return;
    };
    let world = &bench.world;
    let args = world.run_args(&bench.arn, &["--report", "json"]);
    let report = world.run(&args).exits(0).says(&["full export of"]).json();
    assert_eq!(
        (&report["items"], &report["baseline"]),
        (&json!(3), &json!("committed"))
    );
    assert_eq!(world.baselines().await, [report["label"].as_str().unwrap()]);
    let requests = world.status();
    assert_eq!(
        (requests.len(), &requests[0]["stage"]),
        (1, &json!("committed"))
    );

    // Both lists know it, and nothing is left to do.
    let list = [
        "export",
        "list",
        "--table-arn",
        &bench.arn,
        "--lake",
        "lake",
        "--format",
        "json",
    ];
    let listed = world.run(&list).exits(0).json();
    assert_eq!(listed["exports"][0]["lake"], "baseline");
    let table = world.run(&list[..6]).exits(0).out;
    assert!(
        table.contains(&bench.place.prefix) && table.contains("baseline"),
        "{table}"
    );
    world
        .resume(&[])
        .exits(0)
        .says(&["no request of this lake is unfinished"]);
    assert_eq!(bench.exports().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_recovery_nothing_is_asked_for_and_the_command_that_helps_is_said() {
    let Some(bench) = Bench::new("export-off") else {
        return;
    };
    bench.recovery("export-off", false);
    let world = &bench.world;
    world.run(&world.run_args(&bench.arn, &[])).exits(2).says(&[
        "hint:",
        "aws dynamodb update-continuous-backups --region eu-west-1 --table-name export-off",
        "PointInTimeRecoveryEnabled=true",
    ]);
    assert!(world.status().is_empty());
    assert!(bench.exports().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_answer_the_same_request_is_sent_again_and_makes_no_second_export() {
    let Some(bench) = Bench::new("export-kill-send") else {
        return;
    };
    let world = &bench.world;
    // DynamoDB makes the export, and its answer is lost.
    bench.fill(|request| {
        if is(request, EXPORT) {
            Action::DropAnswer
        } else {
            Action::Pass
        }
    });
    let mut child = world.start(&world.run_args(&bench.arn, &[]));
    bench.proxy.wait_for(|request| is(request, EXPORT));
    while bench.exports().is_empty() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let request = world.status().remove(0);
    assert_eq!(request["stage"], "requested");

    // Another run is not begun by accident.
    bench.fill(|_| Action::Pass);
    let again = world.run(&world.run_args(&bench.arn, &[])).exits(2);
    let id = request["id"].as_str().unwrap();
    again.says(&[
        &format!("dynalake export resume lake {id} --schemas schemas"),
        "--anew",
    ]);

    world.resume(&[]).exits(0);
    assert_eq!(bench.exports().len(), 1);
    assert_eq!(world.baselines().await.len(), 1);
    assert_eq!(
        world.status()[0]["exports"][0]["client_token"],
        request["exports"][0]["client_token"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_while_it_waits_it_says_how_to_go_on_and_does() {
    let Some(bench) = Bench::new("export-kill-wait") else {
        return;
    };
    let world = &bench.world;
    bench.fill(|request| {
        if is(request, DESCRIBE) {
            Action::Reset
        } else {
            Action::Pass
        }
    });
    let child = world.start(&world.run_args(&bench.arn, &["--no-commit"]));
    bench.proxy.wait_for(|request| is(request, DESCRIBE));
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    let id = world.status()[0]["id"].as_str().unwrap().to_owned();
    let resume = format!("`dynalake export resume lake {id} --schemas schemas`");
    ran(child.wait_with_output().unwrap())
        .exits(130)
        .says(&[&resume]);

    // Resumed, and killed while it converts: what is converted stays.
    bench.fill(|_| Action::Pass);
    world.resume(&["--no-commit"]).exits(0);
    assert!(world.baselines().await.is_empty());
    assert_eq!(world.status()[0]["stage"], "converted");
    let report = world.resume(&["--report", "json"]).exits(0).json();
    assert_eq!(
        (&report["files"]["resumed"], &report["files"]["converted"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(world.baselines().await.len(), 1);
    assert_eq!(bench.exports().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversion_that_failed_is_gone_on_with_without_another_export() {
    let Some(bench) = Bench::new("export-convert-fails") else {
        return;
    };
    let world = &bench.world;
    // The files come late: the export is whole for DynamoDB, its manifest is not there.
    bench.proxy.heal();
    let run = world.run(&world.run_args(&bench.arn, &[]));
    assert_ne!(run.code, 0, "{run:#?}");
    run.says(&["manifest-summary.json", "dynalake export resume lake"]);
    assert_eq!(world.status()[0]["stage"], "exported");
    let export = bench.exports().remove(0);
    let (place, at) = (bench.place.clone(), at_of(bench.server, &export));
    std::thread::spawn(move || write_export(&place, &export, at))
        .join()
        .unwrap();
    world.resume(&[]).exits(0);
    assert_eq!(world.baselines().await.len(), 1);
    assert_eq!(bench.exports().len(), 1);
}
