//! What refusals of AWS's services mean, and what to do about them.
//!
//! Codes of exports: API reference of `ExportTableToPointInTime`, `DescribeExport` and
//! `DescribeContinuousBackups`; failures of exports carry those of S3 and KMS.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::exit::Failure;

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Refused {
    /// What was to be done: "asking for the export".
    pub(crate) doing: &'static str,
    /// The service's code; none when there was no answer.
    pub(crate) code: Option<String>,
    /// The service's sentence, or what went wrong on the way.
    pub(crate) message: String,
    /// Another attempt may succeed without anybody doing anything.
    pub(crate) transient: bool,
}

/// What a call is about, for the sentences.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The table's ARN.
    pub(crate) table_arn: &'a str,
    /// Bucket of the export.
    pub(crate) bucket: &'a str,
}

impl Refused {
    /// Whether the service has said no, so that the call has done nothing.
    pub(crate) fn is_definite(&self) -> bool {
        self.code.is_some() && !self.transient
    }

    /// What was to be done, and why it was not.
    pub(crate) fn sentence(&self) -> String {
        match &self.code {
            Some(code) => format!("{} failed: {} ({code})", self.doing, self.message),
            None => format!("{} failed: {}", self.doing, self.message),
        }
    }

    /// The failure of a call about exports, for the operator.
    pub(crate) fn failure(&self, call: Call<'_>) -> Failure {
        self.with_remedy(|code| remedy(code, call))
    }

    /// The failure of a call that needs this right, for the operator.
    pub(crate) fn needing(&self, right: &str) -> Failure {
        self.with_remedy(|code| {
            if is_denied(code) {
                Some(format!("these credentials need `{right}`"))
            } else {
                credentials_remedy(code)
            }
        })
    }

    /// Why something is not known, in a few words: the missing right where that is the reason.
    pub(crate) fn reason(&self, right: &str) -> String {
        match self.code.as_deref() {
            Some(code) if is_denied(code) => format!("no right `{right}`"),
            _ => self.sentence(),
        }
    }

    fn with_remedy(&self, remedy: impl Fn(&str) -> Option<String>) -> Failure {
        let failure = Failure::remote(self.sentence());
        match self.code.as_deref().and_then(remedy) {
            Some(remedy) => failure.hint(remedy),
            None if self.transient => failure.hint("run the same command again"),
            None => failure,
        }
    }
}

/// What went wrong with a call.
pub(super) fn refused<E>(doing: &'static str, error: &SdkError<E>) -> Refused
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let status = error
        .raw_response()
        .map(|response| response.status().as_u16());
    let code = error.code().map(str::to_owned);
    // Answers without a code come from something between us and the service.
    let throttled = code.as_deref().is_some_and(|code| {
        code.contains("Throttling") || code == "RequestLimitExceeded" || code == "SlowDown"
    });
    let no_answer = matches!(
        error,
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_)
    );
    let message = match error.message() {
        Some(message) => message.to_owned(),
        None => chain(error),
    };
    Refused {
        doing,
        transient: no_answer || throttled || status.is_some_and(|status| status >= 500),
        code,
        message,
    }
}

/// An error and its causes, each once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// The failure that an export ended with.
pub(crate) fn export_failed(code: &str, message: &str, call: Call<'_>) -> Failure {
    let failure = Failure::remote(format!("DynamoDB could not export: {message} ({code})"));
    match remedy(code, call) {
        Some(remedy) => failure.hint(remedy),
        None => failure,
    }
}

fn is_denied(code: &str) -> bool {
    code.contains("AccessDenied") || code.contains("NotAuthorized")
}

/// Credentials that are over or not known.
fn credentials_remedy(code: &str) -> Option<String> {
    let is = |part: &str| code.contains(part);
    (is("ExpiredToken")
        || is("UnrecognizedClient")
        || is("InvalidSignature")
        || is("InvalidClientTokenId"))
    .then(|| {
        "sign in again, or check `AWS_PROFILE` and the keys in use; then run the same command again"
            .to_owned()
    })
}

