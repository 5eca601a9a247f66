//! What the function is called with.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::StepError;
use crate::steps::WorkItem;

/// What an invocation is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Requests,
    Plan,
    Convert,
    Roll,
    Commit,
    Audit,
    Publish,
    Compact,
}

/// Names of all steps.
pub const STEPS: [&str; 8] = [
    "requests", "plan", "convert", "roll", "commit", "audit", "publish", "compact",
];

impl Step {
    fn parse(name: &str) -> Option<Self> {
        serde_json::from_value(Value::from(name)).ok()
    }
}

/// An export: the address of its folder or summary, or what `DescribeExport` tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum ExportRef {
    Address(String),
    Described { bucket: String, manifest: String },
}

impl ExportRef {
    /// `s3://bucket/key`, or a path.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Address(address) => address.clone(),
            Self::Described { bucket, manifest } => format!("s3://{bucket}/{manifest}"),
        }
    }
}

/// A line of the work list, or several as a batcher or an earlier call hands them over.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    Batch {
        #[serde(rename = "Items")]
        items: Vec<WorkItem>,
    },
    One(WorkItem),
}

/// The lines that are left to do.
#[derive(Debug, Serialize)]
pub(super) struct Rest<'a> {
    #[serde(rename = "Items")]
    pub(super) items: &'a [WorkItem],
}

/// Full or incremental.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum RequestType {
    Full,
    Incremental,
}

/// An event. Members that a step does not know are ignored: events of schedules have their own.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) step: Step,
    pub(super) exports: Vec<ExportRef>,
    pub(super) lines: Vec<WorkItem>,
    /// Name of the workflow's execution.
    pub(super) run: Option<String>,
    pub(super) replace: bool,
    pub(super) remove: bool,
    pub(super) label: Option<String>,
    pub(super) request_type: Option<RequestType>,
    /// Answer of `DescribeContinuousBackups`.
    pub(super) backups: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Raw {
    step: Option<String>,
    #[serde(default)]
    exports: Vec<ExportRef>,
    line: Option<Line>,
    #[serde(default, rename = "Items")]
    items: Vec<WorkItem>,
    run: Option<String>,
    #[serde(default)]
    replace: bool,
    #[serde(default)]
    remove: bool,
    label: Option<String>,
    #[serde(rename = "type")]
    request_type: Option<RequestType>,
    backups: Option<Value>,
}

impl Event {
    /// Reads an event; `handler` is the step of one that names none.
    pub(super) fn parse(text: &str, handler: Option<&str>) -> Result<Self, StepError> {
        let problem = |problem: String| StepError::Event(problem);
        // A schedule or a person may send no object at all.
        let raw: Raw = match text.trim() {
            "null" | "\"\"" => serde_json::from_str("{}"),
            text => serde_json::from_str(text),
        }
        .map_err(|error| problem(format!("the event is not one of a step: {error}")))?;
        let name = raw.step.as_deref().or(handler).unwrap_or_default();
        let step = Step::parse(name).ok_or_else(|| {
            problem(format!(
                "no step is called `{name}`; give `step` in the event, or the function a handler, of \
                 {}",
                STEPS.join(", ")
            ))
        })?;
        let mut lines = raw.items;
        match raw.line {
            Some(Line::One(item)) => lines.push(item),
            Some(Line::Batch { items }) => lines.extend(items),
            None => {}
        }
        Ok(Self {
            step,
            exports: raw.exports,
            lines,
            run: raw.run.filter(|run| !run.is_empty()),
            replace: raw.replace,
            remove: raw.remove,
            label: raw.label,
            request_type: raw.request_type,
            backups: raw.backups,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Event {
        Event::parse(text, None).unwrap()
    }

    #[test]
    fn the_event_names_the_step_else_the_handler_does() {
        assert_eq!(parse(r#"{"step":"plan"}"#).step, Step::Plan);
        let by_handler = Event::parse(r#"{"time":"2026-05-01T00:00:00Z"}"#, Some("compact"));
        assert_eq!(by_handler.unwrap().step, Step::Compact);
        let both = Event::parse(r#"{"step":"audit"}"#, Some("compact"));
        assert_eq!(both.unwrap().step, Step::Audit);
        for empty in ["null", "\"\"", " {} "] {
            let event = Event::parse(empty, Some("publish")).unwrap();
            assert_eq!(event.step, Step::Publish);
        }
        for (text, handler) in [
            (r#"{"step":"plans"}"#, None),
            ("{}", Some("export")),
            ("{}", None),
            ("[]", Some("plan")),
            ("{\"exports\":5}", Some("plan")),
        ] {
            let error = Event::parse(text, handler).unwrap_err();
            assert_eq!(error.diagnostic().error_type, "dynalake.Event", "{text}");
        }
    }

    #[test]
    fn all_steps_are_listed() {
        for name in STEPS {
            assert!(Step::parse(name).is_some(), "{name}");
        }
    }

    #[test]
    fn exports_and_lines_come_in_two_forms_each() {
        let event = parse(
            r#"{"step":"plan","exports":["s3://b/AWSDynamoDB/1",{"bucket":"b","manifest":"AWSDynamoDB/1/manifest-summary.json"}]}"#,
        );
        let addresses: Vec<String> = event.exports.iter().map(ExportRef::address).collect();
        assert_eq!(
            addresses,
            [
                "s3://b/AWSDynamoDB/1",
                "s3://b/AWSDynamoDB/1/manifest-summary.json"
            ]
        );
        let item = r#"{"export":"e","file":"f.json.gz","key":"k","bytes":1,"items":2,"md5":"m"}"#;
        let one = parse(&format!(r#"{{"step":"convert","line":{item}}}"#));
        let batch = parse(&format!(
            r#"{{"step":"convert","line":{{"Items":[{item}]}}}}"#
        ));
        let batcher = parse(&format!(
            r#"{{"step":"convert","BatchInput":{{}},"Items":[{item}]}}"#
        ));
        assert_eq!(one.lines.len(), 1);
        assert_eq!((&one.lines, &one.lines), (&batch.lines, &batcher.lines));
        let rest = serde_json::to_string(&Rest { items: &one.lines }).unwrap();
        let again = parse(&format!(r#"{{"step":"convert","line":{rest}}}"#));
        assert_eq!(again.lines, one.lines);
    }
}
