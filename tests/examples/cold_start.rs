//! How long a function takes from the start of its process to its first poll, and to answer its first
//! event, against the tests' Runtime API.
//!
//! `cold_start FUNCTION BINARY [RUNS]`: FUNCTION is `stream` or `export-job`. Where SeaweedFS is there
//! (`DYNALAKE_WEED`), the lake is in it, else in a folder. Prints least and median of the runs and what
//! they are measured against; exit 1 when the median to the first poll is over the goal.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dynalake_tests::{LambdaProcess, S3Place, repository, seaweed, weed};
use serde_json::json;

/// Start to first poll ("cold start" of our own part; Lambda's comes before it).
const GOAL: Duration = Duration::from_millis(50);

/// A change of an item of `tests/fixtures/schemas/shop`.
fn change() -> String {
    json!({"Records": [{
        "eventID": "c4ca4238a0b923820dcc509a6f75849b", "eventName": "INSERT", "eventVersion": "1.1",
        "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_777_629_600,
            "Keys": {"PK": {"S": "USER#1"}, "SK": {"S": "PROFILE"}},
            "NewImage": {"PK": {"S": "USER#1"}, "SK": {"S": "PROFILE"}, "name": {"S": "Ada"}},
            "SequenceNumber": "100000000000000000001", "SizeBytes": 60,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN":
            "arn:aws:dynamodb:eu-west-1:111122223333:table/shop-table/stream/2026-05-01T00:00:00.000",
    }]})
    .to_string()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (function, binary, runs) = match arguments.as_slice() {
        [function, binary] => (function, binary, 11),
        [function, binary, runs] => (function, binary, runs.parse().expect("a number of runs")),
        _ => panic!("cold_start FUNCTION BINARY [RUNS]"),
    };
    let event = match function.as_str() {
        "stream" => change(),
        "export-job" => json!({"step": "compact"}).to_string(),
        other => panic!("no function {other}: stream or export-job"),
    };
    let folder = tempfile::tempdir().unwrap();
    let place = weed()
        .and_then(|_| seaweed())
        .map(|server| server.place("cold-start"));
    let mut variables: Vec<(&str, String)> = S3Place::aws_variables()
        .map(|(name, value)| (name, value.to_owned()))
        .into();
    let schemas = repository().join("tests/fixtures/schemas/shop");
    variables.push(("_HANDLER", function.replace("-job", "")));
    variables.push(("DYNALAKE_SCHEMAS", schemas.display().to_string()));
    variables.push(("DYNALAKE_HMAC_KEY", "a secret of the tests".to_owned()));
    match &place {
        Some(place) => {
            variables.push(("DYNALAKE_LAKE", place.uri()));
            variables.push(("DYNALAKE_S3_ENDPOINT", place.endpoint.clone()));
            variables.push(("DYNALAKE_S3_PATH_STYLE", "true".to_owned()));
        }
        None => variables.push(("DYNALAKE_LAKE", folder.path().display().to_string())),
    }
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();

    let (mut starts, mut firsts) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let begin = Instant::now();
        let started = LambdaProcess::start(Path::new(binary), &variables);
        starts.push(begin.elapsed());
        let mut process = started.unwrap_or_else(|error| panic!("no start:\n{}", error.text()));
        let begin = Instant::now();
        process.invoke(&event).expect("the first event is answered");
        firsts.push(begin.elapsed());
    }
    let lake = if place.is_some() { "S3" } else { "a folder" };
    let start = told(&mut starts);
    println!(
        "{function}: process start to first poll {}; first event, lake in {lake}, {} (least and median of {runs})",
        text(start),
        text(told(&mut firsts)),
    );
    if start.1 > GOAL {
        eprintln!(
            "{function}: the goal is {} ms to the first poll",
            GOAL.as_millis()
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Least and median.
fn told(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort();
    (times[0], times[times.len() / 2])
}

fn text((least, median): (Duration, Duration)) -> String {
    let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
    format!("{} and {} ms", ms(least), ms(median))
}
