//! MiniStack's DynamoDB and its streams: one server per test process, and a client of our own.
//!
//! The client speaks the JSON protocol over a connection per call ("DynamoDB low-level API" in AWS's
//! developer guide). MiniStack looks at the region in the credentials' scope and checks no signature.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http1;

/// A running server.
#[derive(Debug)]
pub struct MiniStack {
    address: String,
    /// The shell that ends the server when this process has gone.
    _guard: Child,
}

/// A client of a server: a connection per call, since the server closes idle ones when it likes.
#[derive(Debug)]
pub struct DynamoClient {
    address: String,
}

/// A request that the server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamoError {
    /// `__type` without its namespace, such as `ConditionalCheckFailedException`.
    pub kind: String,
    /// The sentence.
    pub message: String,
}

/// A table with a string partition key `PK`, a string sort key `SK`, and a stream of both images.
#[derive(Debug)]
pub struct DynamoTable {
    client: DynamoClient,
    name: String,
    stream_arn: String,
}

/// The server of this test process; `None` (said, or a failure: see `missing`) without MiniStack.
pub fn ministack() -> Option<&'static MiniStack> {
    static SERVER: OnceLock<Option<MiniStack>> = OnceLock::new();
    SERVER
        .get_or_init(|| {
            let Some(program) = crate::paths::ministack() else {
                crate::missing(
                    "MiniStack",
                    "run tests/run, or set DYNALAKE_MINISTACK to its `ministack`",
                );
                return None;
            };
            Some(started(&program, &[]))
        })
        .as_ref()
}

fn started(program: &Path, environment: &[(&str, &str)]) -> MiniStack {
    // Between choosing a free port and opening it somebody else may take it.
    let server = (0..3).find_map(|_| launch(program, environment));
    server.expect("MiniStack starts")
}

impl MiniStack {
    /// A server of a test's own, with these variables; `None` without MiniStack.
    pub fn with(environment: &[(&str, &str)]) -> Option<Self> {
        // Said, or a failure, where it is missing.
        ministack()?;
        let program = crate::paths::ministack()?;
        Some(started(&program, environment))
    }

    /// `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A client.
    pub fn client(&self) -> DynamoClient {
        DynamoClient {
            address: self.address.clone(),
        }
    }

    /// A new, empty table.
    pub fn table(&self, name: &str) -> DynamoTable {
        let mut client = self.client();
        let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
        let attribute = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
        let table = client
            .call(
                "DynamoDB_20120810.CreateTable",
                &json!({
                    "TableName": name,
                    "KeySchema": [key("PK", "HASH"), key("SK", "RANGE")],
                    "AttributeDefinitions": [attribute("PK"), attribute("SK")],
                    "BillingMode": "PAY_PER_REQUEST",
                    "StreamSpecification": {
                        "StreamEnabled": true,
                        "StreamViewType": "NEW_AND_OLD_IMAGES",
                    },
                }),
            )
            .expect("the table is made");
        let stream_arn = table["TableDescription"]["LatestStreamArn"].as_str();
        DynamoTable {
            client,
            name: name.to_owned(),
            stream_arn: stream_arn.expect("the table has a stream").to_owned(),
        }
    }
}

impl MiniStack {
    /// Calls an operation of a service that speaks the query protocol (CloudFormation, CloudWatch):
    /// parameters go as a form, `Action` among them; the answer is XML.
    pub fn query(&self, service: &str, parameters: &[(&str, &str)]) -> String {
        let form: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{name}={}", form_encoded(value)))
            .collect();
        let form = form.join("&");
        let message = format!(
            "POST / HTTP/1.1\r\nhost: {}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             connection: close\r\nauthorization: AWS4-HMAC-SHA256 \
             Credential=AKIDEXAMPLE/20260501/eu-west-1/{service}/aws4_request, SignedHeaders=host, \
             Signature=0\r\ncontent-length: {}\r\n\r\n{form}",
            self.address,
            form.len()
        );
        let mut stream = TcpStream::connect(&self.address).expect("MiniStack listens");
        stream.write_all(message.as_bytes()).unwrap();
        let mut connection = BufReader::new(stream);
        let head = http1::read_head(&mut connection)
            .unwrap()
            .expect("MiniStack answers");
        let body = http1::read_body(&mut connection, &head, true).unwrap();
        let body = String::from_utf8(body).unwrap();
        assert_eq!(http1::word(&head, 1), "200", "{service}: {body}");
        body
    }
}

