use std::collections::BTreeMap;

use super::*;
use crate::baseline::{BaselineKind, BaselineRecord, VERSION as RECORD_VERSION, commit};
use crate::layout::export_label;

const LAKE: &str = "database = \"shop\"\n[source]\npartition_key = \"PK\"\n";
const USER: &str = "# Users.\nentity = \"user\"\ntable = \"users\"\nversion = 1\n[match]\n\
    partition_key = \"USER#{user_id}\"\n[columns]\nuser_id = \"string\"\n";

fn catalog(user: &str) -> Catalog {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lake.toml"), LAKE).unwrap();
    std::fs::write(folder.path().join("user.toml"), user).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "not a schema").unwrap();
    dynalake_schemas::lock(folder.path()).unwrap();
    Catalog::load(folder.path()).unwrap()
}

async fn committed(store: &Store, at_ms: i64, fingerprint: Option<&str>) {
    let record = BaselineRecord {
        version: RECORD_VERSION,
        label: export_label(at_ms).unwrap(),
        at_ms,
        kind: BaselineKind::FullExport,
        export_id: format!("{at_ms:014}-0a1b2c3d"),
        table_arn: "arn:aws:dynamodb:eu-west-1:123456789012:table/shop".to_owned(),
        schema_fingerprint: fingerprint.map(str::to_owned),
        tables: BTreeMap::new(),
        committed_at_ms: at_ms,
    };
    commit(store, &record, "me@here").await.unwrap();
}

#[tokio::test]
async fn a_lake_gives_back_the_schemas_of_its_current_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path());
    assert!(matches!(
        current(&store).await,
        Err(KeptSchemasError::NoBaseline)
    ));
    let first = catalog(USER);
    keep(&store, "f1", &first).await.unwrap();
    let written = store.get(&key("f1")).await.unwrap().unwrap();
    // With other comments, by another converter at the same time: what is there stays.
    keep(&store, "f1", &catalog(&USER.replace("# Users.", "#")))
        .await
        .unwrap();
    assert_eq!(store.get(&key("f1")).await.unwrap().unwrap(), written);
    assert!(!String::from_utf8_lossy(&written).contains("not a schema"));

    committed(&store, 1_000, Some("f1")).await;
    let kept = current(&store).await.unwrap();
    assert_eq!(kept.label, "19700101T000001Z");
    // Field ids of the lock and everything else, as it was read from the folder.
    assert_eq!(kept.catalog, first);

    let second = catalog(&format!("{USER}name = \"string\"\n"));
    keep(&store, "f2", &second).await.unwrap();
    // Kept, but not committed with.
    assert_eq!(current(&store).await.unwrap().catalog, first);
    let label = "19700101T000002Z";
    assert!(of_export(&store, label).await.is_err());
    for (key, text) in [
        (
            format!("state/export-seconds/{label}.json"),
            r#"{"export_id":"e"}"#,
        ),
        (
            "state/exports/e/plan.json".to_owned(),
            r#"{"catalog":"f2"}"#,
        ),
    ] {
        store.put(&key, text.into()).await.unwrap();
    }
    assert_eq!(of_export(&store, label).await.unwrap().catalog, second);
    committed(&store, 2_000, Some("f2")).await;
    assert_eq!(current(&store).await.unwrap().catalog, second);
    // A stage's own database, which no file tells.
    let staged = Catalog {
        database: "shop_test".to_owned(),
        ..second
    };
    keep(&store, "f2", &staged).await.unwrap();
    assert_eq!(current(&store).await.unwrap().catalog, staged);
}

#[tokio::test]
async fn what_a_lake_cannot_give_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path());
    for (at_ms, fingerprint) in [(1_000, None), (2_000, Some("gone"))] {
        committed(&store, at_ms, fingerprint).await;
        let error = current(&store).await.unwrap_err();
        assert!(matches!(error, KeptSchemasError::NotKept { .. }), "{error}");
    }
    committed(&store, 3_000, Some("bad")).await;
    let refused = r#"{"version":1,"database":"d","files":{"lake.toml":"database = 5"}}"#;
    for (text, part) in [
        ("{}", "is not readable: missing field"),
        (
            r#"{"version":2,"database":"d","files":{}}"#,
            "it has form 2",
        ),
        (refused, "schemas of the lake/lake.toml:1: error:"),
    ] {
        store
            .put(&key("bad"), text.as_bytes().to_vec().into())
            .await
            .unwrap();
        let error = current(&store).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
