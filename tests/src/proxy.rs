//! A proxy between a client and S3 that injects failures.
//!
//! It forwards bytes as they are, the `Host` header included, so that signatures stay valid.

use std::io::{self, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::http1;

/// What to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Forward it and its answer.
    Pass,
    /// Answer 503 `SlowDown`; the server never sees it.
    SlowDown,
    /// Answer 403 `AccessDenied`; the server never sees it.
    Deny,
    /// Close the connection without reading the body; the server never sees the request.
    Reset,
    /// Let the server do it, but close the connection instead of forwarding its answer.
    DropAnswer,
    /// Forward the head of the answer and half of its body, then close the connection.
    Truncate,
}

/// A request that came by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// Method.
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    /// Lines of the head after the first.
    pub headers: Vec<String>,
    /// How many different targets this method had before this one: 0 for the first; a retry has the
    /// number of its first attempt.
    pub nth: usize,
    /// How many times this method and target came before.
    pub attempt: usize,
}

impl ProxiedRequest {
    /// Value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

type Rule = Box<dyn Fn(&ProxiedRequest) -> Action + Send>;

/// A running proxy; it ends with the test process.
pub struct FaultProxy {
    address: String,
    shared: Arc<Mutex<Shared>>,
    arrived: Arc<Condvar>,
}

struct Shared {
    rule: Rule,
    seen: Vec<ProxiedRequest>,
}

impl FaultProxy {
    /// Starts a proxy before a server (`host:port`). It forwards everything until told otherwise.
    pub fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Mutex::new(Shared {
            rule: Box::new(|_| Action::Pass),
            seen: vec![],
        }));
        let arrived = Arc::new(Condvar::new());
        let (served, tell) = (Arc::clone(&shared), Arc::clone(&arrived));
        let upstream = upstream.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, tell) = (Arc::clone(&served), Arc::clone(&tell));
                let upstream = upstream.clone();
                // A connection that breaks is what this proxy is for.
                thread::spawn(move || drop(serve(stream.unwrap(), &upstream, &shared, &tell)));
            }
        });
        Self {
            address,
            shared,
            arrived,
        }
    }

    /// Its address as an endpoint: `http://127.0.0.1:…`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on this rule decides; what was seen is forgotten.
    pub fn set(&self, rule: impl Fn(&ProxiedRequest) -> Action + Send + 'static) {
        let mut shared = self.shared.lock().unwrap();
        shared.rule = Box::new(rule);
        shared.seen.clear();
    }

    /// From now on all attempts at the n-th different PUT (0 is the first) meet this action.
    pub fn fail_put(&self, n: usize, action: Action) {
        self.set(move |request| {
            if request.method == "PUT" && request.nth == n {
                action
            } else {
                Action::Pass
            }
        });
    }

    /// Forwards everything.
    pub fn heal(&self) {
        self.set(|_| Action::Pass);
    }

    /// Waits until such a request comes by, or has since the rule was set.
    pub fn wait_for(&self, wanted: impl Fn(&ProxiedRequest) -> bool) {
        assert!(
            self.comes_within(Duration::from_mins(1), wanted),
            "no such request came"
        );
    }

    /// Whether such a request comes by within so much time, or has since the rule was set.
    pub fn comes_within(
        &self,
        patience: Duration,
        wanted: impl Fn(&ProxiedRequest) -> bool,
    ) -> bool {
        let absent = |shared: &mut Shared| !shared.seen.iter().any(&wanted);
        let shared = self.shared.lock().unwrap();
        let waited = self.arrived.wait_timeout_while(shared, patience, absent);
        !waited.unwrap().1.timed_out()
    }

    /// The requests since the rule was set.
    pub fn seen(&self) -> Vec<ProxiedRequest> {
        self.shared.lock().unwrap().seen.clone()
    }
}

fn serve(
    stream: TcpStream,
    upstream: &str,
    shared: &Mutex<Shared>,
    arrived: &Condvar,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(head) = http1::read_head(&mut reader)? {
        let action = shared.lock().unwrap().decide(&head);
        arrived.notify_all();
        if action == Action::Reset {
            return Ok(());
        }
        let body = http1::read_body(&mut reader, &head, false)?;
        match action {
            Action::SlowDown => {
                refuse(
                    &mut writer,
                    "503 Slow Down",
                    "SlowDown",
                    "Please reduce your request rate.",
                )?;
                continue;
            }
            Action::Deny => {
                deny(&mut writer, &head)?;
                continue;
            }
            _ => {}
        }
        let answer = forward(upstream, &head, &body)?;
        if action == Action::DropAnswer {
            return Ok(());
        }
        let cut = if action == Action::Truncate {
            answer.body.len() / 2
        } else {
            answer.body.len()
        };
        writer.write_all(head_of_answer(&answer, http1::word(&head, 0)).as_bytes())?;
        writer.write_all(&answer.body[..cut])?;
        writer.flush()?;
        if action == Action::Truncate {
            return Ok(());
        }
    }
    Ok(())
}