fn form_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").unwrap();
        }
    }
    encoded
}

impl DynamoClient {
    /// Calls an operation: `DynamoDB_20120810.PutItem`, `DynamoDBStreams_20120810.GetRecords`,
    /// `AmazonAthena.StartQueryExecution`.
    ///
    /// # Errors
    /// What the server refused. A broken connection is a panic.
    pub fn call(&mut self, target: &str, body: &Value) -> Result<Value, DynamoError> {
        let header = format!("x-amz-target: {target}\r\n");
        let (status, answer) = self.send("/", "dynamodb", &header, body);
        if status == "200" {
            return Ok(answer);
        }
        let text = |name: &str| answer[name].as_str().unwrap_or("").to_owned();
        let kind = text("__type");
        Err(DynamoError {
            kind: kind.rsplit('#').next().unwrap_or("").to_owned(),
            message: text("message"),
        })
    }

    /// Makes a function of Lambda from a zip (`POST /2015-03-31/functions`), and gives its ARN.
    ///
    /// # Panics
    /// It is refused.
    pub fn create_function(&mut self, request: &Value) -> String {
        let (status, answer) = self.send("/2015-03-31/functions", "lambda", "", request);
        assert_eq!(status, "201", "{answer}");
        answer["FunctionArn"].as_str().unwrap().to_owned()
    }

    /// Posts JSON and gives status and JSON.
    fn send(&self, path: &str, service: &str, header: &str, body: &Value) -> (String, Value) {
        let body = body.to_string();
        let message = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\n{header}\
             content-type: application/x-amz-json-1.0\r\nconnection: close\r\n\
             authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260501/eu-west-1/{service}/\
             aws4_request, SignedHeaders=host, Signature=0\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).expect("MiniStack listens");
        stream.set_nodelay(true).unwrap();
        stream.write_all(message.as_bytes()).unwrap();
        let mut connection = BufReader::new(stream);
        let head = http1::read_head(&mut connection)
            .unwrap()
            .expect("MiniStack answers");
        let body = http1::read_body(&mut connection, &head, false).unwrap();
        let answer = serde_json::from_slice(&body).expect("an answer in JSON");
        (http1::word(&head, 1).to_owned(), answer)
    }
}

impl DynamoTable {
    /// The stream's ARN.
    pub fn stream_arn(&self) -> &str {
        &self.stream_arn
    }

    /// Writes an item, whatever was there.
    pub fn put(&mut self, item: &Value) -> Result<(), DynamoError> {
        let body = json!({"TableName": self.name, "Item": item});
        self.client
            .call("DynamoDB_20120810.PutItem", &body)
            .map(drop)
    }

    /// Changes an item by a request without `TableName`, and gives what it is then.
    pub fn update(&mut self, request: &Value) -> Result<Value, DynamoError> {
        let mut body = request.clone();
        body["TableName"] = json!(self.name);
        body["ReturnValues"] = json!("ALL_NEW");
        let answer = self.client.call("DynamoDB_20120810.UpdateItem", &body)?;
        Ok(answer["Attributes"].clone())
    }

    /// Deletes an item, if it is there.
    pub fn delete(&mut self, key: &Value) -> Result<(), DynamoError> {
        let body = json!({"TableName": self.name, "Key": key});
        self.client
            .call("DynamoDB_20120810.DeleteItem", &body)
            .map(drop)
    }

    /// All of these or none: `{"Put": {…}}`, `{"Update": {…}}`, `{"Delete": {…}}` without `TableName`.
    pub fn transact(&mut self, actions: &[Value]) -> Result<(), DynamoError> {
        let mut actions = actions.to_vec();
        for action in &mut actions {
            for request in action.as_object_mut().unwrap().values_mut() {
                request["TableName"] = json!(self.name);
            }
        }
        let body = json!({"TransactItems": actions});
        self.client
            .call("DynamoDB_20120810.TransactWriteItems", &body)
            .map(drop)
    }

