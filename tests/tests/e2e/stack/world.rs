//! A stack, the table that feeds it, and the command against both.

use std::process::{Command, Stdio};

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use dynalake_pipeline::store::{S3Options, S3Settings, Store, s3};
use dynalake_tests::{DynamoTable, MiniStack, S3Place, binary, ministack};
use serde_json::json;

use crate::request::{Ran, ran};

const TEMPLATE: &str = include_str!("template.json");

/// A stack of its own name.
pub struct World {
    pub server: &'static MiniStack,
    pub stack: String,
    pub table: DynamoTable,
    description: String,
}

impl World {
    /// Deploys a stack; `None` without MiniStack. `name` is the table's name, too.
    pub fn deploy(name: &str) -> Option<Self> {
        let server = ministack()?;
        let table = server.table(name);
        let stack = format!("{name}-lake");
        let template = TEMPLATE.replace("TABLE", name);
        server.query(
            "cloudformation",
            &[
                ("Action", "CreateStack"),
                ("StackName", &stack),
                ("TemplateBody", &template),
                ("Capabilities.member.1", "CAPABILITY_IAM"),
                ("Parameters.member.1.ParameterKey", "StreamArn"),
                ("Parameters.member.1.ParameterValue", table.stream_arn()),
            ],
        );
        let description = loop {
            let action = [("Action", "DescribeStacks"), ("StackName", stack.as_str())];
            let description = server.query("cloudformation", &action);
            if !description.contains("IN_PROGRESS") {
                break description;
            }
            std::thread::yield_now();
        };
        assert!(description.contains("CREATE_COMPLETE"), "{description}");
        Some(Self {
            server,
            stack,
            table,
            description,
        })
    }

    /// An output of the stack.
    pub fn output(&self, name: &str) -> String {
        let after = |text: &str, mark: &str| text.split_once(mark).unwrap().1.to_owned();
        let rest = after(&self.description, &format!("<OutputKey>{name}</OutputKey>"));
        let value = after(&rest, "<OutputValue>");
        value.split_once('<').unwrap().0.to_owned()
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    pub fn command<T: AsRef<str>>(&self, args: &[T]) -> Command {
        let mut command = Command::new(binary("dynalake"));
        command
            .args(args.iter().map(AsRef::as_ref))
            .args(["--stack", &self.stack])
            .env_clear()
            .envs(S3Place::aws_variables())
            .env("AWS_REGION", "eu-west-1")
            .env("DYNALAKE_HMAC_KEY", "a secret of the tests")
            .env("AWS_ENDPOINT_URL", self.endpoint())
            .stdin(Stdio::null());
        command
    }

    pub fn run<T: AsRef<str>>(&self, args: &[T]) -> Ran {
        ran(self.command(args).output().unwrap())
    }

    /// Lets the workflow go on.
    pub fn open_gate(&mut self) {
        let gate = json!({"PK": {"S": "gate"}, "SK": {"S": "open"}});
        self.table.put(&gate).unwrap();
    }

    /// The bucket whose name is an output.
    pub fn bucket(&self, bucket: &str) -> Store {
        let [(_, key), (_, secret), _] = S3Place::aws_variables();
        let credentials = Credentials::new(key, secret, None, None, "test");
        let client = s3::client(&S3Settings {
            region: "eu-west-1".to_owned(),
            endpoint: Some(self.endpoint()),
            path_style: true,
            credentials: SharedCredentialsProvider::new(credentials),
        });
        Store::s3(client, bucket, "", S3Options::default())
    }

    pub fn lake(&self) -> Store {
        let uri = self.output("LakeUri");
        self.bucket(uri.strip_prefix("s3://").unwrap())
    }

    pub fn work(&self) -> Store {
        self.bucket(&self.output("WorkBucketName"))
    }
}
