//! A lake in S3 behind a proxy, the function that writes it, and a look at what came out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use dynalake_tests::{
    FaultProxy, InitError, LambdaError, LambdaProcess, S3Place, binary, duckdb, duckdb_available,
    repository, seaweed,
};
use serde_json::{Value, json};

/// Secret of the `hmac_sha256` columns; must appear nowhere.
pub const SECRET: &str = "a-secret-of-the-deployment-0123456789";

/// A lake of its own in the shared server.
pub struct World {
    /// Straight to the server.
    pub place: S3Place,
    /// What the function talks to.
    pub proxy: FaultProxy,
}

/// All objects of a lake by key.
pub type Objects = BTreeMap<String, Bytes>;

impl World {
    /// A new lake; `None` where a part is missing.
    pub fn new(name: &str) -> Option<Self> {
        let server = seaweed()?;
        duckdb_available().then(|| Self {
            place: server.place(name),
            proxy: FaultProxy::start(server.address()),
        })
    }

    /// Folder of the schemas of these tests.
    pub fn schemas() -> PathBuf {
        repository().join("tests/fixtures/schemas/shop")
    }

    /// The variables of a healthy deployment.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let mut variables: BTreeMap<String, String> = S3Place::aws_variables()
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        for (name, value) in [
            ("DYNALAKE_LAKE", self.place.uri()),
            ("DYNALAKE_SCHEMAS", Self::schemas().display().to_string()),
            ("DYNALAKE_S3_ENDPOINT", self.proxy.endpoint()),
            ("DYNALAKE_S3_PATH_STYLE", "true".to_owned()),
            ("DYNALAKE_HMAC_KEY", SECRET.to_owned()),
        ] {
            variables.insert(name.to_owned(), value);
        }
        variables
    }

    /// Starts the function.
    pub fn start(&self) -> LambdaProcess {
        start(&self.variables()).unwrap_or_else(|error| panic!("no start:\n{}", error.text()))
    }

    /// Everything in the lake now.
    pub async fn objects(&self) -> Objects {
        let store = self.place.store();
        let mut objects = Objects::new();
        for meta in store.list("").await.unwrap() {
            let body = store.get(&meta.key).await.unwrap().unwrap();
            objects.insert(meta.key, body);
        }
        objects
    }

    /// Removes everything from the lake.
    pub async fn clear(&self) {
        let store = self.place.store();
        for meta in store.list("").await.unwrap() {
            store.delete(&meta.key).await.unwrap();
        }
    }
}

/// Starts the function with exactly these variables.
pub fn start(variables: &BTreeMap<String, String>) -> Result<LambdaProcess, InitError> {
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    LambdaProcess::start(&binary("stream"), &variables)
}

/// The answer to a batch that is done: no partial failure, ever.
pub fn assert_done(answer: Result<Value, LambdaError>) {
    assert_eq!(answer.unwrap(), json!({"batchItemFailures": []}));
}

/// Type and message of the error that the function answered with.
pub fn failure(answer: Result<Value, LambdaError>) -> (String, String) {
    match answer {
        Err(LambdaError::Function {
            error_type,
            message,
        }) => (error_type, message),
        other => panic!("the function did not answer with an error: {other:?}"),
    }
}

/// Rows of a query over the change objects of a table, which it calls `changes`.
pub fn query(objects: &Objects, table: &str, sql: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut any = false;
    for (key, body) in objects {
        if key.starts_with(&format!("changes/{table}/")) {
            any = true;
            let path = folder.path().join(key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, body).unwrap();
        }
    }
    if !any {
        return vec![];
    }
    let files = folder
        .path()
        .join("changes")
        .join(table)
        .join("*/*.parquet");
    duckdb(&format!(
        "WITH changes AS (SELECT * FROM read_parquet('{}', hive_partitioning = true, \
         hive_types = {{'dt': date}})) {sql}",
        files.display()
    ))
}

/// The lines of all quarantine objects.
pub fn quarantined(objects: &Objects) -> Vec<Value> {
    objects
        .iter()
        .filter(|(key, _)| key.starts_with("quarantine/"))
        .flat_map(|(_, body)| {
            body.split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        })
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(&line).unwrap())
        .collect()
}

/// The tables that have change objects.
pub fn tables(objects: &Objects) -> Vec<String> {
    let mut tables: Vec<String> = objects
        .keys()
        .filter_map(|key| {
            key.strip_prefix("changes/")?
                .split('/')
                .next()
                .map(str::to_owned)
        })
        .collect();
    tables.dedup();
    tables
}
