//! A DynamoDB that says what a test tells it to, for what MiniStack does not do.
//!
//! It speaks the JSON protocol ("DynamoDB low-level API" in AWS's developer guide): the operation is
//! in `x-amz-target`, parameters and answer are JSON.

use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::http1;

/// What the server says to a call.
#[derive(Debug, Clone)]
pub enum Said {
    /// The answer.
    Answer(Value),
    /// A refusal: HTTP status, code, sentence.
    Refusal(u16, &'static str, &'static str),
    /// Nothing; the connection is closed.
    HangUp,
}

/// A call that came: operation without its namespace, parameters.
pub type Called = (String, Value);

/// The running server; it ends with the test process.
#[derive(Debug)]
pub struct ScriptedDynamo {
    address: String,
    calls: Arc<Mutex<Vec<Called>>>,
}

impl ScriptedDynamo {
    /// Starts a server. `script`: the operation, its parameters, and how many calls of this operation
    /// came before.
    pub fn start(script: impl Fn(&str, &Value, usize) -> Said + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (script, heard) = (Arc::new(script), Arc::clone(&calls));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, heard) = (Arc::clone(&script), Arc::clone(&heard));
                // A client that has gone is no failure.
                thread::spawn(move || drop(serve(stream.unwrap(), &*script, &heard)));
            }
        });
        Self { address, calls }
    }

    /// Its address as an endpoint.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Called> {
        self.calls.lock().unwrap().clone()
    }

    /// Parameters of the calls of one operation so far.
    pub fn calls_of(&self, operation: &str) -> Vec<Value> {
        let calls = self.calls();
        let of = calls.into_iter().filter(|(name, _)| name == operation);
        of.map(|(_, parameters)| parameters).collect()
    }
}

fn serve(
    stream: TcpStream,
    script: &dyn Fn(&str, &Value, usize) -> Said,
    calls: &Mutex<Vec<Called>>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = http1::read_request(&mut reader)? {
        let target = http1::header(&request.lines, "x-amz-target").unwrap_or("");
        let operation = target.rsplit('.').next().unwrap_or("").to_owned();
        let parameters: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let before = {
            let mut calls = calls.lock().unwrap();
            let before = calls.iter().filter(|(name, _)| *name == operation).count();
            calls.push((operation.clone(), parameters.clone()));
            before
        };
        let (status, body) = match script(&operation, &parameters, before) {
            Said::Answer(answer) => ("200 OK".to_owned(), answer),
            Said::Refusal(status, code, message) => (
                format!("{status} Refused"),
                json!({
                    "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"),
                    "message": message,
                }),
            ),
            Said::HangUp => return Ok(()),
        };
        let headers = [("content-type", "application/x-amz-json-1.0")];
        http1::respond(&mut writer, &status, &headers, body.to_string().as_bytes())?;
    }
    Ok(())
}