/// What to do about a refused or failed export, by its code.
pub(crate) fn remedy(code: &str, call: Call<'_>) -> Option<String> {
    let Call { table_arn, bucket } = call;
    let has = |part: &str| code.contains(part);
    Some(if has("NoSuchBucket") {
        format!("make the bucket `{bucket}`, or give another by `--bucket`")
    } else if has("KMS") || has("Kms") {
        "the key must be in the bucket's region, enabled, and allow these credentials \
         `kms:GenerateDataKey` and `kms:Decrypt`"
            .to_owned()
    } else if code.starts_with("S3") {
        format!(
            "these credentials, and the policy of the bucket `{bucket}`, must allow `s3:PutObject`, \
             `s3:PutObjectAcl` and `s3:AbortMultipartUpload`; for a bucket of another account give \
             `--bucket-owner`"
        )
    } else if is_denied(code) {
        format!(
            "these credentials need `dynamodb:DescribeContinuousBackups`, \
             `dynamodb:ExportTableToPointInTime` and `dynamodb:ListExports` on {table_arn}, \
             `dynamodb:DescribeExport` on {table_arn}/export/*, and to write to the bucket \
             `{bucket}`: `s3:PutObject`, `s3:PutObjectAcl`, `s3:AbortMultipartUpload`"
        )
    } else if let Some(remedy) = credentials_remedy(code) {
        remedy
    } else {
        match code {
            "PointInTimeRecoveryUnavailableException" => format!(
                "turn point-in-time recovery on for {table_arn} and wait some five minutes"
            ),
            "InvalidExportTimeException" => {
                "point-in-time recovery does not reach to that time: run the command again, which \
                 looks at its range anew"
                    .to_owned()
            }
            "ExportConflictException" => {
                "the same request is being made somewhere else with other parameters, or another \
                 export of this table is being set up: wait a minute and run the same command again"
                    .to_owned()
            }
            "LimitExceededException" => {
                "too many exports run at once in this account (300, or 100 TB): wait until some of \
                 them are done, `dynalake export list` shows them"
                    .to_owned()
            }
            "TableNotFoundException" | "ResourceNotFoundException" => format!(
                "check the ARN, its region and account, and the credentials in use: {table_arn}"
            ),
            "ExportNotFoundException" => {
                "DynamoDB remembers exports for 90 days; `dynalake export convert` takes one by its \
                 place in the bucket"
                    .to_owned()
            }
            _ => return None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call<'_> = Call {
        table_arn: "arn:aws:dynamodb:eu-west-1:123456789012:table/shop",
        bucket: "exports",
    };

    #[test]
    fn every_known_refusal_says_what_to_do() {
        for (code, says) in [
            ("AccessDeniedException", "dynamodb:ExportTableToPointInTime"),
            ("ExportConflictException", "wait a minute"),
            ("InvalidExportTimeException", "looks at its range anew"),
            (
                "PointInTimeRecoveryUnavailableException",
                "turn point-in-time recovery on",
            ),
            ("LimitExceededException", "wait until some of them are done"),
            ("TableNotFoundException", "check the ARN"),
            ("S3NoSuchBucket", "make the bucket `exports`"),
            ("S3AccessDenied", "`s3:PutObject`"),
            ("KMSAccessDenied", "kms:GenerateDataKey"),
            ("ExpiredTokenException", "sign in again"),
        ] {
            let refused = Refused {
                doing: "asking for the export",
                code: Some(code.to_owned()),
                message: "words".to_owned(),
                transient: false,
            };
            let failure = refused.failure(CALL);
            assert!(failure.message.contains(&format!("words ({code})")));
            assert!(
                failure.hints[0].contains(says),
                "{code}: {:?}",
                failure.hints
            );
            let failed = export_failed(code, "words", CALL);
            assert_eq!(failed.hints, failure.hints);
        }
        assert!(export_failed("Odd", "words", CALL).hints.is_empty());
    }

    #[test]
    fn what_may_pass_by_itself_is_to_be_tried_again() {
        let refused = Refused {
            doing: "asking for the export",
            code: None,
            message: "no answer".to_owned(),
            transient: true,
        };
        assert!(!refused.is_definite());
        assert!(refused.failure(CALL).hints[0].contains("again"));
    }
}
