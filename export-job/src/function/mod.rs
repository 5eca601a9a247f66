//! The worker function: the steps of an export's way into the lake, each an invocation.
//!
//! ```text
//! requests ─► (the workflow asks DynamoDB, waits) ─► plan ─► convert … ─► roll … ─► commit ─► audit …
//! publish: the views alone        compact: the small objects of closed days
//! ```
//! The event's member `step` says which; without it the name of the handler that the function is
//! deployed with. Steps share nothing but the lake and the work place: all may be repeated, in another
//! process or at the same time, and give the same.

mod audit;
mod commit;
mod config;
mod context;
mod convert;
mod deadline;
mod error;
mod event;
mod plan;
mod requests;
mod roll;
mod spool;

use dynalake_pipeline::compact;
use dynalake_pipeline::lambda::{Invocation, Outcome};
use serde_json::{Value, json};

pub use config::{OBJECT_MB, PART_MB, PARTS_PER_CALL, VARIABLES, WORK};
pub use context::Context;
pub use error::{LOCKED, PASSING, StepError};
pub use event::STEPS;

use crate::glue;
use deadline::Deadline;
use event::{Event, Step};

/// Lines for the log that a step adds to its answer.
type Log = Vec<String>;

/// Runs one invocation.
pub async fn invoke(invocation: Invocation<'_>, context: &Context) -> Outcome<Value> {
    let mut log = Log::new();
    // Boxed, as each step is: their state is large, and most of it never lives.
    let result = Box::pin(step(&invocation, context, &mut log)).await;
    Outcome {
        log,
        result: result.map_err(|error| error.diagnostic()),
    }
}

async fn step(
    invocation: &Invocation<'_>,
    context: &Context,
    log: &mut Log,
) -> Result<Value, StepError> {
    let event = Event::parse(invocation.event, context.handler.as_deref())?;
    let deadline = Deadline::new(context.clock, invocation.now_ms, invocation.deadline_ms);
    let call = Call {
        context,
        event: &event,
        deadline,
        now_ms: invocation.now_ms,
        request_id: invocation.request_id,
    };
    context.spool.clear()?;
    match event.step {
        Step::Requests => Box::pin(requests::requests(&call)).await,
        Step::Plan => Box::pin(plan::plan(&call)).await,
        Step::Convert => Box::pin(convert::convert(&call, log)).await,
        Step::Roll => Box::pin(roll::roll_step(&call)).await,
        Step::Commit => Box::pin(commit::commit(&call, log)).await,
        Step::Audit => Box::pin(audit::audit_step(&call, log)).await,
        Step::Publish => Box::pin(publish(&call)).await,
        Step::Compact => Box::pin(compact_step(&call, invocation.event, log)).await,
    }
}

/// An invocation under way.
struct Call<'a> {
    context: &'a Context,
    event: &'a Event,
    deadline: Deadline,
    now_ms: i64,
    request_id: &'a str,
}

impl Call<'_> {
    /// Who works, for the lock of the lake's state: the same in all steps and retries of one workflow.
    fn holder(&self) -> String {
        format!("export workflow {}", self.run())
    }

    fn run(&self) -> &str {
        self.event.run.as_deref().unwrap_or(self.request_id)
    }
}

async fn publish(call: &Call<'_>) -> Result<Value, StepError> {
    let (context, glue) = (call.context, call.context.glue()?);
    let published = if call.event.remove {
        glue::remove(&glue, &context.catalog.database).await?
    } else {
        glue::publish(&glue, &context.store, &context.catalog).await?
    };
    Ok(json!(published))
}

async fn compact_step(call: &Call<'_>, event: &str, log: &mut Log) -> Result<Value, StepError> {
    let context = compact::lambda::Context {
        store: &call.context.store,
        catalog: &call.context.catalog,
        spool: call.context.spool.folder().to_owned(),
        memory_bytes: call.context.memory_mb << 20,
    };
    let outcome =
        compact::lambda::lambda(event.as_bytes(), call.now_ms, &context, &call.deadline).await?;
    log.push(outcome.log_line);
    Ok(json!(outcome.report))
}
