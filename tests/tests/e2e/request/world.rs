//! A lake, schemas, and export files in a bucket.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use dynalake_export_job::export_writer::{ExportSpec, write_full_export, write_manifest};
use dynalake_export_job::manifest::{FILES_NAME, SUMMARY_NAME};
use dynalake_pipeline::store::{S3Options, Store};
use dynalake_tests::{S3Place, binary};
use serde_json::{Value, json};
use tempfile::TempDir;

/// ARN of the table, in the scripted DynamoDB.
pub const ARN: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/shop";

const LAKE_TOML: &str =
    "database = \"shop\"\n[source]\npartition_key = \"PK\"\nsort_key = \"SK\"\n";
const USER_TOML: &str = r#"
entity = "user"
table = "users"
version = 1
[match]
partition_key = "USER#{user_id}"
sort_key = "PROFILE"
[columns]
user_id = "string"
age = "int"
"#;

/// Milliseconds since 1970-01-01 UTC.
#[expect(
    clippy::disallowed_methods,
    reason = "the command under test reads the clock"
)]
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// A local lake and schemas.
pub struct World {
    pub folder: TempDir,
    dynamo: String,
    s3: Option<S3Place>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// It said all this on stderr.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {self:#?}");
        }
        self
    }
}

impl World {
    /// `dynamo`: endpoint of DynamoDB. `s3`: where exports go, if any is converted.
    pub fn new(dynamo: String, s3: Option<S3Place>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("schemas")).unwrap();
        std::fs::create_dir(folder.path().join("lake")).unwrap();
        std::fs::write(folder.path().join("schemas/lake.toml"), LAKE_TOML).unwrap();
        std::fs::write(folder.path().join("schemas/user.toml"), USER_TOML).unwrap();
        Self { folder, dynamo, s3 }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn lake(&self) -> Store {
        Store::local(self.path("lake"))
    }

    /// `export run` to this world's bucket and lake, with what is given.
    pub fn run_args(&self, arn: &str, more: &[&str]) -> Vec<String> {
        let (bucket, prefix) = match &self.s3 {
            Some(place) => (place.bucket, place.prefix.as_str()),
            None => ("exports", "nightly"),
        };
        let fixed = [
            "export",
            "run",
            "--table-arn",
            arn,
            "--bucket",
            bucket,
            "--prefix",
            prefix,
            "--lake",
            "lake",
            "--schemas",
            "schemas",
            "--poll-seconds",
            "0",
            "--path-style",
        ];
        let all = fixed.iter().chain(more);
        all.map(|text| (*text).to_owned()).collect()
    }

    pub fn command<T: AsRef<str>>(&self, args: &[T]) -> Command {
        let mut command = Command::new(binary("dynalake"));
        command
            .args(args.iter().map(AsRef::as_ref))
            .current_dir(self.folder.path())
            .env_clear()
            .envs(S3Place::aws_variables())
            .env("AWS_ENDPOINT_URL_DYNAMODB", &self.dynamo)
            .env("AWS_MAX_ATTEMPTS", "1")
            .env("USER", "tester")
            .stdin(Stdio::null());
        if let Some(place) = &self.s3 {
            command.env("AWS_ENDPOINT_URL_S3", &place.endpoint);
        }
        command
    }

    pub fn start<T: AsRef<str>>(&self, args: &[T]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub fn run<T: AsRef<str>>(&self, args: &[T]) -> Ran {
        ran(self.command(args).output().unwrap())
    }

    pub fn resume(&self, more: &[&str]) -> Ran {
        let fixed = [
            "export",
            "resume",
            "lake",
            "--schemas",
            "schemas",
            "--poll-seconds",
            "0",
            "--path-style",
        ];
        self.run(&[&fixed[..], more].concat())
    }

    /// The requests, as `export status` tells of them.
    pub fn status(&self) -> Vec<Value> {
        let ran = self.run(&["export", "status", "lake", "--format", "json"]);
        let mut status = ran.exits(0).json();
        match status["requests"].take() {
            Value::Array(requests) => requests,
            other => panic!("no list: {other}"),
        }
    }

    /// The labels of the committed baselines.
    pub async fn baselines(&self) -> Vec<String> {
        let baselines = dynalake_pipeline::baseline::list(&self.lake()).await;
        let records = baselines.unwrap().into_iter();
        records.map(|record| record.label).collect()
    }

    /// Commits an empty baseline of a table by hand.
    pub async fn baseline(&self, arn: &str, at_ms: i64) {
        let label = dynalake_pipeline::layout::export_label(at_ms).unwrap();
        let record = json!({
            "version": 1, "label": label, "at_ms": at_ms, "kind": "full_export",
            "export_id": format!("{at_ms:014}-0a1b2c3d"), "table_arn": arn,
            "tables": {}, "committed_at_ms": at_ms + 60_000,
        });
        let key = format!("state/baselines/{label}.json");
        let text = record.to_string().into_bytes();
        self.lake().put(&key, text.into()).await.unwrap();
    }
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Writes a full export of three users as DynamoDB would: under this ARN, at this time, below the
/// place's prefix. Blocks, and must not run on a runtime's thread.
pub fn write_export(place: &S3Place, export_arn: &str, at_ms: i64) {
    let (table_arn, id) = export_arn.split_once("/export/").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spec = ExportSpec {
        prefix: Some(place.prefix.clone()),
        data_files: 2,
        ..ExportSpec::new("shop", at_ms)
    };
    let items = (0..3).map(|n| {
        format!(r#"{{"PK":{{"S":"USER#u{n}"}},"SK":{{"S":"PROFILE"}},"age":{{"N":"{n}"}}}}"#)
    });
    let written = write_full_export(folder.path(), &spec, items).unwrap();
    for name in [SUMMARY_NAME, FILES_NAME] {
        let text = std::fs::read_to_string(written.join(name)).unwrap();
        let text = text.replace(ARN, table_arn).replace(&spec.export_id(), id);
        write_manifest(&written, name, text.as_bytes()).unwrap();
    }
    let (place, id) = (place.clone(), id.to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let from = Store::local(&written);
        let to = Store::s3(
            place.client(),
            place.bucket,
            &place.prefix,
            S3Options::default(),
        );
        for meta in from.list("").await.unwrap() {
            let body = from.get(&meta.key).await.unwrap().unwrap();
            let key = format!("AWSDynamoDB/{id}/{}", meta.key);
            to.put(&key, body).await.unwrap();
        }
    });
}
