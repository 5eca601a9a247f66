//! The edge to Lambda: what is logged and answered for an invocation.
//!
//! A body that is not JSON never gets here: `lambda_runtime` refuses it under its own error type, and
//! the function lives on.

use aws_lambda_events::event::streams::DynamoDbEventResponse;
use lambda_runtime::Diagnostic;

use super::context::Context;
use super::error::StreamError;
use super::handler::handle;
use crate::lambda::{Invocation, Outcome};
use crate::record::Origin;

/// Runs one invocation. The answer names no failed records, since a record that cannot be read is in
/// quarantine; or says why the whole batch must come again.
pub async fn invoke(
    invocation: Invocation<'_>,
    context: &Context,
) -> Outcome<DynamoDbEventResponse> {
    let event = invocation.event.as_bytes();
    let summary = handle(event, invocation.now_ms, context, Origin::Stream).await;
    match summary {
        Ok(summary) => Outcome {
            log: vec![summary.metric_line(Some(invocation.request_id))],
            result: Ok(DynamoDbEventResponse::default()),
        },
        Err(error) => Outcome::failed(diagnostic(&error)),
    }
}

/// An error as Lambda reports it.
pub fn diagnostic(error: &StreamError) -> Diagnostic {
    Diagnostic {
        error_type: error.error_type().to_owned(),
        error_message: error.chain(),
    }
}
