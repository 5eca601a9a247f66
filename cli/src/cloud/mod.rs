//! AWS services other than S3: configuration, and what their refusals mean.

mod exports;
mod refused;

pub(crate) use exports::{Exports, Listed};
pub(crate) use refused::{Call, Refused, export_failed};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use dynalake_pipeline::store::s3;

use crate::exit::{Failure, Outcome};

/// Region, credentials and endpoints from the usual AWS places, for this region. TLS is that of our
/// S3 clients.
async fn config(region: &str) -> Outcome<SdkConfig> {
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new(region.to_owned()))
        .http_client(s3::http_client())
        .load()
        .await;
    if config.credentials_provider().is_none() {
        return Err(Failure::usage("no AWS credentials are configured")
            .hint("set `AWS_PROFILE`, or `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"));
    }
    Ok(config)
}
