//! What a failed export means, and what to do about it.

use serde::Deserialize;

use crate::cloud::{Call, Deployment, Execution, ExecutionState, remedy};
use crate::exit::Failure;

/// A cause as Step Functions gives it of a function that failed: the function's own error, as JSON.
#[derive(Debug, Deserialize)]
struct Cause {
    #[serde(rename = "errorMessage")]
    message: String,
}

/// The failure of an execution that is over and did not succeed. `step`: the last step that it entered.
pub(super) fn failure(
    deployment: &Deployment,
    execution: &Execution,
    step: Option<&str>,
) -> Failure {
    let stack = &deployment.name;
    let at = step.map(|step| format!(" in step `{step}`"));
    let failure = Failure::remote(format!(
        "{} {}{}{}",
        execution.name,
        execution.state.word(),
        at.unwrap_or_default(),
        because(execution)
    ));
    let table_arn = deployment.table_arn().unwrap_or_default();
    let call = Call {
        table_arn: &table_arn,
        bucket: deployment.output("WorkBucketName").unwrap_or("?"),
    };
    let failure = match advice(execution, call) {
        Some(advice) => failure.hint(advice),
        None => failure.hint(format!(
            "more is in the logs: `aws logs tail /dynalake/{stack}/export --since 1h` and \
             `aws logs tail /aws/vendedlogs/states/{stack}-export --since 1h`"
        )),
    };
    failure.hint(format!(
        "then go on with the same export: `dynalake backfill --stack {stack} --resume`"
    ))
}

/// Code and sentence of a failure, in parts of a sentence.
pub(super) fn because(execution: &Execution) -> String {
    let cause = execution.cause.as_deref().map(|cause| {
        serde_json::from_str::<Cause>(cause)
            .map_or_else(|_| cause.to_owned(), |cause| cause.message)
    });
    match (cause, &execution.error) {
        (Some(cause), Some(error)) => format!(": {cause} ({error})"),
        (Some(text), None) => format!(": {text}"),
        (None, Some(error)) => format!(": {error}"),
        (None, None) => String::new(),
    }
}

/// What to do about a code. Those of our function are sentences that say so themselves; those of
/// services come as `DynamoDb.PointInTimeRecoveryUnavailableException` (Step Functions developer guide,
/// "Handling errors").
fn advice(execution: &Execution, call: Call<'_>) -> Option<String> {
    let error = execution.error.as_deref().unwrap_or_default();
    let code = error.rsplit('.').next().unwrap_or_default();
    let roles = || {
        Some(
            "a role of the stack lacks a right, or a policy of a key or of the organization forbids \
             it: the sentence above says which; `infra/deploy.sh` mends the roles"
                .to_owned(),
        )
    };
    match error {
        _ if execution.state == ExecutionState::Aborted => Some("somebody stopped it".to_owned()),
        "dynalake.Store" | "dynalake.Read" | "dynalake.Catalog" => Some(
            "the lake, the export or the catalog could not be reached, even after several tries: \
             check the rights that the sentence above names"
                .to_owned(),
        ),
        "dynalake.Locked" => Some(
            "somebody else changes baselines: `dynalake baselines list` of the lake says who; \
             `dynalake baselines unlock` removes the lock of a dead process"
                .to_owned(),
        ),
        _ if error.starts_with("dynalake.") => Some("mend what the sentence above says".to_owned()),
        "States.Permissions" => roles(),
        _ if code.contains("AccessDenied") => roles(),
        "States.Timeout" | "Sandbox.Timedout" | "Lambda.Unknown" => Some(
            "a step took longer than it may, or ran out of memory: raise `WorkerMemoryMb` of the \
             stack"
                .to_owned(),
        ),
        _ => remedy(code, call),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(error: &str, cause: &str) -> Execution {
        Execution {
            arn: String::new(),
            name: "full-1".to_owned(),
            state: ExecutionState::Failed,
            started_ms: None,
            stopped_ms: None,
            error: Some(error.to_owned()),
            cause: Some(cause.to_owned()),
        }
    }

    #[test]
    fn a_function_speaks_for_itself_and_a_service_through_our_remedies() {
        let call = Call {
            table_arn: "arn:aws:dynamodb:eu-west-1:123456789012:table/shop",
            bucket: "work",
        };
        let own = execution(
            "dynalake.Manifest",
            r#"{"errorType":"dynalake.Manifest","errorMessage":"the export is not whole"}"#,
        );
        assert_eq!(
            because(&own),
            ": the export is not whole (dynalake.Manifest)"
        );
        assert!(advice(&own, call).unwrap().contains("sentence above"));
        let service = execution("DynamoDb.PointInTimeRecoveryUnavailableException", "off");
        assert!(
            advice(&service, call)
                .unwrap()
                .contains("turn point-in-time recovery on")
        );
        let denied = execution("DynamoDb.AccessDeniedException", "no");
        assert!(advice(&denied, call).unwrap().contains("infra/deploy.sh"));
        assert_eq!(advice(&execution("Odd", "odd"), call), None);
    }
}
