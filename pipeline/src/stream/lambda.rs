//! The edge to Lambda: what is logged and answered for an invocation, and the report of a start that
//! failed. Printing and the process itself belong to the binary.
//!
//! A body that is not JSON never gets here: `lambda_runtime` refuses it under its own error type, and
//! the function lives on.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use aws_lambda_events::event::streams::DynamoDbEventResponse;
use futures::FutureExt;
use lambda_runtime::Diagnostic;
use serde_json::json;

use super::context::Context;
use super::error::StreamError;
use super::handler::handle;
use crate::record::Origin;

/// Time for the report of a failed start, each way.
const INIT_ERROR_TIMEOUT: Duration = Duration::from_secs(2);

/// What an invocation gives.
#[derive(Debug)]
pub struct Outcome {
    /// One line of JSON for the log.
    pub log_line: String,
    /// The answer: no failed records, since a record that cannot be read is in quarantine; or why
    /// the whole batch must come again.
    pub result: Result<DynamoDbEventResponse, Diagnostic>,
}

/// Runs one invocation. A panic fails this invocation only.
pub async fn invoke(
    event: &str,
    request_id: &str,
    received_at_ms: i64,
    context: &Context,
) -> Outcome {
    let work = handle(event.as_bytes(), received_at_ms, context, Origin::Stream);
    // Unwind safe: a context is never changed, everything else is dropped.
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    match outcome.unwrap_or_else(|_| {
        Err(StreamError::Panic {
            at: take_panic_place(),
        })
    }) {
        Ok(summary) => Outcome {
            log_line: summary.metric_line(Some(request_id)),
            result: Ok(DynamoDbEventResponse::default()),
        },
        Err(error) => Outcome {
            log_line: error_line(&error, Some(request_id)),
            result: Err(diagnostic(&error)),
        },
    }
}

/// An error as Lambda reports it.
pub fn diagnostic(error: &StreamError) -> Diagnostic {
    Diagnostic {
        error_type: error.error_type().to_owned(),
        error_message: error.chain(),
    }
}

/// An error as one line of JSON.
pub fn error_line(error: &StreamError, request_id: Option<&str>) -> String {
    json!({
        "level": "ERROR",
        "error_type": error.error_type(),
        "message": error.chain(),
        "request_id": request_id,
    })
    .to_string()
}

thread_local! {
    /// Where the last panic of this thread happened.
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the place of a panic for the error, and shows nothing else of it: the message of a panic
/// may quote the text it choked on, which may be a customer's.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        PANIC_PLACE.with(|cell| {
            if let Ok(mut last) = cell.try_borrow_mut() {
                *last = place;
            }
        });
    }));
}

fn take_panic_place() -> Option<String> {
    PANIC_PLACE.with(|cell| cell.try_borrow_mut().ok()?.take())
}

/// Tells the Lambda Runtime API (`AWS_LAMBDA_RUNTIME_API`, `host:port`) why the function cannot
/// start, so that the reason is in the error of the invocation and not only in the log.
///
/// `lambda_runtime` reports only failures of its own.
///
/// # Errors
/// The API cannot be reached or does not accept the report.
pub fn report_init_error(api: &str, error: &StreamError) -> io::Result<()> {
    let host = api
        .strip_prefix("http://")
        .unwrap_or(api)
        .trim_end_matches('/');
    let (authority, base) = match host.split_once('/') {
        Some((authority, base)) => (authority, format!("/{base}")),
        None => (host, String::new()),
    };
    let address = authority
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other("the Runtime API has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, INIT_ERROR_TIMEOUT)?;
    stream.set_read_timeout(Some(INIT_ERROR_TIMEOUT))?;
    stream.set_write_timeout(Some(INIT_ERROR_TIMEOUT))?;
    let Diagnostic {
        error_type,
        error_message,
    } = diagnostic(error);
    let body = json!({
        "errorType": error_type,
        "errorMessage": error_message,
        "stackTrace": [],
    })
    .to_string();
    let request = format!(
        "POST {base}/2018-06-01/runtime/init/error HTTP/1.1\r\n\
         Host: {authority}\r\n\
         Content-Type: application/json\r\n\
         Lambda-Runtime-Function-Error-Type: {error_type}\r\n\
         Content-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(4_096).read_to_end(&mut answer)?;
    let status = answer
        .split(|byte| *byte == b' ')
        .nth(1)
        .unwrap_or_default();
    if status.first() == Some(&b'2') {
        Ok(())
    } else {
        Err(io::Error::other(
            "the Runtime API did not accept the report",
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that takes one request and answers it; gives the request.
    fn answering(status: &'static str) -> (String, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            while !request.ends_with(b"}") {
                let read = stream.read(&mut buffer).unwrap();
                assert!(read > 0);
                request.extend_from_slice(&buffer[..read]);
            }
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(request).unwrap()
        });
        (address, server)
    }

    #[test]
    fn a_failed_start_is_reported_with_type_and_message() {
        let (address, server) = answering("202 Accepted");
        let error = StreamError::Config("DYNALAKE_LAKE: not set \"✓\"".to_owned());
        report_init_error(&format!("http://{address}"), &error).unwrap();
        let request = server.join().unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("POST /2018-06-01/runtime/init/error HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(
            head.contains("Lambda-Runtime-Function-Error-Type: dynalake.Config"),
            "{head}"
        );
        let body: Diagnostic = serde_json::from_str(body).unwrap();
        assert_eq!(body, diagnostic(&error));
    }

    #[test]
    fn a_report_that_is_not_accepted_is_an_error() {
        let (address, server) = answering("403 Forbidden");
        assert!(report_init_error(&address, &StreamError::Config("x".to_owned())).is_err());
        server.join().unwrap();
        assert!(report_init_error("", &StreamError::Config("x".to_owned())).is_err());
    }
}
