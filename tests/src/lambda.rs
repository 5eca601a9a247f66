//! A Lambda Runtime API that drives the real binary of a function.
//!
//! The API, as "Using the Lambda runtime API for custom runtimes" describes it: the function polls
//! `GET /2018-06-01/runtime/invocation/next` and answers each invocation by a POST to
//! `…/invocation/{id}/response` or `…/invocation/{id}/error`; a start-up that fails is told to
//! `…/init/error`. The process gets these variables and those given, and nothing of ours.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::http1;

/// Longer than any invocation of a test; a function that hangs fails its test instead of stopping it.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often a waiting test looks whether the process has ended.
const GLANCE: Duration = Duration::from_millis(20);

/// Why an invocation failed.
#[derive(Debug)]
pub enum LambdaError {
    /// The function answered with an error: `errorType` and `errorMessage`.
    Function {
        /// Kind of error, as alarms see it.
        error_type: String,
        /// The sentence.
        message: String,
    },
    /// The process ended before it answered.
    Exited(Option<ExitStatus>),
}

/// A start-up that failed.
#[derive(Debug)]
pub struct InitError {
    /// Body of the POST to `init/error`; `None` when the process ended without one.
    pub body: Option<Value>,
    /// How the process ended; `None` when it still ran.
    pub status: Option<ExitStatus>,
    /// Lines on its standard output and standard error.
    pub log: Vec<String>,
}

/// An invocation under way.
#[derive(Debug)]
#[must_use = "wait for it"]
pub struct Invocation(u64);

/// A running function.
#[derive(Debug)]
pub struct LambdaProcess {
    child: Child,
    api: Arc<Api>,
    log: Arc<Mutex<Vec<String>>>,
    readers: Vec<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Api {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The function has asked for work at least once.
    polled: bool,
    init_error: Option<Vec<u8>>,
    last_id: u64,
    waiting: Option<Waiting>,
    answers: Vec<(u64, Result<Value, LambdaError>)>,
}

/// An event that the function has not taken yet.
#[derive(Debug)]
struct Waiting {
    id: u64,
    event: Vec<u8>,
    deadline_ms: i64,
}

/// The year 2100, for tests that are not about deadlines.
const NO_DEADLINE: i64 = 4_102_444_800_000;

impl LambdaProcess {
    /// Starts a binary with these variables and waits until it asks for its first event.
    ///
    /// # Errors
    /// When it reports a failed start-up, or ends.
    pub fn start(binary: &Path, variables: &[(&str, &str)]) -> Result<Self, InitError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let api = Arc::new(Api::default());
        let served = Arc::clone(&api);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let api = Arc::clone(&served);
                thread::spawn(move || drop(api.serve(stream.unwrap())));
            }
        });
        let mut child = Command::new(binary)
            .env_clear()
            .envs([
                ("AWS_LAMBDA_RUNTIME_API", address.as_str()),
                ("AWS_LAMBDA_FUNCTION_NAME", "dynalake-stream"),
                ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1024"),
                ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/dynalake-stream"),
                ("AWS_LAMBDA_LOG_STREAM_NAME", "test"),
                ("LAMBDA_TASK_ROOT", "/var/task"),
                ("TZ", ":UTC"),
            ])
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("`{}` does not start: {error}", binary.display()));
        let log = Arc::new(Mutex::new(Vec::new()));
        let readers = vec![
            collect_lines(child.stdout.take().unwrap(), &log),
            collect_lines(child.stderr.take().unwrap(), &log),
        ];
        let mut process = Self {
            child,
            api,
            log,
            readers,
        };
        match process.wait_for(|state| {
            (state.polled || state.init_error.is_some()).then(|| state.init_error.take())
        }) {
            Ok(None) => Ok(process),
            Ok(Some(body)) => Err(process.into_init_error(Some(&body))),
            Err(_) => Err(process.into_init_error(None)),
        }
    }

    /// Sends an event and waits for its answer.
    pub fn invoke(&mut self, event: impl AsRef<[u8]>) -> Result<Value, LambdaError> {
        let invocation = self.begin(event);
        self.wait(&invocation)
    }

    /// The same, with a deadline in milliseconds since 1970-01-01 UTC. It is told, not enforced.
    pub fn invoke_until(
        &mut self,
        event: impl AsRef<[u8]>,
        deadline_ms: i64,
    ) -> Result<Value, LambdaError> {
        let invocation = self.begin_until(event, deadline_ms);
        self.wait(&invocation)
    }

    /// Sends an event without waiting. One at a time, as Lambda does.
    pub fn begin(&mut self, event: impl AsRef<[u8]>) -> Invocation {
        self.begin_until(event, NO_DEADLINE)
    }

    fn begin_until(&mut self, event: impl AsRef<[u8]>, deadline_ms: i64) -> Invocation {
        let mut state = self.api.state.lock().unwrap();
        assert!(state.waiting.is_none(), "the last event was not taken yet");
        state.last_id += 1;
        let id = state.last_id;
        state.waiting = Some(Waiting {
            id,
            event: event.as_ref().to_vec(),
            deadline_ms,
        });
        drop(state);
        self.api.changed.notify_all();
        Invocation(id)
    }

    /// Waits for the answer of an event that was sent.
    pub fn wait(&mut self, invocation: &Invocation) -> Result<Value, LambdaError> {
        let answer = self.wait_for(|state| {
            let position = state
                .answers
                .iter()
                .position(|(id, _)| *id == invocation.0)?;
            Some(state.answers.swap_remove(position).1)
        });
        answer.unwrap_or_else(|status| Err(LambdaError::Exited(status)))
    }

    /// Whether the process lives.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends the process at once (SIGKILL), in the middle of whatever it does. Its log is whole then.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.end();
    }

    /// The lines of standard output and standard error so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// The lines of the log so far that are JSON objects.
    pub fn json_log(&self) -> Vec<Value> {
        self.log()
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(Value::is_object)
            .collect()
    }

    /// Waits until the state gives something, or the process has ended.
    fn wait_for<T>(
        &mut self,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, Option<ExitStatus>> {
        let api = Arc::clone(&self.api);
        let mut state = api.state.lock().unwrap();
        let mut waited = Duration::ZERO;
        loop {
            if let Some(found) = look(&mut state) {
                return Ok(found);
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                return Err(Some(status));
            }
            assert!(
                waited < PATIENCE,
                "the function hangs; its log:\n{}",
                self.log().join("\n")
            );
            let (next, timeout) = api.changed.wait_timeout(state, GLANCE).unwrap();
            state = next;
            if timeout.timed_out() {
                waited += GLANCE;
            }
        }
    }

    fn into_init_error(mut self, body: Option<&[u8]>) -> InitError {
        let body = body.map(|body| serde_json::from_slice(body).expect("init error in JSON"));
        // After it told of its failure the process may end by itself; else Drop ends it.
        let mut status = self.child.try_wait().unwrap();
        if status.is_none() && body.is_some() {
            status = self.wait_for(|_| None::<()>).unwrap_err();
        }
        self.end();
        InitError {
            body,
            status,
            log: self.log(),
        }
    }

    fn end(&mut self) {
        // A process that has ended already is fine.
        drop(self.child.kill());
        drop(self.child.wait());
        for reader in self.readers.drain(..) {
            drop(reader.join());
        }
    }
}

