//! What went wrong with an object: operation, address, cause, and whether to try again.

use std::error::Error;
use std::fmt;
use std::io;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::{RequestId, RequestIdExt};

/// What kind of failure it is, as far as a caller may branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The key has a form that no object may have; nothing was touched.
    BadKey,
    /// The object, folder or bucket is not there.
    NotFound,
    /// Permissions, credentials or signature.
    Denied,
    /// Throttled, timed out, connection lost, or the service failed: the same call may succeed later.
    Unavailable,
    /// The object is shorter than it should be, or changed while it was read.
    Changed,
    /// Anything else.
    Other,
}

/// A failed operation on one object (or prefix).
#[derive(Debug)]
pub struct StoreError(Box<Parts>);

#[derive(Debug)]
struct Parts {
    operation: &'static str,
    address: String,
    kind: StoreErrorKind,
    message: String,
    http_status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    extended_request_id: Option<String>,
    broken_body: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    fn new(
        operation: &'static str,
        address: String,
        kind: StoreErrorKind,
        message: String,
    ) -> Self {
        Self(Box::new(Parts {
            operation,
            address,
            kind,
            message,
            http_status: None,
            code: None,
            request_id: None,
            extended_request_id: None,
            broken_body: false,
            source: None,
        }))
    }

    pub(super) fn bad_key(operation: &'static str, address: String, problem: &str) -> Self {
        Self::new(
            operation,
            address,
            StoreErrorKind::BadKey,
            format!("the key {problem}"),
        )
    }

    pub(super) fn not_found(operation: &'static str, address: String) -> Self {
        Self::new(
            operation,
            address,
            StoreErrorKind::NotFound,
            "there is no such object".to_owned(),
        )
    }

    /// The test hook's failure.
    pub(super) fn stopped(operation: &'static str, address: String) -> Self {
        let message = "the store was stopped".to_owned();
        Self::new(operation, address, StoreErrorKind::Other, message)
    }

    pub(super) fn changed(operation: &'static str, address: String, message: String) -> Self {
        Self::new(operation, address, StoreErrorKind::Changed, message)
    }

    pub(super) fn io(operation: &'static str, address: String, error: io::Error) -> Self {
        let (kind, remedy) = match error.kind() {
            io::ErrorKind::NotFound => (StoreErrorKind::NotFound, ""),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => (
                StoreErrorKind::Denied,
                "; check who owns the folder and may write to it",
            ),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                (StoreErrorKind::Other, "; make room and run it again")
            }
            io::ErrorKind::Interrupted | io::ErrorKind::TimedOut => {
                (StoreErrorKind::Unavailable, "")
            }
            _ => (StoreErrorKind::Other, ""),
        };
        let mut this = Self::new(operation, address, kind, format!("{error}{remedy}"));
        this.0.source = Some(error.into());
        this
    }

    /// A body that broke off while it was read.
    pub(super) fn body(
        operation: &'static str,
        address: String,
        error: impl Error + Send + Sync + 'static,
    ) -> Self {
        let message = format!("the body broke off: {}", chain(&error));
        let mut this = Self::new(operation, address, StoreErrorKind::Unavailable, message);
        this.0.broken_body = true;
        this.0.source = Some(error.into());
        this
    }

    /// Whether the answer began well and its body broke off.
    pub(super) fn broken_body(&self) -> bool {
        self.0.broken_body
    }

    pub(super) fn sdk<E>(
        operation: &'static str,
        address: String,
        error: SdkError<E, HttpResponse>,
    ) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let status = error
            .raw_response()
            .map(|response| response.status().as_u16());
        let code = error.code().map(str::to_owned);
        let kind = kind_of(&error, status, code.as_deref());
        let what = match &error {
            SdkError::ServiceError(service) => service.err().message().map(str::to_owned),
            other => Some(chain(other)),
        };
        let status_text = status.map(|status| format!("HTTP {status}"));
        let reason: Vec<String> = [code.clone(), what].into_iter().flatten().collect();
        let message = match (status_text, reason.join(": ")) {
            (Some(status), reason) if reason.is_empty() => status,
            (Some(status), reason) => format!("{status} {reason}"),
            (None, reason) => reason,
        };
        let mut this = Self::new(operation, address, kind, message);
        this.0.http_status = status;
        this.0.code = code;
        this.0.request_id = error.request_id().map(str::to_owned);
        this.0.extended_request_id = error.extended_request_id().map(str::to_owned);
        this.0.source = Some(error.into());
        this
    }

    /// `put`, `get`, `head`, `list` or `delete`.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// Path or `s3://` address of the object.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Kind of failure.
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn retryable(&self) -> bool {
        self.0.kind == StoreErrorKind::Unavailable
    }

    /// The error of the file system or of the SDK.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// HTTP status of the service's answer.
    pub fn http_status(&self) -> Option<u16> {
        self.0.http_status
    }

    /// Error code of the service (`SlowDown`, `AccessDenied`, …).
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// `x-amz-request-id` of the answer: what AWS support asks for.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// `x-amz-id-2` of the answer.
    pub fn extended_request_id(&self) -> Option<&str> {
        self.0.extended_request_id.as_deref()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts {
            operation,
            address,
            message,
            ..
        } = &*self.0;
        write!(f, "cannot {operation} `{address}`: {message}")?;
        match (&self.0.request_id, &self.0.extended_request_id) {
            (Some(id), Some(extended)) => write!(f, " (request id {id}, extended {extended})"),
            (Some(id), None) | (None, Some(id)) => write!(f, " (request id {id})"),
            (None, None) => Ok(()),
        }?;
        if self.0.http_status.is_some() && self.0.kind == StoreErrorKind::Denied {
            f.write_str("; check the credentials, the bucket's policy and the key's policy")?;
        }
        Ok(())
    }
}

/// `source` is `None`: the message tells the causes already, and a printed chain would tell them twice.
impl Error for StoreError {}

fn kind_of<E>(
    error: &SdkError<E, HttpResponse>,
    status: Option<u16>,
    code: Option<&str>,
) -> StoreErrorKind {
    match error {
        SdkError::ConstructionFailure(_) => return StoreErrorKind::Other,
        SdkError::TimeoutError(_) | SdkError::ResponseError(_) => {
            return StoreErrorKind::Unavailable;
        }
        SdkError::DispatchFailure(failure) => {
            return if failure.is_user() {
                StoreErrorKind::Other
            } else {
                StoreErrorKind::Unavailable
            };
        }
        _ => {}
    }
    // Codes: "Error responses" in the S3 API reference. A conflict of conditional writes is to be
    // tried again; an upload that is gone is one whose completion was answered but not heard.
    match (status, code) {
        (
            _,
            Some(
                "SlowDown"
                | "RequestTimeout"
                | "InternalError"
                | "ServiceUnavailable"
                | "ConditionalRequestConflict"
                | "OperationAborted"
                | "NoSuchUpload"
                | "RequestTimeTooSkewed",
            ),
        )
        | (Some(408 | 429 | 500..), _) => StoreErrorKind::Unavailable,
        (Some(401 | 403), _) => StoreErrorKind::Denied,
        (Some(404), _) => StoreErrorKind::NotFound,
        (Some(412 | 416), _) => StoreErrorKind::Changed,
        _ => StoreErrorKind::Other,
    }
}

/// The messages of an error and its sources on one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let message = source.to_string();
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        next = source.source();
    }
    text
}
