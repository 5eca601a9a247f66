//! Views in Glue: made, changed and removed by the real function, and nothing else touched.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dynalake_pipeline::baseline::{self, BaselineKind, BaselineRecord};
use dynalake_schemas::{Catalog, views};
use dynalake_tests::{DynamoClient, LambdaError, LambdaProcess, ministack};
use serde_json::{Value, json};

use super::world::{EXPORT_TIME, LABEL, USER_TOML, World, refused, start};

/// Databases are told apart by name: the server is that of all tests of this process.
const DATABASE: &str = "shop_views";
const BUCKET: &str = "views-lake";

struct Glue {
    client: DynamoClient,
    endpoint: String,
}

impl Glue {
    fn call(&mut self, target: &str, body: &Value) -> Value {
        let answer = self.client.call(&format!("AWSGlue.{target}"), body);
        answer.unwrap_or_else(|error| panic!("{target}: {error:?}"))
    }

    fn tables(&mut self) -> BTreeMap<String, Value> {
        let tables = self.call("GetTables", &json!({"DatabaseName": DATABASE}));
        let tables = tables["TableList"].as_array().unwrap().iter();
        tables
            .map(|table| (table["Name"].as_str().unwrap().to_owned(), table.clone()))
            .collect()
    }

    fn function(&self, world: &World) -> LambdaProcess {
        let mut variables = world.variables("unused");
        for (name, value) in [
            ("DYNALAKE_LAKE", format!("s3://{BUCKET}").as_str()),
            ("DYNALAKE_DATABASE", DATABASE),
            ("DYNALAKE_S3_ENDPOINT", &self.endpoint),
            ("DYNALAKE_S3_PATH_STYLE", "true"),
            ("AWS_ENDPOINT_URL_GLUE", &self.endpoint),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("_HANDLER", "publish"),
        ] {
            variables.insert(name.to_owned(), value.to_owned());
        }
        start(&variables).unwrap_or_else(|error| panic!("no start:\n{}", error.text()))
    }
}

