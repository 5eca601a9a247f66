//! A stand-in for the cloud: MiniStack with buckets, the table, Glue, the zip of the real function, and the
//! workflow of `infra/export.asl.json`.

use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::types::CreateBucketConfiguration;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dynalake_pipeline::store::s3::client;
use dynalake_pipeline::store::{S3Options, S3Settings, Store};
use dynalake_tests::{DynamoClient, MiniStack, binary, repository};
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::world::World;

pub(super) const WORK: &str = "work-bucket";
pub(super) const LAKE: &str = "lake-bucket";
const ROLE: &str = "arn:aws:iam::000000000000:role/any";

/// Waits of the workflow take this part of their time.
const WAIT_SCALE: &str = "0.005";

pub(super) struct Cloud {
    server: MiniStack,
    machine: String,
}

/// How an execution ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: String,
    pub(super) error: String,
    pub(super) cause: String,
    pub(super) output: Value,
}

impl Cloud {
    /// A new cloud with the function and the workflow; `None` without MiniStack. `mocks`: answers of AWS
    /// that MiniStack has not, by test case and state ("Using mocked service integrations" of Step
    /// Functions Local).
    pub(super) async fn new(
        world: &World,
        variables: &[(&str, &str)],
        mocks: &Value,
    ) -> Option<Self> {
        let config = world.path("mocks.json");
        std::fs::write(&config, mocks.to_string()).unwrap();
        let server = MiniStack::with(&[
            ("SFN_WAIT_SCALE", WAIT_SCALE),
            ("SFN_MOCK_CONFIG", config.to_str().unwrap()),
            // Long enough for a test to put the files of an export there.
            ("MINISTACK_DDB_EXPORT_COMPLETE_AFTER_SEC", "5"),
        ])?;
        server.table("shop");
        let cloud = Self {
            server,
            machine: String::new(),
        };
        for bucket in [WORK, LAKE] {
            make_bucket(&settings(&cloud.endpoint()), bucket).await;
        }
        cloud.call(
            "AWSGlue.CreateDatabase",
            &json!({"DatabaseInput": {"Name": "shop"}}),
        );
        let function = cloud.function(world, variables);
        let definition = std::fs::read_to_string(repository().join("infra/export.asl.json"));
        let mut definition = definition.unwrap();
        for (name, value) in [
            ("ExportJobArn", function.as_str()),
            (
                "TableArn",
                "arn:aws:dynamodb:eu-west-1:000000000000:table/shop",
            ),
            ("WorkBucket", WORK),
            ("ExportPrefix", "exports"),
            ("KmsKeyArn", "arn:aws:kms:eu-west-1:000000000000:key/any"),
        ] {
            definition = definition.replace(&format!("${{{name}}}"), value);
        }
        assert!(!definition.contains("${"), "a placeholder is left");
        let machine = cloud.call(
            "AWSStepFunctions.CreateStateMachine",
            &json!({"name": "export", "definition": definition, "roleArn": ROLE}),
        );
        let machine = machine["stateMachineArn"].as_str().unwrap().to_owned();
        Some(Self { machine, ..cloud })
    }

