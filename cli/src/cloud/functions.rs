//! Lambda: invoking a function, looking at an event source mapping.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::timeout::TimeoutConfig;
use aws_sdk_lambda::primitives::Blob;
use serde::Deserialize;
use serde_json::Value;

use super::refused::{Refused, refused};

/// The longest that a function may run, and a little for the way.
const INVOCATION: Duration = Duration::from_secs(15 * 60 + 30);

/// Lambda in the stack's region.
#[derive(Debug)]
pub(crate) struct Functions {
    client: Client,
}

/// An event source mapping.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// `Enabled`, `Disabled`, `Creating`, …
    pub(crate) state: String,
    /// Why it is in this state.
    pub(crate) why: Option<String>,
    /// Result of the last invocation, such as `OK` or `PROBLEM: Function call failed`.
    pub(crate) last_result: Option<String>,
}

/// What an invoked function gave back.
#[derive(Debug)]
pub(crate) enum Invoked {
    /// Its answer.
    Answer(Value),
    /// Its error.
    Failed(FunctionError),
}

/// An error as a function reports it (Lambda developer guide, runtime API).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct FunctionError {
    /// A stable word, such as `dynalake.Store`.
    #[serde(rename = "errorType", default)]
    pub(crate) kind: String,
    /// A sentence.
    #[serde(rename = "errorMessage", default)]
    pub(crate) message: String,
}

impl Functions {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self {
            client: Client::new(config),
        }
    }

    /// Looks at a mapping.
    pub(crate) async fn mapping(&self, id: &str) -> Result<Mapping, Refused> {
        let call = self.client.get_event_source_mapping().uuid(id);
        let answer = Box::pin(call.send())
            .await
            .map_err(|error| refused("looking at the mapping", &error))?;
        let told = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(Mapping {
            state: answer.state.unwrap_or_else(|| "?".to_owned()),
            why: told(answer.state_transition_reason),
            last_result: told(answer.last_processing_result),
        })
    }

    /// Invokes a function once and waits for its answer.
    pub(crate) async fn invoke(&self, function: &str, event: &Value) -> Result<Invoked, Refused> {
        let doing = "invoking the function";
        // A second attempt would run beside the first.
        let patient = aws_sdk_lambda::config::Builder::new()
            .retry_config(RetryConfig::disabled())
            .timeout_config(
                TimeoutConfig::builder()
                    .operation_attempt_timeout(INVOCATION)
                    .read_timeout(INVOCATION)
                    .build(),
            );
        let call = self.client.invoke().function_name(function);
        let call = call.payload(Blob::new(event.to_string())).customize();
        let answer = Box::pin(call.config_override(patient).send())
            .await
            .map_err(|error| refused(doing, &error))?;
        let payload = answer.payload.map(Blob::into_inner).unwrap_or_default();
        if answer.function_error.is_some() {
            let error = serde_json::from_slice(&payload).unwrap_or_else(|_| FunctionError {
                kind: String::new(),
                message: String::from_utf8_lossy(&payload).into_owned(),
            });
            return Ok(Invoked::Failed(error));
        }
        let answer = serde_json::from_slice(&payload).map_err(|error| Refused {
            doing,
            code: None,
            message: format!("its answer is not JSON: {error}"),
            transient: false,
        })?;
        Ok(Invoked::Answer(answer))
    }
}
