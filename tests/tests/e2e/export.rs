//! Full exports: from a bucket into a bucket, with failing puts, and killed by signal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use dynalake_export_job::export_writer::{ExportSpec, write_full_export};
use dynalake_export_job::format::DataFormat;
use dynalake_export_job::{
    ConvertOptions, ConvertReport, ExportError, NoProgress, Source, convert,
};
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::store::{S3Options, Store};
use dynalake_schemas::Catalog;
use dynalake_tests::{Action, FaultProxy, S3Place, binary, duckdb, duckdb_available, seaweed};
use tempfile::TempDir;

const LAKE_TOML: &str = r#"
database = "shop"
[source]
table = "shop"
partition_key = "PK"
sort_key = "SK"
"#;

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

/// An export of users and a few items of no entity, its schemas, and room for lakes.
struct Bench {
    folder: TempDir,
    spec: ExportSpec,
    export: PathBuf,
}

impl Bench {
    fn new(prefix: &str, users: u32) -> Self {
        Self::in_format(prefix, users, DataFormat::Json)
    }

    fn in_format(prefix: &str, users: u32, format: DataFormat) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let schemas = folder.path().join("schemas");
        for name in ["schemas", "spool"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(schemas.join("lake.toml"), LAKE_TOML).unwrap();
        std::fs::write(schemas.join("user.toml"), USER_TOML).unwrap();
        let spec = ExportSpec {
            prefix: Some(prefix.to_owned()),
            format,
            data_files: 5,
            ..ExportSpec::new("shop", 1_794_983_200_000)
        };
        let mut items: Vec<String> = (0..users)
            .map(|n| {
                format!(
                    r#"{{"PK":{{"S":"USER#u{n}"}},"SK":{{"S":"PROFILE"}},"age":{{"N":"{}"}},"note":{{"S":"名{n}"}}}}"#,
                    n % 90
                )
            })
            .collect();
        items.push(r#"{"PK":{"S":"COUNTER"},"SK":{"S":"1"},"n":{"N":"1e3"}}"#.to_owned());
        items.push(r#"{"PK":{"S":"USER#x"},"SK":{"S":"PROFILE"},"age":{"N":"NaN"}}"#.to_owned());
        let export = write_full_export(&folder.path().join("bucket"), &spec, &items).unwrap();
        Self {
            folder,
            spec,
            export,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn convert(&self, source: &Source, lake: &Store) -> Result<ConvertReport, ExportError> {
        let catalog = Arc::new(Catalog::load(&self.path("schemas")).unwrap());
        let options = ConvertOptions {
            workers: std::num::NonZeroUsize::new(2),
            spool: Some(self.path("spool")),
            ..ConvertOptions::default()
        };
        let progress = Arc::new(NoProgress);
        convert(
            source,
            lake,
            catalog,
            &Secrets::default(),
            &options,
            progress,
        )
        .await
    }

    /// The lake that an undisturbed conversion on local folders makes.
    async fn expected(&self) -> BTreeMap<String, Vec<u8>> {
        let lake = Store::local(self.path("expected"));
        let source = Source::local(&self.export).unwrap();
        self.convert(&source, &lake).await.unwrap();
        objects(&lake).await
    }

    fn start(&self, lake: &Path) -> Child {
        Command::new(binary("dynalake"))
            .args(["export", "convert"])
            .arg(&self.export)
            .arg("--lake")
            .arg(lake)
            .arg("--schemas")
            .arg(self.path("schemas"))
            .arg("--spool")
            .arg(self.path("spool"))
            .args(["--workers", "2", "--format", "json", "--no-commit"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Every object of a store.
async fn objects(store: &Store) -> BTreeMap<String, Vec<u8>> {
    let mut objects = BTreeMap::new();
    for meta in store.list("").await.unwrap() {
        let body = store.get(&meta.key).await.unwrap().unwrap();
        objects.insert(meta.key, body.to_vec());
    }
    objects
}

/// The export as objects of a bucket, and the bucket as a source.
async fn upload(bench: &Bench, place: &S3Place) -> Source {
    let bucket = Store::s3(place.client(), place.bucket, "", S3Options::default());
    let local = Store::local(bench.path("bucket"));
    for (key, body) in objects(&local).await {
        bucket.put(&key, body.into()).await.unwrap();
    }
    Source::in_store(bucket, &format!("{}/", bench.spec.folder_key()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_in_a_bucket_becomes_the_same_lake_as_on_local_folders() {
    let Some(server) = seaweed() else { return };
    let (from, to) = (server.place("export"), server.place("export-lake"));
    let bench = Bench::new(&from.prefix, 500);
    let expected = bench.expected().await;
    let source = upload(&bench, &from).await;
    let lake = to.store();
    let report = bench.convert(&source, &lake).await.unwrap();
    assert_eq!((report.items, report.quarantined), (502, 1));
    assert!(objects(&lake).await == expected);
    let again = bench.convert(&source, &lake).await.unwrap();
    assert_eq!((again.files.converted, again.files.resumed), (0, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_in_ion_becomes_the_same_objects_as_one_in_json() {
    let Some(server) = seaweed() else { return };
    let (from, to) = (server.place("ion"), server.place("ion-lake"));
    let mut expected = Bench::new("shop", 500).expected().await;
    let bench = Bench::in_format(&from.prefix, 500, DataFormat::Ion);
    let source = upload(&bench, &from).await;
    let report = bench.convert(&source, &to.store()).await.unwrap();
    assert_eq!((report.items, report.quarantined), (502, 1));
    let mut found = objects(&to.store()).await;
    for lake in [&mut expected, &mut found] {
        lake.retain(|key, _| key.starts_with("snapshot/"));
    }
    assert_eq!(expected.len(), 6);
    assert!(expected == found);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_put_may_fail_and_the_next_run_makes_it_good() {
    let Some(server) = seaweed() else { return };
    let bench = Bench::new("shop", 40);
    let expected = bench.expected().await;
    let source = Source::local(&bench.export).unwrap();
    for n in 0..expected.len() {
        let proxy = FaultProxy::start(server.address());
        let place = server.place("export-faults").through(proxy.endpoint());
        let lake = place.store();
        proxy.fail_put(n, Action::Deny);
        let error = bench.convert(&source, &lake).await.unwrap_err();
        assert!(matches!(error, ExportError::Store(_)), "put {n}: {error}");
        let complete = "complete.json";
        let stored = objects(&lake).await;
        assert!(
            stored.keys().all(|key| !key.ends_with(complete)),
            "put {n}: {error}"
        );
        proxy.heal();
        bench.convert(&source, &lake).await.unwrap();
        assert!(objects(&lake).await == expected, "put {n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_point_and_started_again_the_result_is_identical() {
    let bench = Bench::new("shop", 6_000);
    let expected = bench.expected().await;
    let mut killed = 0;
    for n in 1..expected.len() {
        let lake = bench.path(&format!("killed-{n}"));
        let store = Store::local(&lake);
        let mut child = bench.start(&lake);
        // As soon as so many objects are there, the process goes, whatever it is doing.
        while store.list("").await.unwrap().len() < n && child.try_wait().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        let whole = |key: &String| key.ends_with(".json.gz.json");
        let recorded = objects(&store)
            .await
            .keys()
            .filter(|key| whole(key))
            .count();
        let output = bench.start(&lake).wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "after {n}: {stderr}");
        let report: ConvertReport = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report.items, 6_002);
        assert_eq!(usize::try_from(report.files.resumed).unwrap(), recorded);
        assert!(
            objects(&store).await == with_plan_of(&store, &expected).await,
            "after {n}"
        );
    }
    assert!(killed > 0);
}

/// The expected lake; the plan's sizes come from the command's own defaults.
async fn with_plan_of(
    store: &Store,
    expected: &BTreeMap<String, Vec<u8>>,
) -> BTreeMap<String, Vec<u8>> {
    let mut expected = expected.clone();
    for (key, body) in &mut expected {
        if key.ends_with("/plan.json") {
            *body = store.get(key).await.unwrap().unwrap().to_vec();
        }
    }
    expected
}

#[tokio::test(flavor = "multi_thread")]
async fn duckdb_reads_every_row_of_a_snapshot() {
    if !duckdb_available() {
        return;
    }
    let bench = Bench::new("shop", 1_000);
    bench.expected().await;
    let glob = bench.path("expected/snapshot/users/*/*.parquet");
    let rows = duckdb(&format!(
        "select count(*) as n, count(distinct _pk) as k, sum(age) as s, min(\"export\") as e \
         from read_parquet('{}', hive_partitioning = true)",
        glob.display()
    ));
    let ages: u32 = (0..1_000).map(|n| n % 90).sum();
    let expected =
        serde_json::json!([{"n": 1_000, "k": 1_000, "s": ages, "e": "20261118T062640Z"}]);
    assert_eq!(serde_json::Value::from(rows), expected);
}