impl Shared {
    fn decide(&mut self, head: &[String]) -> Action {
        let (method, target) = (
            http1::word(head, 0).to_owned(),
            http1::word(head, 1).to_owned(),
        );
        let same_method = || self.seen.iter().filter(|seen| seen.method == method);
        let attempt = same_method().filter(|seen| seen.target == target).count();
        let nth = same_method()
            .find(|seen| seen.target == target)
            .map_or_else(
                || same_method().map(|seen| seen.nth + 1).max().unwrap_or(0),
                |first| first.nth,
            );
        let headers = head[1..].to_vec();
        let request = ProxiedRequest {
            method,
            target,
            headers,
            nth,
            attempt,
        };
        let action = (self.rule)(&request);
        self.seen.push(request);
        action
    }
}

fn forward(upstream: &str, head: &[String], body: &[u8]) -> io::Result<http1::Message> {
    let mut stream = TcpStream::connect(upstream)?;
    stream.set_nodelay(true)?;
    let mut text = String::new();
    for line in head {
        let name = line.split(':').next().unwrap_or("");
        // The body goes on with a length; SDKs sign neither of these headers.
        if ![
            "connection",
            "transfer-encoding",
            "content-length",
            "expect",
        ]
        .iter()
        .any(|hop| name.eq_ignore_ascii_case(hop))
        {
            text.push_str(line);
            text.push_str("\r\n");
        }
    }
    let length = body.len();
    write!(
        stream,
        "{text}content-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    stream.write_all(body)?;
    let mut reader = BufReader::new(stream);
    let lines = http1::read_head(&mut reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let bodiless =
        http1::word(head, 0) == "HEAD" || ["204", "304"].contains(&http1::word(&lines, 1));
    let body = if bodiless {
        vec![]
    } else {
        http1::read_body(&mut reader, &lines, true)?
    };
    Ok(http1::Message { lines, body })
}

/// The answer's head. The body was decoded, so it goes on with a length; a HEAD's length stays.
fn head_of_answer(answer: &http1::Message, method: &str) -> String {
    let mut text = String::new();
    for line in &answer.lines {
        let name = line.split(':').next().unwrap_or("");
        let length = name.eq_ignore_ascii_case("content-length") && method != "HEAD";
        if length
            || name.eq_ignore_ascii_case("connection")
            || name.eq_ignore_ascii_case("transfer-encoding")
        {
            continue;
        }
        text.push_str(line);
        text.push_str("\r\n");
    }
    if method != "HEAD" && answer.word(1) != "204" {
        let length = answer.body.len().to_string();
        text.extend(["content-length: ", &length, "\r\n"]);
    }
    text.push_str("\r\n");
    text
}

/// Denies a request as a service of its protocol does: Smithy's RPC v2 CBOR, AWS's JSON protocols, S3.
fn deny(stream: &mut TcpStream, head: &[String]) -> io::Result<()> {
    const CODE: &str = "AccessDeniedException";
    let denied = "403 Forbidden";
    if http1::header(head, "smithy-protocol").is_some() {
        // RFC 8949: a map of two texts.
        let mut body = vec![0xa2];
        for text in ["__type", CODE, "message", "Access Denied"] {
            body.push(0x60 | u8::try_from(text.len()).unwrap());
            body.extend(text.as_bytes());
        }
        let headers = [
            ("content-type", "application/cbor"),
            ("smithy-protocol", "rpc-v2-cbor"),
        ];
        return http1::respond(stream, denied, &headers, &body);
    }
    let is_json = http1::header(head, "x-amz-target").is_some()
        || http1::word(head, 1).starts_with("/2015-03-31/");
    if is_json {
        let headers = [
            ("content-type", "application/json"),
            ("x-amzn-errortype", CODE),
        ];
        return http1::respond(stream, denied, &headers, br#"{"message":"Access Denied"}"#);
    }
    refuse(stream, denied, "AccessDenied", "Access Denied")
}

fn refuse(stream: &mut TcpStream, status: &str, code: &str, message: &str) -> io::Result<()> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
         <Message>{message}</Message><RequestId>PROXY0000000001</RequestId></Error>"
    );
    let headers = [
        ("content-type", "application/xml"),
        ("x-amz-request-id", "PROXY0000000001"),
        ("x-amz-id-2", "proxy/extended/1"),
    ];
    http1::respond(stream, status, &headers, body.as_bytes())
}
