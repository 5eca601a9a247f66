//! An export, its schemas, and the real binary as a function that converts it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dynalake_export_job::export_writer::{ExportSpec, write_full_export};
use dynalake_pipeline::store::Store;
use dynalake_tests::{LambdaError, LambdaProcess, binary};
use serde_json::{Value, json};
use tempfile::TempDir;

/// 2026-11-18T06:26:40Z.
pub(super) const EXPORT_TIME: i64 = 1_794_983_200_000;
pub(super) const LABEL: &str = "20261118T062640Z";

pub(super) const LAKE_TOML: &str = r#"
database = "shop"
[source]
table = "shop"
partition_key = "PK"
sort_key = "SK"
"#;

pub(super) const USER_TOML: &str = r#"
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

/// Every object by key.
pub(super) type Objects = BTreeMap<String, Vec<u8>>;

/// A folder with schemas, a bucket of exports, and lakes.
pub(super) struct World {
    folder: TempDir,
}

pub(super) fn user(n: u32, note: &str) -> String {
    format!(
        r#"{{"PK":{{"S":"USER#u{n}"}},"SK":{{"S":"PROFILE"}},"age":{{"N":"{}"}},"note":{{"S":"{note}{n}"}}}}"#,
        n % 90
    )
}

/// Users, an item of no entity, and one that is none.
pub(super) fn items(users: u32) -> Vec<String> {
    let mut items: Vec<String> = (0..users).map(|n| user(n, "名")).collect();
    items.push(r#"{"PK":{"S":"COUNTER"},"SK":{"S":"1"},"n":{"N":"1e3"}}"#.to_owned());
    items.push(r#"{"PK":{"S":"USER#x"},"SK":{"S":"PROFILE"},"age":{"N":"NaN"}}"#.to_owned());
    items
}

pub(super) fn spec(data_files: usize) -> ExportSpec {
    ExportSpec {
        prefix: Some("exports".to_owned()),
        data_files,
        ..ExportSpec::new("shop", EXPORT_TIME)
    }
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = Self { folder };
        for name in ["schemas", "bucket", "spool"] {
            std::fs::create_dir(world.path(name)).unwrap();
        }
        std::fs::write(world.path("schemas/lake.toml"), LAKE_TOML).unwrap();
        std::fs::write(world.path("schemas/user.toml"), USER_TOML).unwrap();
        world
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a full export, and gives its folder.
    pub(super) fn export(&self, data_files: usize, users: u32) -> PathBuf {
        write_full_export(&self.path("bucket"), &spec(data_files), items(users)).unwrap()
    }

    /// The variables of a healthy deployment whose lake is a folder.
    pub(super) fn variables(&self, lake: &str) -> BTreeMap<String, String> {
        let path = |name: &str| self.path(name).display().to_string();
        [
            ("DYNALAKE_LAKE", path(lake)),
            ("DYNALAKE_WORK", path("work")),
            ("DYNALAKE_SCHEMAS", path("schemas")),
            ("TMPDIR", path("spool")),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "2048".to_owned()),
            ("_HANDLER", "export".to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// The function, with these variables besides.
    pub(super) fn start(&self, lake: &str, more: &[(&str, &str)]) -> Worker {
        let mut variables = self.variables(lake);
        for (name, value) in more {
            variables.insert((*name).to_owned(), (*value).to_owned());
        }
        Worker(start(&variables).unwrap_or_else(|error| panic!("no start:\n{}", error.text())))
    }

    /// Every object of a lake.
    pub(super) async fn objects(&self, lake: &str) -> Objects {
        objects(&Store::local(self.path(lake))).await
    }

    /// What `dynalake export convert` makes of exports.
    pub(super) async fn converted_locally(&self, lake: &str, exports: &[&Path]) -> Objects {
        let output = Command::new(binary("dynalake"))
            .args(["export", "convert"])
            .args(exports)
            .arg("--lake")
            .arg(self.path(lake))
            .arg("--schemas")
            .arg(self.path("schemas"))
            .args(["--workers", "2", "--format", "json"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        self.objects(lake).await
    }

    /// Files left in the function's folder, those of a process that lives included.
    pub(super) fn spooled(&self) -> usize {
        let mut left = 0;
        let mut folders = vec![self.path("spool")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    left += 1;
                }
            }
        }
        left
    }
}

pub(super) fn start(
    variables: &BTreeMap<String, String>,
) -> Result<LambdaProcess, dynalake_tests::InitError> {
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    LambdaProcess::start(&binary("export-job"), &variables)
}

/// Every object of a store.
pub(super) async fn objects(store: &Store) -> Objects {
    let mut objects = Objects::new();
    for meta in store.list("").await.unwrap() {
        let body = store.get(&meta.key).await.unwrap().unwrap();
        objects.insert(meta.key, body.to_vec());
    }
    objects
}

/// The objects without what depends on the run: sizes of the plan, and the time of the commit.
pub(super) fn comparable(mut objects: Objects) -> Objects {
    for (key, body) in &mut objects {
        let removed: &[&str] = if key.ends_with("/plan.json") {
            &["row_group_bytes", "object_bytes", "part_bytes"]
        } else if key.starts_with("state/baselines/") {
            &["committed_at_ms"]
        } else {
            continue;
        };
        let mut value: Value = serde_json::from_slice(body).unwrap();
        for name in removed {
            value.as_object_mut().unwrap().remove(*name);
        }
        *body = serde_json::to_vec(&value).unwrap();
    }
    objects
}

/// Keys that one has and the other has not, or not the same; nothing where both are the same.
pub(super) fn difference(one: &Objects, other: &Objects) -> Vec<String> {
    let keys = one.keys().chain(other.keys());
    let mut keys: Vec<String> = keys
        .filter(|key| one.get(*key) != other.get(*key))
        .cloned()
        .collect();
    keys.dedup();
    keys
}

/// A running function.
pub(super) struct Worker(pub(super) LambdaProcess);

impl Worker {
    /// Calls a step that succeeds.
    pub(super) fn call(&mut self, event: &Value) -> Value {
        self.0
            .invoke(event.to_string())
            .unwrap_or_else(|error| panic!("{event}: {error:?}\n{}", self.0.log().join("\n")))
    }

    /// Calls a step that fails, and gives type and message of its error.
    pub(super) fn fail(&mut self, event: &Value) -> (String, String) {
        refused(self.0.invoke(event.to_string()))
    }

    /// Plans exports, and gives answer and work list.
    pub(super) fn plan(&mut self, exports: &[&Path]) -> (Value, Vec<Value>) {
        let plan = self.call(&json!({"step": "plan", "exports": exports, "run": "r1"}));
        let list = std::fs::read_to_string(plan["work"]["path"].as_str().unwrap()).unwrap();
        let lines = list.lines().map(|line| serde_json::from_str(line).unwrap());
        (plan, lines.collect())
    }

    /// Converts a line until nothing of it is left; gives the number of calls.
    pub(super) fn convert(&mut self, line: &Value) -> usize {
        let mut line = line.clone();
        for calls in 1.. {
            let mut answer = self.call(&json!({"step": "convert", "line": line}));
            match answer["next"].take() {
                Value::Null => return calls,
                next => line = next,
            }
        }
        unreachable!()
    }

    pub(super) fn commit(&mut self, exports: &[&Path]) -> Value {
        self.call(&json!({"step": "commit", "exports": exports, "run": "r1"}))
    }
}

/// Type and message of an error.
pub(super) fn refused(answer: Result<Value, LambdaError>) -> (String, String) {
    match answer {
        Err(LambdaError::Function {
            error_type,
            message,
        }) => (error_type, message),
        other => panic!("no error: {other:?}"),
    }
}
