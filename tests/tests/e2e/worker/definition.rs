//! The workflow's definition, looked at: what Step Functions would find out only when it gets there.
//!
//! Rules of the Amazon States Language as its specification and the developer guide of Step Functions tell
//! them. Each rule is tried on a definition that breaks it.

use std::collections::BTreeSet;

use dynalake_export_job::function::{LOCKED, PASSING, STEPS};
use dynalake_tests::repository;
use serde_json::{Value, json};

/// What a template fills in.
const PLACEHOLDERS: [&str; 5] = [
    "ExportJobArn",
    "ExportPrefix",
    "KmsKeyArn",
    "TableArn",
    "WorkBucket",
];
/// Steps that the workflow does not call: they are for deployments and schedules.
const NOT_CALLED: [&str; 2] = ["publish", "compact"];
/// Steps that hold the lock of the lake's state.
const LOCKING: [&str; 3] = ["plan", "roll", "commit"];

fn definition() -> Value {
    let text = std::fs::read_to_string(repository().join("infra/export.asl.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Everything that is wrong with a definition.
fn problems(definition: &Value) -> Vec<String> {
    let mut check = Check::default();
    check.machine("", definition, true);
    if definition["TimeoutSeconds"].as_u64().is_none() {
        check.problems.push("may run for ever".to_owned());
    }
    let called: BTreeSet<&str> = check.steps.iter().map(String::as_str).collect();
    for step in STEPS {
        if called.contains(step) == NOT_CALLED.contains(&step) {
            check
                .problems
                .push(format!("step `{step}` is called or not"));
        }
    }
    let text = definition.to_string();
    let mut used = BTreeSet::new();
    for part in text.split("${").skip(1) {
        used.insert(part.split('}').next().unwrap().to_owned());
    }
    if !used.iter().eq(PLACEHOLDERS.iter()) {
        check.problems.push(format!("placeholders {used:?}"));
    }
    check.problems
}

#[derive(Default)]
struct Check {
    problems: Vec<String>,
    steps: Vec<String>,
}

impl Check {
    fn wrong(&mut self, place: &str, what: &str) {
        self.problems.push(format!("{place}: {what}"));
    }

    /// A state machine, or the one within a map.
    fn machine(&mut self, place: &str, machine: &Value, outermost: bool) {
        let Some(states) = machine["States"].as_object() else {
            return self.wrong(place, "no states");
        };
        let mut targets = BTreeSet::from([machine["StartAt"].as_str().unwrap_or("(no StartAt)")]);
        for (name, state) in states {
            let place = format!("{place}/{name}");
            targets.extend(self.targets(&place, state));
            match state["Type"].as_str() {
                Some("Task") => self.task(&place, state, outermost),
                Some("Map") => self.map(&place, state, outermost),
                Some("Fail") => self.fail(&place, state),
                Some("Wait") if state["Seconds"].as_u64().is_none_or(|wait| wait < 60) => {
                    self.wrong(&place, "asks AWS too often");
                }
                Some("Choice" | "Pass" | "Wait" | "Succeed") => {}
                other => self.wrong(&place, &format!("type {other:?}")),
            }
        }
        for target in &targets {
            if !states.contains_key(*target) {
                self.wrong(place, &format!("no state is called `{target}`"));
            }
        }
        for name in states.keys() {
            if !targets.contains(name.as_str()) {
                self.wrong(place, &format!("nothing leads to `{name}`"));
            }
        }
    }

    /// Where a state leads to.
    fn targets<'a>(&mut self, place: &str, state: &'a Value) -> Vec<&'a str> {
        let mut targets: Vec<&Value> = Vec::new();
        let ends = matches!(state["Type"].as_str(), Some("Succeed" | "Fail"));
        if state["Type"] == "Choice" {
            let choices = state["Choices"].as_array().map_or(&[][..], Vec::as_slice);
            targets.extend(choices.iter().map(|choice| &choice["Next"]));
            // Without it a state that nothing matches fails with an error that says nothing.
            targets.push(&state["Default"]);
        } else if !ends && state["End"] != true {
            targets.push(&state["Next"]);
        }
        if let Some(catchers) = state["Catch"].as_array() {
            targets.extend(catchers.iter().map(|catcher| &catcher["Next"]));
        }
        let named = targets.iter().filter_map(|target| target.as_str());
        let named: Vec<&str> = named.collect();
        if named.len() != targets.len() {
            self.wrong(place, "leads nowhere");
        }
        named
    }

    fn task(&mut self, place: &str, state: &Value, outermost: bool) {
        let resource = state["Resource"].as_str().unwrap_or_default();
        let retried = errors(&state["Retry"]);
        let all = |names: &[&str]| names.iter().all(|name| retried.contains(*name));
        match resource {
            "arn:aws:states:::lambda:invoke" => {
                let parameters = &state["Parameters"];
                if parameters["FunctionName"] != "${ExportJobArn}" {
                    self.wrong(place, "calls another function");
                }
                let step = parameters["Payload"]["step"].as_str().unwrap_or_default();
                if !STEPS.contains(&step) {
                    self.wrong(place, &format!("step `{step}` is not known"));
                }
                self.steps.push(step.to_owned());
                let lambda = [
                    "Lambda.TooManyRequestsException",
                    "Lambda.ServiceException",
                    "Lambda.AWSLambdaException",
                    "Lambda.SdkClientException",
                    "Lambda.ClientExecutionTimeoutException",
                    // A sandbox that ended: out of time or of memory.
                    "Lambda.Unknown",
                    "Sandbox.Timedout",
                ];
                if !all(&lambda) || !all(&PASSING) {
                    self.wrong(place, "what passes is not tried again");
                }
                if retried.contains(LOCKED) != LOCKING.contains(&step) {
                    self.wrong(place, "a lock is waited for or not");
                }
                let allowed = |name: &&str| {
                    !name.starts_with("dynalake.") || PASSING.contains(name) || *name == LOCKED
                };
                if !retried.iter().all(|name| allowed(&name.as_str())) || all(&["States.ALL"]) {
                    self.wrong(place, "a refusal is tried again");
                }
            }
            "arn:aws:states:::aws-sdk:dynamodb:exportTableToPointInTime" => {
                if state["Parameters"]["ClientToken.$"].is_null() {
                    self.wrong(place, "asked again it would be another export");
                }
            }
            "arn:aws:states:::aws-sdk:dynamodb:describeExport"
            | "arn:aws:states:::aws-sdk:dynamodb:describeContinuousBackups" => {}
            other => self.wrong(place, &format!("resource `{other}`")),
        }
        if resource.contains("dynamodb") && retried.is_empty() {
            self.wrong(place, "is not tried again");
        }
        for retry in state["Retry"].as_array().into_iter().flatten() {
            let growing = retry["BackoffRate"].as_f64().is_some_and(|rate| rate > 1.0);
            let bounded = retry["MaxAttempts"].as_u64().is_some_and(|most| most > 0);
            if !growing || !bounded || retry["IntervalSeconds"].as_u64().is_none() {
                self.wrong(place, "is tried again without growing pauses or an end");
            }
        }
        // Within a map a failure is the map's.
        if outermost && !errors(&state["Catch"]).contains("States.ALL") {
            self.wrong(place, "a failure is not caught");
        }
    }

    fn map(&mut self, place: &str, state: &Value, outermost: bool) {
        if outermost && !errors(&state["Catch"]).contains("States.ALL") {
            self.wrong(place, "a failure is not caught");
        }
        let processor = &state["ItemProcessor"];
        match processor["ProcessorConfig"]["Mode"].as_str() {
            Some("INLINE") => {
                if state["MaxConcurrency"]
                    .as_u64()
                    .is_none_or(|most| most > 40)
                {
                    self.wrong(place, "more at once than an inline map can");
                }
            }
            Some("DISTRIBUTED") => {
                let reader = &state["ItemReader"];
                // A child of type EXPRESS lives for five minutes.
                let right = processor["ProcessorConfig"]["ExecutionType"] == "STANDARD"
                    && reader["Resource"] == "arn:aws:states:::s3:getObject"
                    && reader["ReaderConfig"]["InputType"] == "JSONL"
                    && state["ToleratedFailurePercentage"] == 0
                    && state["ToleratedFailureCount"].is_null();
                if !right {
                    self.wrong(place, "is not the map over the work list");
                }
                let writer = &state["ResultWriter"];
                // Results of many children are more than a state may hold.
                if writer["Resource"] != "arn:aws:states:::s3:putObject"
                    || writer["Parameters"]["Bucket"] != "${WorkBucket}"
                    || !state["ResultPath"].is_null()
                    || !state.as_object().unwrap().contains_key("ResultPath")
                {
                    self.wrong(place, "results go into the state");
                }
            }
            other => self.wrong(place, &format!("mode {other:?}")),
        }
        self.machine(place, processor, false);
    }

    fn fail(&mut self, place: &str, state: &Value) {
        let said = |fixed: &str, path: &str| state[fixed].is_string() != state[path].is_string();
        if !said("Error", "ErrorPath") || !said("Cause", "CausePath") {
            self.wrong(place, "does not say why");
        }
    }
}

/// Names of errors in `Retry` or `Catch`.
fn errors(clauses: &Value) -> BTreeSet<String> {
    let clauses = clauses.as_array().into_iter().flatten();
    let names = clauses.flat_map(|clause| clause["ErrorEquals"].as_array().into_iter().flatten());
    names
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

#[test]
fn the_definition_is_sound() {
    assert_eq!(problems(&definition()), [""; 0]);
}

#[test]
fn every_mistake_is_noticed() {
    let mistakes: [(&str, Value); 23] = [
        ("/StartAt", json!("Begin")),
        ("/TimeoutSeconds", Value::Null),
        ("/States/Plan/Next", json!("Anything")),
        ("/States/Plan/Next", Value::Null),
        ("/States/Rolled/Default", Value::Null),
        ("/States/Audited/Choices/0/Next", json!("Audit")),
        ("/States/Commit/Parameters/Payload/step", json!("comit")),
        ("/States/Commit/Parameters/Payload/step", json!("publish")),
        ("/States/Commit/Parameters/FunctionName", json!("arn")),
        ("/States/Commit/Catch", json!([])),
        ("/States/Commit/Retry", json!([])),
        (
            "/States/Commit/Retry/1/ErrorEquals",
            json!(["dynalake.Store"]),
        ),
        (
            "/States/Commit/Retry/1/ErrorEquals/0",
            json!("dynalake.Refused"),
        ),
        ("/States/Commit/Retry/0/MaxAttempts", Value::Null),
        (
            "/States/Audit/Retry/0/ErrorEquals/0",
            json!("dynalake.Locked"),
        ),
        ("/States/Convert/Catch", Value::Null),
        (
            "/States/Convert/ItemReader/ReaderConfig/InputType",
            json!("JSON"),
        ),
        ("/States/Convert/ResultPath", json!("$.results")),
        ("/States/Convert/ToleratedFailurePercentage", json!(5)),
        (
            "/States/Convert/ItemProcessor/States/More parts/Default",
            json!("Done"),
        ),
        (
            "/States/Exports/ItemProcessor/States/Request full export/Parameters",
            json!({}),
        ),
        ("/States/Failed/CausePath", Value::Null),
        (
            "/States/Convert/ResultWriter/Parameters/Bucket",
            json!("${LakeBucket}"),
        ),
    ];
    for (place, mistake) in mistakes {
        let mut definition = definition();
        let at = definition.pointer_mut(place);
        *at.unwrap_or_else(|| panic!("nothing is at {place}")) = mistake;
        assert_ne!(problems(&definition), [""; 0], "{place}");
    }
}
