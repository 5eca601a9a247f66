//! The SDK client, built from given settings alone: no environment, no files, no metadata service.

use std::time::Duration;

use aws_sdk_glue::Client;
use aws_sdk_glue::config::retry::RetryConfig;
use aws_sdk_glue::config::timeout::TimeoutConfig;
use aws_sdk_glue::config::{BehaviorVersion, Region};
use dynalake_pipeline::store::{S3Settings, s3};

/// Glue asks its clients to retry throttled calls, which the SDK's standard mode does.
const MAX_ATTEMPTS: u32 = 6;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// A client with region and credentials of the lake's store.
pub fn client(settings: &S3Settings, endpoint: Option<&str>) -> Client {
    let mut config = aws_sdk_glue::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(settings.region.clone()))
        .credentials_provider(settings.credentials.clone())
        .http_client(s3::http_client_to(endpoint))
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .build(),
        )
        .retry_config(RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS));
    if let Some(endpoint) = endpoint {
        config = config.endpoint_url(endpoint);
    }
    Client::from_conf(config.build())
}