    fn function(&self, world: &World, variables: &[(&str, &str)]) -> String {
        let endpoint = self.endpoint();
        let mut all: Value = json!({
            "DYNALAKE_LAKE": format!("s3://{LAKE}"),
            "DYNALAKE_WORK": format!("s3://{WORK}"),
            "DYNALAKE_SCHEMAS": world.path("schemas"),
            "DYNALAKE_S3_ENDPOINT": endpoint,
            "DYNALAKE_S3_PATH_STYLE": "true",
            "AWS_ENDPOINT_URL": endpoint,
            "TMPDIR": world.path("spool"),
        });
        for (name, value) in variables {
            all[*name] = json!(value);
        }
        self.client().create_function(&json!({
            "FunctionName": "export-job",
            "Runtime": "provided.al2023",
            "Handler": "export",
            "Role": ROLE,
            "Timeout": 120,
            "MemorySize": 2048,
            "Code": {"ZipFile": STANDARD.encode(zipped(world))},
            "Environment": {"Variables": all},
        }))
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    pub(super) fn bucket(&self, name: &str) -> Store {
        bucket(&settings(&self.endpoint()), name)
    }

    pub(super) fn client(&self) -> DynamoClient {
        self.server.client()
    }

    pub(super) fn call(&self, target: &str, body: &Value) -> Value {
        let answer = self.client().call(target, body);
        answer.unwrap_or_else(|error| panic!("{target}: {error:?}"))
    }

    /// Puts a folder's files into the work bucket.
    pub(super) async fn upload(&self, folder: &Path, key: &str) {
        let bucket = self.bucket(WORK);
        for (name, body) in super::world::objects(&Store::local(folder)).await {
            bucket
                .put(&format!("{key}/{name}"), body.into())
                .await
                .unwrap();
        }
    }

    /// Starts the workflow; `case` names the mocks that it gets.
    pub(super) fn start(&self, case: Option<&str>, input: &Value) -> String {
        let machine = match case {
            Some(case) => format!("{}#{case}", self.machine),
            None => self.machine.clone(),
        };
        let started = self.call(
            "AWSStepFunctions.StartExecution",
            &json!({"stateMachineArn": machine, "input": input.to_string()}),
        );
        started["executionArn"].as_str().unwrap().to_owned()
    }

    /// Waits for the end of an execution.
    pub(super) fn end(&self, execution: &str) -> Ended {
        for _ in 0..2_400 {
            let described = self.call(
                "AWSStepFunctions.DescribeExecution",
                &json!({"executionArn": execution}),
            );
            let text = |name: &str| described[name].as_str().unwrap_or_default().to_owned();
            if text("status") != "RUNNING" {
                return Ended {
                    status: text("status"),
                    error: text("error"),
                    cause: text("cause"),
                    output: serde_json::from_str(&text("output")).unwrap_or_default(),
                };
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("{execution} does not end: {}", self.history(execution));
    }

    /// Runs the workflow to its end.
    pub(super) fn run(&self, input: &Value) -> Ended {
        self.end(&self.start(None, input))
    }

    /// Everything that the workflow did.
    pub(super) fn history(&self, execution: &str) -> Value {
        self.call(
            "AWSStepFunctions.GetExecutionHistory",
            &json!({"executionArn": execution, "maxResults": 1000}),
        )
    }

    /// Waits for the next export that the workflow asks for, and gives its id.
    pub(super) fn export_asked_for(&self, known: usize) -> String {
        for _ in 0..1_200 {
            let exports = self.call("DynamoDB_20120810.ListExports", &json!({}));
            let exports = exports["ExportSummaries"].as_array().unwrap().clone();
            if let Some(export) = exports.get(known) {
                let arn = export["ExportArn"].as_str().unwrap();
                return arn.rsplit('/').next().unwrap().to_owned();
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("no export is asked for");
    }

    /// Names of the views of the database.
    pub(super) fn views(&self) -> Vec<String> {
        let tables = self.call("AWSGlue.GetTables", &json!({"DatabaseName": "shop"}));
        let tables = tables["TableList"].as_array().unwrap();
        let mut names: Vec<String> = tables
            .iter()
            .filter(|table| table["TableType"] == "VIRTUAL_VIEW")
            .map(|table| table["Name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

/// How MiniStack's S3 is reached.
pub(super) fn settings(endpoint: &str) -> S3Settings {
    let credentials = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
    S3Settings {
        region: "eu-west-1".to_owned(),
        endpoint: Some(endpoint.to_owned()),
        path_style: true,
        credentials: SharedCredentialsProvider::new(credentials),
    }
}

pub(super) async fn make_bucket(settings: &S3Settings, name: &str) {
    let region = CreateBucketConfiguration::builder()
        .location_constraint(settings.region.as_str().into())
        .build();
    let call = client(settings).create_bucket().bucket(name);
    let made = call.create_bucket_configuration(region).send().await;
    made.unwrap();
}

pub(super) fn bucket(settings: &S3Settings, name: &str) -> Store {
    Store::s3(client(settings), name, "", S3Options::default())
}

impl Ended {
    pub(super) fn succeeded(&self) -> &Value {
        assert_eq!(self.status, "SUCCEEDED", "{self:?}");
        &self.output
    }

    pub(super) fn failed(&self, error: &str, cause: &str) {
        assert_eq!(
            (self.status.as_str(), self.error.as_str()),
            ("FAILED", error),
            "{self:?}"
        );
        assert!(self.cause.contains(cause), "{self:?}");
    }
}

/// The function's zip, as a release has it, but for the optimizer.
fn zipped(world: &World) -> Vec<u8> {
    let stripped = world.path("bootstrap");
    let mut strip = Command::new("strip");
    let strip = strip
        .arg("-o")
        .arg(&stripped)
        .arg(binary("export-job"))
        .status();
    let bytes = match strip {
        Ok(status) if status.success() => std::fs::read(&stripped),
        // Without binutils the zip is larger, that is all.
        _ => std::fs::read(binary("export-job")),
    };
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .compression_level(Some(1))
        .unix_permissions(0o755);
    zip.start_file("bootstrap", options).unwrap();
    zip.write_all(&bytes.unwrap()).unwrap();
    zip.finish().unwrap().into_inner()
}