impl Drop for LambdaProcess {
    /// Ends the process; a panic in it, at whatever time, fails the test.
    fn drop(&mut self) {
        self.end();
        let log = self.log();
        // Rust's own message, or our function's name for a panic that it caught.
        let tells = |line: &String| line.contains("panicked at") || line.contains("dynalake.Panic");
        let panicked = log.iter().any(tells);
        assert!(
            !panicked || thread::panicking(),
            "the function panicked:\n{}",
            log.join("\n")
        );
    }
}

impl InitError {
    /// Everything that was said: the reported error and the log, one line each.
    pub fn text(&self) -> String {
        let body = self.body.iter().map(Value::to_string);
        body.chain(self.log.iter().cloned())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Api {
    /// Answers the requests of one connection until the function closes it.
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        while let Some(request) = http1::read_request(&mut reader)? {
            let path = request
                .word(1)
                .trim_start_matches("/2018-06-01/runtime/")
                .to_owned();
            let parts: Vec<&str> = path.split('/').collect();
            match (request.word(0), parts.as_slice()) {
                ("GET", ["invocation", "next"]) => {
                    let waiting = self.next();
                    let id = waiting.id.to_string();
                    let deadline = waiting.deadline_ms.to_string();
                    let headers = [
                        ("lambda-runtime-aws-request-id", id.as_str()),
                        ("lambda-runtime-deadline-ms", deadline.as_str()),
                        (
                            "lambda-runtime-invoked-function-arn",
                            "arn:aws:lambda:eu-west-1:111122223333:function:dynalake-stream",
                        ),
                        ("content-type", "application/json"),
                    ];
                    http1::respond(&mut writer, "200 OK", &headers, &waiting.event)?;
                }
                ("POST", ["invocation", id, kind @ ("response" | "error")]) => {
                    let answer = if *kind == "response" {
                        Ok(serde_json::from_slice(&request.body).expect("a response in JSON"))
                    } else {
                        Err(function_error(&request.body))
                    };
                    let id = id.parse().expect("an id that we gave");
                    self.state.lock().unwrap().answers.push((id, answer));
                    self.changed.notify_all();
                    http1::respond(&mut writer, "202 Accepted", &[], b"{\"status\":\"OK\"}")?;
                }
                ("POST", ["init", "error"]) => {
                    self.state.lock().unwrap().init_error = Some(request.body);
                    http1::respond(&mut writer, "202 Accepted", &[], b"{\"status\":\"OK\"}")?;
                    self.changed.notify_all();
                }
                _ => http1::respond(&mut writer, "404 Not Found", &[], b"")?,
            }
        }
        Ok(())
    }

    /// Waits for an event. The wait ends with the test process where no more comes.
    fn next(&self) -> Waiting {
        let mut state = self.state.lock().unwrap();
        state.polled = true;
        self.changed.notify_all();
        loop {
            if let Some(event) = state.waiting.take() {
                return event;
            }
            state = self.changed.wait(state).unwrap();
        }
    }
}

fn function_error(body: &[u8]) -> LambdaError {
    let body: Value = serde_json::from_slice(body).expect("an error in JSON");
    let text = |name: &str| {
        body.get(name)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    LambdaError::Function {
        error_type: text("errorType"),
        message: text("errorMessage"),
    }
}

fn collect_lines(
    pipe: impl Read + Send + 'static,
    log: &Arc<Mutex<Vec<String>>>,
) -> thread::JoinHandle<()> {
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { break };
            log.lock()
                .unwrap()
                .push(String::from_utf8_lossy(&line).into_owned());
        }
    })
}