fn published(answer: Result<Value, LambdaError>) -> [Value; 5] {
    let answer = answer.unwrap();
    ["created", "updated", "deleted", "unchanged", "baseline"].map(|name| answer[name].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn views_follow_baseline_and_schemas_and_go_when_told() {
    let Some(server) = ministack() else { return };
    let world = World::new();
    let mut glue = Glue {
        client: server.client(),
        endpoint: format!("http://{}", server.address()),
    };
    let mut worker = glue.function(&world);
    let (kind, message) = refused(worker.invoke("{}"));
    assert_eq!(kind, "dynalake.Store", "{message}");
    let settings = super::cloud::settings(&glue.endpoint);
    super::cloud::make_bucket(&settings, BUCKET).await;
    let lake = super::cloud::bucket(&settings, BUCKET);
    let (kind, message) = refused(worker.invoke("{}"));
    assert_eq!(kind, "dynalake.Glue");
    assert!(
        message.contains(DATABASE) && message.contains("deploy the stack"),
        "{message}"
    );

    glue.call(
        "CreateDatabase",
        &json!({"DatabaseInput": {"Name": DATABASE}}),
    );
    // The template's table, and somebody's own view.
    for (name, kind) in [
        ("users_changes", "EXTERNAL_TABLE"),
        ("sales", "VIRTUAL_VIEW"),
    ] {
        let input = json!({"Name": name, "TableType": kind, "Parameters": {"presto_view": "true"}});
        glue.call(
            "CreateTable",
            &json!({"DatabaseName": DATABASE, "TableInput": input}),
        );
    }
    let names = json!([
        "users",
        "users_history",
        "users_flat",
        "unmatched",
        "unmatched_history",
        "unmatched_flat"
    ]);
    let none = json!([]);
    let first = published(worker.invoke("{}"));
    assert_eq!(
        first,
        [
            names.clone(),
            none.clone(),
            none.clone(),
            json!(0),
            Value::Null
        ]
    );

    // What Athena reads is what `dynalake sql` prints.
    let catalog = Catalog::load(&world.path("schemas")).unwrap();
    let staged = Catalog {
        database: DATABASE.to_owned(),
        ..catalog
    };
    let tables = glue.tables();
    for view in views::athena(&staged, None) {
        let table = &tables[&view.name];
        let text = table["ViewOriginalText"].as_str().unwrap();
        let text = text
            .trim_start_matches("/* Presto View: ")
            .trim_end_matches(" */");
        let decoded: Value = serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap();
        assert_eq!(decoded["originalSql"], view.query);
        assert_eq!(decoded["schema"], DATABASE);
        let columns = table["StorageDescriptor"]["Columns"].as_array().unwrap();
        assert_eq!(columns.len(), view.columns.len());
        for ((column, decoded), expected) in columns
            .iter()
            .zip(decoded["columns"].as_array().unwrap())
            .zip(&view.columns)
        {
            assert_eq!(
                (&column["Name"], &column["Type"]),
                (&json!(expected.name), &json!(expected.glue_type))
            );
            assert_eq!(decoded["name"], expected.name);
        }
        assert_eq!(table["PartitionKeys"], json!([]));
    }

    // The same again calls nothing; a view that somebody changed is made right.
    let versions = |tables: &BTreeMap<String, Value>| {
        let times = tables
            .iter()
            .map(|(name, table)| (name.clone(), table["VersionId"].clone()));
        times.collect::<Vec<_>>()
    };
    assert_eq!(
        published(worker.invoke("{}")),
        [
            none.clone(),
            none.clone(),
            none.clone(),
            json!(6),
            Value::Null
        ]
    );
    assert_eq!(versions(&glue.tables()), versions(&tables));
    let mut input = tables["users"].clone();
    input["ViewOriginalText"] = json!("/* Presto View: e30= */");
    glue.call(
        "UpdateTable",
        &json!({"DatabaseName": DATABASE, "TableInput": input}),
    );
    let repaired = published(worker.invoke("{}"));
    assert_eq!(repaired[1], json!(["users"]));

    // A baseline: current and flat views read it, history does not.
    let record = BaselineRecord {
        version: baseline::VERSION,
        label: LABEL.to_owned(),
        at_ms: EXPORT_TIME,
        kind: BaselineKind::FullExport,
        export_id: "0177-1".to_owned(),
        table_arn: "arn".to_owned(),
        schema_fingerprint: None,
        tables: BTreeMap::new(),
        committed_at_ms: 0,
    };
    baseline::commit(&lake, &record, "test").await.unwrap();
    let moved = published(worker.invoke("{}"));
    assert_eq!(moved[1], json!(["users", "unmatched"]));
    assert_eq!(moved[4], LABEL);

    // An entity that is gone takes its views along; what is not ours stays.
    std::fs::remove_file(world.path("schemas/user.toml")).unwrap();
    let other = USER_TOML.replace("\"users\"", "\"people\"");
    std::fs::write(world.path("schemas/user.toml"), other).unwrap();
    let renamed = published(glue.function(&world).invoke("{}"));
    assert_eq!(
        renamed[0],
        json!(["people", "people_history", "people_flat"])
    );
    assert_eq!(renamed[2], json!(["users", "users_flat", "users_history"]));

    // A table of somebody else with the name of a view is not overwritten.
    let foreign = USER_TOML.replace("\"users\"", "\"sales\"");
    std::fs::write(world.path("schemas/user.toml"), foreign).unwrap();
    let (kind, message) = refused(glue.function(&world).invoke("{}"));
    assert_eq!(kind, "dynalake.Glue");
    assert!(message.contains("`sales`"), "{message}");

    let removed = published(worker.invoke(r#"{"step":"publish","remove":true}"#));
    assert_eq!(removed[2].as_array().unwrap().len(), 6, "{removed:?}");
    let left: Vec<String> = glue.tables().into_keys().collect();
    assert_eq!(left, ["sales", "users_changes"]);
    let again = published(worker.invoke(r#"{"step":"publish","remove":true}"#));
    assert_eq!(again[2], none);
}
