//! Step Functions: the workflow of exports.

use aws_config::SdkConfig;
use aws_sdk_sfn::Client;
use aws_sdk_sfn::types::{ExecutionStatus, HistoryEventType};
use serde::Serialize;
use serde_json::Value;

use super::millis;
use super::refused::{Refused, refused};

/// A state machine.
#[derive(Debug)]
pub(crate) struct Workflow {
    client: Client,
    arn: String,
}

/// How far an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutionState {
    /// It runs.
    Running,
    /// It did its work.
    Succeeded,
    /// It failed.
    Failed,
    /// It took too long.
    TimedOut,
    /// Somebody stopped it.
    Aborted,
}

/// An execution.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Execution {
    /// ARN.
    pub(crate) arn: String,
    /// Name.
    pub(crate) name: String,
    /// How far it is.
    pub(crate) state: ExecutionState,
    /// Milliseconds since 1970-01-01 UTC.
    pub(crate) started_ms: Option<i64>,
    /// Milliseconds since 1970-01-01 UTC.
    pub(crate) stopped_ms: Option<i64>,
    /// Code of the failure.
    pub(crate) error: Option<String>,
    /// Its sentence, or JSON with one.
    pub(crate) cause: Option<String>,
}

/// How far a map is: data files of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapCounts {
    /// Done.
    pub(crate) succeeded: i64,
    /// Failed, timed out or stopped.
    pub(crate) failed: i64,
    /// All.
    pub(crate) total: i64,
}

impl Workflow {
    pub(super) fn new(config: &SdkConfig, arn: &str) -> Self {
        Self {
            client: Client::new(config),
            arn: arn.to_owned(),
        }
    }

    /// The newest execution; those that ended more than 90 days ago are forgotten by AWS.
    pub(crate) async fn newest(&self) -> Result<Option<Execution>, Refused> {
        Ok(self.list(None).await?.into_iter().next())
    }

    /// An execution that runs.
    pub(crate) async fn running(&self) -> Result<Option<Execution>, Refused> {
        let running = self.list(Some(ExecutionStatus::Running)).await?;
        Ok(running.into_iter().next())
    }

    /// The newest executions, newest first.
    async fn list(&self, status: Option<ExecutionStatus>) -> Result<Vec<Execution>, Refused> {
        let call = self.client.list_executions().state_machine_arn(&self.arn);
        let call = call.set_status_filter(status).max_results(20);
        let answer = Box::pin(call.send())
            .await
            .map_err(|error| refused("listing the executions of the export workflow", &error))?;
        let mut executions: Vec<Execution> = answer
            .executions
            .into_iter()
            .map(|one| Execution {
                state: state(&one.status),
                arn: one.execution_arn,
                name: one.name,
                started_ms: millis(Some(&one.start_date)),
                stopped_ms: millis(one.stop_date.as_ref()),
                error: None,
                cause: None,
            })
            .collect();
        executions.sort_by_key(|one| std::cmp::Reverse(one.started_ms));
        Ok(executions)
    }

    /// Starts an execution and gives its ARN. While one of this name and input runs, it is that one.
    pub(crate) async fn start(&self, name: &str, input: &str) -> Result<String, Refused> {
        let call = self.client.start_execution().state_machine_arn(&self.arn);
        let answer = Box::pin(call.name(name).input(input).send())
            .await
            .map_err(|error| refused("starting the export workflow", &error))?;
        Ok(answer.execution_arn)
    }

