//! `dynalake backfill --stack NAME`: has the stack's workflow export the table.

use std::fmt::Write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::failed;
use super::follow::{Followed, follow};
use crate::World;
use crate::args::BackfillArgs;
use crate::cell;
use crate::cloud::{Deployment, Execution, ExecutionState, Workflow};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Printer;
use crate::waiting::Unfinished;

pub(in crate::commands) async fn run(
    args: &BackfillArgs,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let deployment = Deployment::find(&args.stack).await?;
    let workflow = deployment.workflow()?;
    let running = workflow.running().await;
    let running = running.map_err(|refused| refused.needing("states:ListExecutions"))?;
    let execution = match (running, args.follow) {
        (Some(running), true) => running.arn,
        (Some(running), false) => return Err(runs_already(&running, args)),
        (None, true) => return last(&deployment, &workflow, printer).await,
        (None, false) if args.resume => resume(&workflow, args, printer).await?,
        (None, false) => start(&workflow, args, printer).await?,
    };
    let again = follow_command(&args.stack);
    if args.no_wait {
        printer.note(format!("it goes on by itself; to follow it: `{again}`"));
        return Ok(Exit::Ok);
    }
    let unfinished = Unfinished::new("the export goes on in AWS. To follow it", &again);
    let followed = follow(&workflow, &execution, args, world, printer.is_watched()).await;
    unfinished.over();
    let Followed { execution, step } =
        followed.map_err(|failure| failure.hint(format!("to follow the export: `{again}`")))?;
    end(&deployment, &execution, step.as_deref(), printer)
}

/// Says how an execution that is over ended.
fn end(
    deployment: &Deployment,
    execution: &Execution,
    step: Option<&str>,
    printer: &mut Printer,
) -> Outcome {
    if execution.state != ExecutionState::Succeeded {
        return Err(failed::failure(deployment, execution, step));
    }
    printer.line(format!(
        "{} succeeded{}",
        execution.name,
        execution
            .stopped_ms
            .map(|at| format!(" at {}", cell::instant(at)))
            .unwrap_or_default()
    ))?;
    printer.note(format!(
        "what the lake stands on now: `dynalake status --stack {}`",
        deployment.name
    ));
    Ok(Exit::Ok)
}

async fn start(workflow: &Workflow, args: &BackfillArgs, printer: &mut Printer) -> Outcome<String> {
    let newest = newest(workflow).await?;
    let (kind, input) = if args.incremental {
        ("incremental", json!({"type": "INCREMENTAL"}))
    } else {
        ("full", json!({"type": "FULL"}))
    };
    begin(
        workflow,
        &name(kind, newest.as_ref()),
        &input,
        args,
        printer,
    )
    .await
}

/// Takes the exports of the last execution, which failed, to a new one: what it has done is found done.
async fn resume(
    workflow: &Workflow,
    args: &BackfillArgs,
    printer: &mut Printer,
) -> Outcome<String> {
    let again = || format!("a new export: `dynalake backfill --stack {}`", args.stack);
    let newest = newest(workflow).await?;
    let Some(newest) = newest.filter(|one| one.state != ExecutionState::Succeeded) else {
        return Err(Failure::usage(
            "the last export of this stack did not fail: nothing to go on with",
        )
        .hint(again()));
    };
    let exports = workflow.exports(&newest.arn).await;
    let exports = exports.map_err(|refused| refused.needing("states:GetExecutionHistory"))?;
    let Some(exports) = exports else {
        return Err(Failure::usage(format!(
            "{} ended before DynamoDB's export was whole: nothing to go on with",
            newest.name
        ))
        .hint(again()));
    };
    let input = json!({"exports": exports});
    begin(
        workflow,
        &name("resumed", Some(&newest)),
        &input,
        args,
        printer,
    )
    .await
}

async fn newest(workflow: &Workflow) -> Outcome<Option<Execution>> {
    let newest = workflow.newest().await;
    newest.map_err(|refused| refused.needing("states:ListExecutions"))
}

async fn begin(
    workflow: &Workflow,
    name: &str,
    input: &Value,
    args: &BackfillArgs,
    printer: &mut Printer,
) -> Outcome<String> {
    let arn = workflow.start(name, &input.to_string()).await;
    let arn = arn.map_err(|refused| {
        // The list of executions lags behind a little.
        if refused.code.as_deref() == Some("ExecutionAlreadyExists") {
            Failure::remote(format!(
                "an export of the name `{name}` has just ended, and AWS does not list it yet"
            ))
            .hint(format!(
                "how it ended: `dynalake status --stack {}`; for another one wait a minute and run the same command again",
                args.stack
            ))
        } else {
            refused.needing("states:StartExecution")
        }
    })?;
    printer.note(format!("started {name}: {arn}"));
    Ok(arn)
}

/// Names an execution after what is asked for and the one before it: whoever asks for the same at the
/// same time, or once more after a broken line, gets the same execution.
fn name(kind: &str, newest: Option<&Execution>) -> String {
    let before = newest.map_or("", |execution| execution.arn.as_str());
    let digest = Sha256::digest(before.as_bytes());
    let mut name = format!("{kind}-");
    for byte in digest.iter().take(8) {
        // Writing to a String cannot fail.
        write!(name, "{byte:02x}").unwrap_or_default();
    }
    name
}

fn runs_already(running: &Execution, args: &BackfillArgs) -> Failure {
    let since = running.started_ms.map(cell::instant);
    Failure::usage(format!(
        "an export of this stack runs already: {}, since {}",
        running.name,
        since.unwrap_or_default()
    ))
    .hint(format!(
        "follow it: `{}`; when it is done, run the same command again if another one is needed",
        follow_command(&args.stack)
    ))
}

/// Nothing runs that could be followed: says how the last export ended.
async fn last(deployment: &Deployment, workflow: &Workflow, printer: &mut Printer) -> Outcome {
    let Some(newest) = newest(workflow).await? else {
        return Err(
            Failure::usage("there was no export of this stack yet").hint(format!(
                "`dynalake backfill --stack {}` starts one",
                deployment.name
            )),
        );
    };
    let looked = workflow.look(&newest.arn).await;
    let looked = looked.map_err(|refused| refused.needing("states:DescribeExecution"))?;
    end(deployment, &looked, None, printer)
}

fn follow_command(stack: &str) -> String {
    format!("dynalake backfill --stack {stack} --follow")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_a_function_of_what_is_asked_for_and_of_what_was_before() {
        let execution = |arn: &str| Execution {
            arn: arn.to_owned(),
            name: String::new(),
            state: ExecutionState::Succeeded,
            started_ms: None,
            stopped_ms: None,
            error: None,
            cause: None,
        };
        let first = name("full", None);
        assert_eq!(first, name("full", None));
        assert_ne!(first, name("incremental", None));
        let second = name("full", Some(&execution("arn:1")));
        assert_ne!(first, second);
        assert_ne!(second, name("full", Some(&execution("arn:2"))));
    }
}
