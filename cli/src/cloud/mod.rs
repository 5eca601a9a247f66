//! AWS services other than S3: configuration, and what their refusals mean.

mod deployment;
mod exports;
mod functions;
mod metrics;
mod refused;
mod workflow;

pub(crate) use deployment::Deployment;
pub(crate) use exports::{Exports, Listed};
pub(crate) use functions::{Functions, Invoked};
pub(crate) use metrics::{Metrics, Query, Statistic};
pub(crate) use refused::{Call, Refused, export_failed, remedy};
pub(crate) use workflow::{Execution, ExecutionState, MapCounts, Workflow};

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use dynalake_pipeline::store::s3;

use crate::exit::{Failure, Outcome};

/// Attempts per call, the first included; throttled calls are made again by the SDK.
const MAX_ATTEMPTS: u32 = 5;
/// The first pause before another attempt is up to this long; it doubles with each one.
const INITIAL_BACKOFF: Duration = Duration::from_millis(200);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Region, credentials and endpoints from the usual AWS places, for this region where one is given.
/// TLS is that of our S3 clients. `AWS_ENDPOINT_URL` and `AWS_ENDPOINT_URL_<SERVICE>` name other
/// endpoints than AWS's.
async fn config(region: Option<&str>) -> Outcome<SdkConfig> {
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .build(),
        )
        .retry_config(
            RetryConfig::standard()
                .with_max_attempts(MAX_ATTEMPTS)
                .with_initial_backoff(INITIAL_BACKOFF),
        )
        .http_client(s3::http_client());
    if let Some(region) = region {
        loader = loader.region(Region::new(region.to_owned()));
    }
    let config = loader.load().await;
    if config.region().is_none() {
        return Err(Failure::usage("no AWS region is configured")
            .hint("set `AWS_REGION`, or a region in your AWS profile"));
    }
    if config.credentials_provider().is_none() {
        return Err(Failure::usage("no AWS credentials are configured")
            .hint("set `AWS_PROFILE`, or `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"));
    }
    Ok(config)
}

/// Milliseconds since 1970-01-01 UTC.
fn millis(time: Option<&aws_sdk_dynamodb::primitives::DateTime>) -> Option<i64> {
    time?.to_millis().ok()
}
