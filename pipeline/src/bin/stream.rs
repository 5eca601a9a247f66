//! The stream Lambda: configuration, one runtime, one line of log per invocation.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use dynalake_pipeline::stream::Context;
use dynalake_pipeline::stream::lambda::{
    error_line, install_panic_hook, invoke, report_init_error,
};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;

/// What Lambda sets for every function and `lambda_runtime` insists on.
const RUNTIME_VARIABLES: [&str; 4] = [
    RUNTIME_API,
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
];
const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";

fn main() -> ExitCode {
    install_panic_hook();
    let vars = environment();
    if let Some(missing) = RUNTIME_VARIABLES
        .iter()
        .find(|name| !vars.contains_key(**name))
    {
        return fail(&format!(
            "{missing} is not set: this program is a Lambda function; to try an event by hand, use \
             `dynalake replay EVENT.json --lake URI --schemas DIR`"
        ));
    }
    // Everything that can be wrong with the deployment is found here, before the first event.
    let context = match Context::from_vars(&vars) {
        Ok(context) => context.with_clock(clock),
        Err(error) => {
            let api = vars
                .get(RUNTIME_API)
                .map(String::as_str)
                .unwrap_or_default();
            if let Err(report) = report_init_error(api, &error) {
                print_line(
                    &mut io::stderr(),
                    &format!("the Lambda Runtime API was not told: {report}"),
                );
            }
            return fail(&error_line(&error, None));
        }
    };
    // One invocation at a time: one thread does. Decoding and encoding are synchronous anyway.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the asynchronous runtime does not start: {error}")),
    };
    match runtime.block_on(serve(&context)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("the Lambda runtime stopped: {error}")),
    }
}

async fn serve(context: &Context) -> Result<(), lambda_runtime::Error> {
    let handler = service_fn(|event: LambdaEvent<Box<RawValue>>| async move {
        let request_id = &event.context.request_id;
        let outcome = invoke(event.payload.get(), request_id, now_ms(), context).await;
        print_line(&mut io::stdout(), &outcome.log_line);
        outcome.result
    });
    lambda_runtime::run(handler).await
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
fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.ok()
        .and_then(|time| i64::try_from(time.as_millis()).ok())
        .unwrap_or_default()
}

/// Time since the first call, for the lengths of stages.
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

fn fail(text: &str) -> ExitCode {
    print_line(&mut io::stderr(), text);
    ExitCode::FAILURE
}

/// A log that cannot be written is no reason to fail a batch.
fn print_line(to: &mut impl Write, line: &str) {
    drop(writeln!(to, "{line}").and_then(|()| to.flush()));
}
