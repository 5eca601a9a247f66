//! The client token, by which DynamoDB knows a request again.

use sha2::{Digest, Sha256};

use super::{Target, Wanted};
use crate::format::DataFormat;
use crate::manifest::hex;

/// The client token of a request: a function of what is asked for, so that a request that is sent
/// again, by whoever, is the same one. At most 64 characters.
///
/// `attempt` tells a request from an earlier one for the same that failed: within 8 hours the same
/// token would give the failed export (API reference, `ClientToken`).
pub fn client_token(target: &Target, wanted: &Wanted, attempt: u32) -> String {
    let Target {
        table_arn,
        bucket,
        prefix,
        bucket_owner,
        kms_key,
        format,
    } = target;
    let format = match format {
        DataFormat::Json => "json",
        DataFormat::Ion => "ion",
    };
    let wanted = match wanted {
        Wanted::Full { at_ms } => format!("full/{at_ms}"),
        Wanted::Incremental { window, view } => {
            format!(
                "incremental/{}/{}/{}",
                window.from_ms,
                window.to_ms,
                view.as_str()
            )
        }
    };
    let optional = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [
        table_arn.clone(),
        bucket.clone(),
        optional(prefix),
        optional(bucket_owner),
        optional(kms_key),
        format.to_owned(),
        wanted,
        attempt.to_string(),
    ] {
        hash.update(part);
        // None of the parts may hold it.
        hash.update([0]);
    }
    let digest = hex(&hash.finalize());
    format!("dynalake-{}", digest.get(..40).unwrap_or(&digest))
}