    /// Every item.
    pub fn scan(&mut self) -> Vec<Value> {
        let mut items = Vec::new();
        let mut body = json!({"TableName": self.name, "ConsistentRead": true});
        loop {
            let page = self.client.call("DynamoDB_20120810.Scan", &body).unwrap();
            items.extend(page["Items"].as_array().unwrap().iter().cloned());
            match page.get("LastEvaluatedKey") {
                Some(key) => body["ExclusiveStartKey"] = key.clone(),
                None => return items,
            }
        }
    }

    /// The ids of the stream's shards.
    pub fn shards(&mut self) -> Vec<String> {
        let body = json!({"StreamArn": self.stream_arn});
        let answer = self
            .client
            .call("DynamoDBStreams_20120810.DescribeStream", &body)
            .unwrap();
        let shards = answer["StreamDescription"]["Shards"].as_array().unwrap();
        shards
            .iter()
            .map(|shard| shard["ShardId"].as_str().unwrap().to_owned())
            .collect()
    }

    /// An iterator from the beginning of a shard.
    pub fn trim_horizon(&mut self, shard: &str) -> String {
        let body = json!({
            "StreamArn": self.stream_arn,
            "ShardId": shard,
            "ShardIteratorType": "TRIM_HORIZON",
        });
        let answer = self
            .client
            .call("DynamoDBStreams_20120810.GetShardIterator", &body)
            .unwrap();
        answer["ShardIterator"].as_str().unwrap().to_owned()
    }

    /// The next records of a shard (none when nothing is new), and the iterator after them; `None`
    /// at the end of a closed shard.
    pub fn records(&mut self, iterator: &str) -> (Vec<Value>, Option<String>) {
        let body = json!({"ShardIterator": iterator});
        let mut answer = self
            .client
            .call("DynamoDBStreams_20120810.GetRecords", &body)
            .unwrap();
        let next = answer["NextShardIterator"].as_str().map(str::to_owned);
        match answer["Records"].take() {
            Value::Array(records) => (records, next),
            other => panic!("records are no list: {other}"),
        }
    }
}

/// Starts a server on a free port; `None` when it ended at once.
fn launch(program: &Path, environment: &[(&str, &str)]) -> Option<MiniStack> {
    let folder = tempfile::Builder::new()
        .prefix("dynalake-ministack-")
        .tempdir()
        .unwrap()
        .keep();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let log = File::create(folder.join("log")).unwrap();
    // The shell holds the reading end of a pipe whose writing end is ours: when this process has
    // gone, however it went, `read` returns and the server and its folder go too.
    let script = r#"folder=$1; shift; "$@" </dev/null & server=$!
        while kill -0 $server 2>/dev/null && read -r line; do :; done
        kill -9 $server; wait $server; rm -rf "$folder""#;
    let mut command = Command::new("sh");
    // Functions inherit the server's environment, and ours refuse variables that they do not know.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DYNALAKE_") {
            command.env_remove(name);
        }
    }
    let mut guard = command
        .args(["-c", script, "sh"])
        .arg(&folder)
        .arg(program)
        .env("GATEWAY_PORT", &port)
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
        .env("BIND_HOST", "127.0.0.1")
        .env("LOG_LEVEL", "WARNING")
        // An export is done when it is first looked at.
        .env("MINISTACK_DDB_EXPORT_COMPLETE_AFTER_SEC", "0")
        .env("TMPDIR", &folder)
        .envs(environment.iter().copied())
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("sh runs");
    let address = format!("127.0.0.1:{port}");
    for _ in 0..600 {
        if TcpStream::connect(&address).is_ok() {
            return Some(MiniStack {
                address,
                _guard: guard,
            });
        }
        if guard.try_wait().unwrap().is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let text = fs::read_to_string(folder.join("log")).unwrap_or_default();
    eprintln!("MiniStack did not start:\n{text}");
    drop(guard.stdin.take());
    drop(guard.wait());
    None
}