    /// The exports that an execution had when it ended, as its input takes them; none where it ended
    /// before they were whole.
    pub(crate) async fn exports(&self, execution: &str) -> Result<Option<Value>, Refused> {
        let mut next = None;
        loop {
            let call = self
                .client
                .get_execution_history()
                .execution_arn(execution)
                .include_execution_data(true)
                .reverse_order(true)
                .max_results(100);
            let page = Box::pin(call.set_next_token(next).send())
                .await
                .map_err(|error| refused("reading the history of the execution", &error))?;
            let entered = page.events.into_iter();
            let inputs = entered.filter_map(|event| event.state_entered_event_details?.input);
            for input in inputs {
                let Ok(Value::Object(mut input)) = serde_json::from_str(&input) else {
                    continue;
                };
                if let Some(Value::Array(exports)) = input.remove("exports")
                    && !exports.is_empty()
                {
                    return Ok(Some(Value::Array(exports)));
                }
            }
            next = page.next_token.filter(|token| !token.is_empty());
            if next.is_none() {
                return Ok(None);
            }
        }
    }

    /// Looks at an execution.
    pub(crate) async fn look(&self, execution: &str) -> Result<Execution, Refused> {
        let call = self.client.describe_execution().execution_arn(execution);
        let answer = Box::pin(call.send())
            .await
            .map_err(|error| refused("looking at the execution", &error))?;
        Ok(Execution {
            state: state(&answer.status),
            name: answer.name.unwrap_or_default(),
            arn: answer.execution_arn,
            started_ms: millis(Some(&answer.start_date)),
            stopped_ms: millis(answer.stop_date.as_ref()),
            error: answer.error,
            cause: answer.cause,
        })
    }

    /// Names of the steps that an execution has entered since an event, oldest first, and the number of
    /// its newest event.
    pub(crate) async fn steps(
        &self,
        execution: &str,
        since: i64,
    ) -> Result<(Vec<String>, i64), Refused> {
        let (mut steps, mut newest, mut next) = (Vec::new(), since, None);
        loop {
            let call = self
                .client
                .get_execution_history()
                .execution_arn(execution)
                .include_execution_data(false)
                .reverse_order(true)
                .max_results(100);
            let page = Box::pin(call.set_next_token(next).send())
                .await
                .map_err(|error| refused("reading the history of the execution", &error))?;
            let mut over = false;
            for event in page.events {
                if event.id <= since {
                    over = true;
                    break;
                }
                newest = newest.max(event.id);
                // A step that only says that it failed is not where it failed.
                if event.r#type != HistoryEventType::FailStateEntered
                    && let Some(entered) = event.state_entered_event_details
                {
                    steps.push(entered.name);
                }
            }
            next = page.next_token.filter(|token| !token.is_empty());
            if over || next.is_none() {
                steps.reverse();
                return Ok((steps, newest));
            }
        }
    }

    /// How far the newest map of an execution is.
    pub(crate) async fn map(&self, execution: &str) -> Result<Option<MapCounts>, Refused> {
        let doing = "looking at the map of the execution";
        let call = self.client.list_map_runs().execution_arn(execution);
        let listed = Box::pin(call.send())
            .await
            .map_err(|error| refused(doing, &error))?;
        let newest = listed.map_runs.into_iter().max_by_key(|map| map.start_date);
        let Some(newest) = newest else {
            return Ok(None);
        };
        let call = self.client.describe_map_run();
        let answer = Box::pin(call.map_run_arn(newest.map_run_arn).send())
            .await
            .map_err(|error| refused(doing, &error))?;
        Ok(answer.item_counts.map(|counts| MapCounts {
            succeeded: counts.succeeded,
            failed: counts.failed + counts.timed_out + counts.aborted,
            total: counts.total,
        }))
    }
}

fn state(status: &ExecutionStatus) -> ExecutionState {
    match status {
        ExecutionStatus::Succeeded => ExecutionState::Succeeded,
        ExecutionStatus::Failed => ExecutionState::Failed,
        ExecutionStatus::TimedOut => ExecutionState::TimedOut,
        ExecutionStatus::Aborted => ExecutionState::Aborted,
        // And whatever may come: it is not over.
        _ => ExecutionState::Running,
    }
}

impl ExecutionState {
    /// For people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Aborted => "stopped",
        }
    }
}
