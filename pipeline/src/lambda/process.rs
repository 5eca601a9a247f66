//! The process around a function: its environment in, its log out, the loop of Lambda's Runtime API.
//!
//! For binaries alone: here, and nowhere else, the environment and the clock are read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use futures::FutureExt;
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Invocation, Outcome};

/// What Lambda sets for every function and `lambda_runtime` insists on.
const RUNTIME_VARIABLES: [&str; 4] = [
    RUNTIME_API,
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
];
const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";
/// Time for the report of a failed start, each way.
const INIT_ERROR_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs a function until Lambda ends the process: `start` makes from the environment what `invoke` is
/// called with for each event. `by_hand` says what to do for those who start the program themselves.
///
/// A panic fails its invocation only.
pub fn run<C, R, F>(
    by_hand: &str,
    start: impl FnOnce(&BTreeMap<String, String>) -> Result<C, Diagnostic>,
    invoke: &F,
) -> ExitCode
where
    R: Serialize,
    F: AsyncFn(Invocation<'_>, &C) -> Outcome<R>,
{
    install_panic_hook();
    let vars = environment();
    if let Some(missing) = RUNTIME_VARIABLES
        .iter()
        .find(|name| !vars.contains_key(**name))
    {
        return fail(&format!(
            "{missing} is not set: this program is a Lambda function; {by_hand}"
        ));
    }
    // Everything that can be wrong with the deployment is found here, before the first event.
    let context = match start(&vars) {
        Ok(context) => context,
        Err(error) => {
            let api = vars.get(RUNTIME_API).map_or("", String::as_str);
            if let Err(report) = report_init_error(api, &error) {
                print_line(
                    &mut io::stderr(),
                    &format!("the Lambda Runtime API was not told: {report}"),
                );
            }
            return fail(&error_line(&error, None));
        }
    };
    // One invocation at a time: one thread does. What keeps a processor busy is synchronous anyway.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the asynchronous runtime does not start: {error}")),
    };
    match runtime.block_on(serve(&context, invoke)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("the Lambda runtime stopped: {error}")),
    }
}

async fn serve<C, R, F>(context: &C, invoke: &F) -> Result<(), lambda_runtime::Error>
where
    R: Serialize,
    F: AsyncFn(Invocation<'_>, &C) -> Outcome<R>,
{
    let handler = service_fn(|event: LambdaEvent<Box<RawValue>>| async move {
        let request_id = event.context.request_id.as_str();
        let invocation = Invocation {
            event: event.payload.get(),
            request_id,
            now_ms: now_ms(),
            deadline_ms: i64::try_from(event.context.deadline).unwrap_or(i64::MAX),
        };
        let outcome = caught(invoke(invocation, context)).await;
        for line in &outcome.log {
            print_line(&mut io::stdout(), line);
        }
        if let Err(error) = &outcome.result {
            print_line(&mut io::stdout(), &error_line(error, Some(request_id)));
        }
        outcome.result
    });
    lambda_runtime::run(handler).await
}

/// An invocation whose panic is an error.
pub(crate) async fn caught<R>(work: impl Future<Output = Outcome<R>>) -> Outcome<R> {
    // Unwind safe: a context is never changed, everything else is dropped.
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or_else(|_| Outcome::failed(panicked()))
}

/// Names and values that are text. A value that is not would be wrong for any of ours.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        })
        .collect()
}

/// Milliseconds since 1970-01-01 UTC.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the time of day is read"
)]
pub fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.ok()
        .and_then(|time| i64::try_from(time.as_millis()).ok())
        .unwrap_or_default()
}

/// Time since the first call, for the lengths of stages.
pub fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// An error as one line of JSON.
fn error_line(error: &Diagnostic, request_id: Option<&str>) -> String {
    json!({
        "level": "ERROR",
        "error_type": error.error_type,
        "message": error.error_message,
        "request_id": request_id,
    })
    .to_string()
}

fn fail(text: &str) -> ExitCode {
    print_line(&mut io::stderr(), text);
    ExitCode::FAILURE
}

/// A log that cannot be written is no reason to fail an invocation.
fn print_line(to: &mut impl Write, line: &str) {
    drop(writeln!(to, "{line}").and_then(|()| to.flush()));
}

fn panicked() -> Diagnostic {
    let place = take_panic_place();
    let place = place.map(|place| format!(" at {place}"));
    Diagnostic {
        error_type: "dynalake.Panic".to_owned(),
        error_message: format!(
            "a defect of dynalake stopped the invocation{}",
            place.unwrap_or_default()
        ),
    }
}

thread_local! {
    /// Where the last panic of this thread happened.
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the place of a panic for the error, and shows nothing else of it: the message of a panic
/// may quote the text it choked on, which may be a customer's.
fn install_panic_hook() {
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
fn report_init_error(api: &str, error: &Diagnostic) -> io::Result<()> {
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
    } = error;
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

    fn diagnostic(error_type: &str, message: &str) -> Diagnostic {
        Diagnostic {
            error_type: error_type.to_owned(),
            error_message: message.to_owned(),
        }
    }

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
        let error = diagnostic("dynalake.Config", "DYNALAKE_LAKE: not set \"✓\"");
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
        assert_eq!(body, error);
    }

    #[test]
    fn a_report_that_is_not_accepted_is_an_error() {
        let (address, server) = answering("403 Forbidden");
        let error = diagnostic("dynalake.Config", "x");
        assert!(report_init_error(&address, &error).is_err());
        server.join().unwrap();
        assert!(report_init_error("", &error).is_err());
    }
}
