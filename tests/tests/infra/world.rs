//! `infra/deploy.sh` on MiniStack, with the real command and the real functions.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use dynalake_pipeline::store::s3::client;
use dynalake_pipeline::store::{S3Options, S3Settings, Store};
use dynalake_tests::{DynamoClient, MiniStack, binary, ministack, python, repository};
use serde_json::{Value, json};
use tempfile::TempDir;

const REGION: &str = "eu-west-1";
const KEY: &str = "AKIDEXAMPLE";
const SECRET: &str = "secret";

/// The real command; its zips and its template are then made such as MiniStack can use.
const WRAPPER: &str = r#"#!/bin/sh
set -e
"@REAL@" "$@"
for last in "$@"; do :; done
case $1 in
  bundle)
    for zip in "$last"/schemas-*.zip; do
      "@PYTHON@" -m zipfile -e "$zip" "@LAYERS@/dynalake/$(basename "$zip")"
    done ;;
  template)
    mv "$last" "$last.real"
    cd "@SCRIPTS@"
    "@PYTHON@" -m stack ministack "@ENDPOINT@" "@LAYERS@" <"$last.real" >"$last" ;;
esac
"#;

/// A place to deploy from, and MiniStack to deploy to.
pub(crate) struct World {
    server: &'static MiniStack,
    folder: TempDir,
}

/// What a deployment said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl World {
    /// A new place; `None` where a part is missing.
    pub(crate) fn new() -> Option<Self> {
        let (server, python) = (ministack()?, python()?);
        let world = Self {
            server,
            folder: tempfile::tempdir().unwrap(),
        };
        let text = WRAPPER
            .replace("@REAL@", binary("dynalake").to_str().unwrap())
            .replace("@PYTHON@", python.to_str().unwrap())
            .replace("@LAYERS@", world.path("layers").to_str().unwrap())
            .replace("@SCRIPTS@", repository().join("tests/py").to_str().unwrap())
            .replace("@ENDPOINT@", &world.endpoint());
        let wrapper = world.path("dynalake");
        fs::write(&wrapper, text).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(world.path("artifacts")).unwrap();
        for name in ["stream", "export-job"] {
            symlink(binary(name), world.path("artifacts").join(name)).unwrap();
        }
        Some(world)
    }

    /// A path in the world's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A client of MiniStack's services that speak JSON.
    pub(crate) fn client(&self) -> DynamoClient {
        self.server.client()
    }

    /// Runs `infra/deploy.sh` with these arguments, besides the artifacts.
    pub(crate) fn deploy(&self, arguments: &[&str]) -> Said {
        let script = repository().join("infra/deploy.sh");
        let mut command = Command::new(script);
        command
            .args(arguments)
            .arg("--artifacts")
            .arg(self.path("artifacts"))
            .env("DYNALAKE", self.path("dynalake"));
        self.aws(&mut command)
    }

    /// Runs a command that uses the AWS CLI.
    pub(crate) fn aws(&self, command: &mut Command) -> Said {
        let python = python().unwrap();
        let tools = python.parent().unwrap().to_str().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let path = path.to_str().unwrap();
        let output = command
            .env("PATH", format!("{tools}:{path}"))
            .env("AWS_ENDPOINT_URL", self.endpoint())
            .env("AWS_ACCESS_KEY_ID", KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("AWS_REGION", REGION)
            .env("AWS_DEFAULT_REGION", REGION)
            .env("AWS_CONFIG_FILE", "/dev/null")
            .output()
            .expect("the script runs");
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// A copy of the example's schemas that a test may change.
    pub(crate) fn schemas(&self) -> PathBuf {
        let copy = self.path("schemas");
        fs::create_dir(&copy).unwrap();
        for entry in fs::read_dir(repository().join("schemas/ecommerce")).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
        }
        copy
    }

    /// A bucket as a store.
    pub(crate) fn store(&self, bucket: &str) -> Store {
        let credentials = Credentials::new(KEY, SECRET, None, None, "test");
        let settings = S3Settings {
            region: REGION.to_owned(),
            endpoint: Some(self.endpoint()),
            path_style: true,
            credentials: SharedCredentialsProvider::new(credentials),
        };
        Store::s3(client(&settings), bucket, "", S3Options::default())
    }

    /// Runs a query in Athena's API, and gives its rows without the header.
    pub(crate) fn query(&self, workgroup: &str, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let mut client = self.client();
        let mut call = |operation: &str, body: Value| {
            client
                .call(&format!("AmazonAthena.{operation}"), &body)
                .map_err(|error| error.message)
        };
        let started = call(
            "StartQueryExecution",
            json!({"QueryString": sql, "WorkGroup": workgroup}),
        )?;
        let id = started["QueryExecutionId"].clone();
        until("the query ends", || {
            let answer = call("GetQueryExecution", json!({"QueryExecutionId": id})).unwrap();
            let status = answer["QueryExecution"]["Status"].clone();
            match status["State"].as_str().unwrap() {
                "SUCCEEDED" => Some(Ok(())),
                "FAILED" | "CANCELLED" => Some(Err(status["StateChangeReason"].to_string())),
                _ => None,
            }
        })?;
        let answer = call("GetQueryResults", json!({"QueryExecutionId": id}))?;
        let rows = answer["ResultSet"]["Rows"].as_array().unwrap().clone();
        let text = |cell: &Value| cell["VarCharValue"].as_str().unwrap_or("").to_owned();
        Ok(rows
            .iter()
            .skip(1)
            .map(|row| row["Data"].as_array().unwrap().iter().map(text).collect())
            .collect())
    }
}

impl Said {
    /// What was said, with this exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }
}

/// Asks again and again, for two minutes at most.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_mins(2) {
        if let Some(answer) = ask() {
            return answer;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("it takes too long until {what}");
}

/// The only line that a file has with this beginning, replaced.
pub(crate) fn replace_line(file: &Path, beginning: &str, with: &str) {
    let text = fs::read_to_string(file).unwrap();
    let mut found = 0;
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            if line.starts_with(beginning) {
                found += 1;
                with.to_owned()
            } else {
                line.to_owned()
            }
        })
        .collect();
    assert_eq!(found, 1, "{beginning} in {}", file.display());
    fs::write(file, lines.join("\n") + "\n").unwrap();
}
