//! The SDK client, built from given settings alone: no environment, no files, no metadata service.

use std::time::Duration;

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Region, SharedHttpClient};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

/// Attempts per call, the first included. S3 asks its clients to retry 503 `SlowDown` with growing
/// pauses, which the SDK's standard mode does.
pub const MAX_ATTEMPTS: u32 = 4;

/// Time to connect, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one attempt: one part of 8 MiB, or 16 MiB at most, at 0.5 MiB/s.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(32);
/// Time for a call with all its attempts and pauses.
const OPERATION_TIMEOUT: Duration = Duration::from_mins(2);
/// The first pause before another attempt is up to this long; it doubles with each one.
const INITIAL_BACKOFF: Duration = Duration::from_millis(200);
/// The longest pause between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Static configuration of an S3 client.
#[derive(Debug, Clone)]
pub struct S3Settings {
    /// Region of the bucket, such as `ap-northeast-1`.
    pub region: String,
    /// Another endpoint than AWS's, such as `http://127.0.0.1:8333`.
    pub endpoint: Option<String>,
    /// Bucket in the path instead of the host name; most other servers want it.
    pub path_style: bool,
    /// Where credentials come from; `aws_credential_types::Credentials` is itself a provider.
    pub credentials: SharedCredentialsProvider,
}

/// A client with our time limits, retries and TLS.
pub fn client(settings: &S3Settings) -> Client {
    let mut config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(settings.region.clone()))
        .credentials_provider(settings.credentials.clone())
        .force_path_style(settings.path_style)
        .http_client(http_client_to(settings.endpoint.as_deref()))
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .operation_timeout(OPERATION_TIMEOUT)
                .build(),
        )
        .retry_config(
            RetryConfig::standard()
                .with_max_attempts(MAX_ATTEMPTS)
                .with_initial_backoff(INITIAL_BACKOFF)
                .with_max_backoff(MAX_BACKOFF),
        );
    if let Some(endpoint) = &settings.endpoint {
        config = config.endpoint_url(endpoint);
    }
    Client::from_conf(config.build())
}

/// The HTTP client for an endpoint; `None`: AWS's own.
pub fn http_client_to(endpoint: Option<&str>) -> SharedHttpClient {
    if endpoint.is_some_and(|url| url.starts_with("http://")) {
        // Without TLS there is no need to read the system's certificates.
        Builder::new().build_http()
    } else {
        http_client()
    }
}

/// The HTTP client of all our SDK clients: TLS by rustls with ring, the system's certificates.
pub fn http_client() -> SharedHttpClient {
    Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https()
}
