//! A temporary folder to run the command in, and small lakes made by hand.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Stdout as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The run, which must have ended with this exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

/// A temporary folder.
pub(crate) struct World(tempfile::TempDir);

impl World {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dynalake"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env_clear()
            .stdin(Stdio::null());
        command
    }

    /// Runs the command in the folder, with an empty environment.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        finish(self.command(args).output().unwrap())
    }

    /// Runs the command with this standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Run {
        let mut command = self.command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        finish(child.wait_with_output().unwrap())
    }

    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Commits a baseline of these tables by hand.
    pub(crate) fn baseline(&self, lake: &str, label: &str, at_ms: i64, tables: &[&str]) {
        let counts = serde_json::json!({"rows": 4, "objects": 1, "bytes": 1});
        let tables: serde_json::Map<_, _> = tables
            .iter()
            .map(|table| ((*table).to_owned(), counts.clone()))
            .collect();
        let record = serde_json::json!({
            "version": 1, "label": label, "at_ms": at_ms, "kind": "full_export",
            "export_id": format!("{at_ms}-0a1b2c3d"),
            "table_arn": "arn:aws:dynamodb:eu-west-1:123456789012:table/shop",
            "tables": tables, "committed_at_ms": at_ms + 60_000,
        });
        self.write(
            &format!("{lake}/state/baselines/{label}.json"),
            record.to_string(),
        );
    }

    /// Writes one Parquet object with a row group per batch.
    pub(crate) fn parquet(&self, relative: &str, batches: &[RecordBatch]) {
        write_parquet(&self.path(relative), batches);
    }
}

fn finish(output: std::process::Output) -> Run {
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn write_parquet(path: &Path, batches: &[RecordBatch]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let properties = WriterProperties::builder()
        .set_created_by("test".to_owned())
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

/// Milliseconds of 2026-05-01T00:00:00Z.
pub(crate) const MAY_1: i64 = 1_777_593_600_000;

/// A row of the little table `orders`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    pub(crate) pk: &'static str,
    pub(crate) op: &'static str,
    pub(crate) at: i64,
    pub(crate) seq: Option<u64>,
    pub(crate) status: Option<&'static str>,
    /// In hundredths.
    pub(crate) total: Option<i128>,
    pub(crate) quantity: Option<i64>,
    pub(crate) paid: Option<bool>,
    pub(crate) rest: Option<&'static str>,
}

pub(crate) fn orders(rows: &[Order]) -> RecordBatch {
    let texts = |f: fn(&Order) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(f).collect::<StringArray>())
    };
    let total: Decimal128Array = rows.iter().map(|row| row.total).collect();
    let at = TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.at));
    let at: ArrayRef = Arc::new(at.with_timezone("UTC"));
    RecordBatch::try_from_iter_with_nullable([
        ("_pk", texts(|row| Some(row.pk.to_owned())), false),
        ("_sk", texts(|_| None), true),
        ("_op", texts(|row| Some(row.op.to_owned())), false),
        ("_at", at, false),
        (
            "_stream",
            texts(|row| row.seq.map(|_| "2026-05-01T00:00:00.000".to_owned())),
            true,
        ),
        (
            "_seq",
            texts(|row| row.seq.map(|seq| format!("{seq:0>40}"))),
            true,
        ),
        ("_rest", texts(|row| row.rest.map(str::to_owned)), true),
        ("status", texts(|row| row.status.map(str::to_owned)), true),
        (
            "total",
            Arc::new(total.with_precision_and_scale(12, 2).unwrap()),
            true,
        ),
        (
            "quantity",
            Arc::new(rows.iter().map(|row| row.quantity).collect::<Int64Array>()),
            true,
        ),
        (
            "paid",
            Arc::new(rows.iter().map(|row| row.paid).collect::<BooleanArray>()),
            true,
        ),
    ])
    .unwrap()
}

/// A lake in `lake/` with two exports (the older one a baseline, the newer one not complete) and changes of two days.
pub(crate) fn small_lake() -> World {
    let world = World::new();
    let row = |pk, status, total| Order {
        pk,
        op: "SNAPSHOT",
        at: MAY_1,
        status: Some(status),
        total: Some(total),
        quantity: Some(9_007_199_254_740_993),
        paid: Some(status == "paid"),
        ..Order::default()
    };
    world.parquet(
        "lake/snapshot/orders/export=20260501T000000Z/a.parquet",
        &[
            orders(&[row("ORDER#1", "paid", 1250), row("ORDER#2", "open", 5)]),
            orders(&[
                row("ORDER#3", "shipped", 99_999_999),
                row("ORDER#4", "緑茶,\"x\"", -100),
            ]),
        ],
    );
    world.parquet(
        "lake/snapshot/orders/export=20260502T000000Z/a.parquet",
        &[orders(&[row("ORDER#9", "new", 1)])],
    );
    world.write(
        "lake/state/exports/01777593600000-0a1b2c3d/complete.json",
        r#"{"label":"20260501T000000Z"}"#,
    );
    world.baseline("lake", "20260501T000000Z", MAY_1, &["orders"]);
    let change = |pk, op, at, seq| Order {
        pk,
        op,
        at,
        seq: Some(seq),
        status: Some("paid"),
        ..Order::default()
    };
    world.parquet(
        "lake/changes/orders/dt=2026-05-01/a.parquet",
        &[orders(&[
            change("ORDER#1", "INSERT", MAY_1 + 1000, 9),
            change("ORDER#1", "MODIFY", MAY_1 + 1000, 10),
            change("ORDER#2", "INSERT", MAY_1 + 500, 11),
        ])],
    );
    // A retry with other batch bounds brings one change again.
    world.parquet(
        "lake/changes/orders/dt=2026-05-01/b.parquet",
        &[orders(&[change("ORDER#1", "MODIFY", MAY_1 + 1000, 10)])],
    );
    world.parquet(
        "lake/changes/orders/dt=2026-05-02/c.parquet",
        &[orders(&[Order {
            status: None,
            rest: Some(r#"{"note":{"S":"x\u202e"}}"#),
            ..change("ORDER#2", "REMOVE", MAY_1 + 86_400_123, 12)
        }])],
    );
    world.parquet(
        "lake/changes/users/dt=2026-05-01/a.parquet",
        &[orders(&[change(
            "USER#\u{202e}\u{1b}[31m1",
            "INSERT",
            MAY_1,
            1,
        )])],
    );
    world.write("lake/quarantine/dt=2026-05-01/q.jsonl", "");
    world
}

/// Schemas of a little shop, in `schemas/`: users and orders.
pub(crate) fn shop_schemas(world: &World) {
    world.write(
        "schemas/lake.toml",
        "database = \"shop\"\n[source]\npartition_key = \"PK\"\nsort_key = \"SK\"\n",
    );
    world.write(
        "schemas/user.toml",
        "entity = \"user\"\ntable = \"users\"\nversion = 1\n[match]\npartition_key = \"USER#{user_id}\"\n\
         sort_key = \"PROFILE\"\n[columns]\nuser_id = \"string\"\nname = \"string\"\n",
    );
    world.write(
        "schemas/order.toml",
        "entity = \"order\"\ntable = \"orders\"\nversion = 1\n[match]\npartition_key = \"USER#{user_id}\"\n\
         sort_key = \"ORDER#{order_id}\"\n[columns]\nuser_id = \"string\"\norder_id = \"string\"\n\
         total = \"decimal(12,2)\"\nquantity = { type = \"int\", on_mismatch = \"quarantine\" }\n",
    );
}

/// A stream event of the shop: a good order, one whose quantity does not fit, one that is no item.
pub(crate) const EVENT: &str = r#"{"Records":[
{"eventID":"e1","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{"ApproximateCreationDateTime":1777593601,"Keys":{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#7"}},"NewImage":{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#7"},"total":{"N":"12.5"}},"SequenceNumber":"100000000000000000001","StreamViewType":"NEW_AND_OLD_IMAGES"},"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-05-01T00:00:00.000"},
{"eventID":"e2","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{"ApproximateCreationDateTime":1777593602,"Keys":{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#8"}},"NewImage":{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#8"},"quantity":{"N":"3000000000"}},"SequenceNumber":"100000000000000000002","StreamViewType":"NEW_AND_OLD_IMAGES"},"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-05-01T00:00:00.000"},
{"eventID":"e3","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{"ApproximateCreationDateTime":1777593603,"Keys":{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#9"}},"NewImage":{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#9"},"total":{"N":"many"}},"SequenceNumber":"100000000000000000003","StreamViewType":"NEW_AND_OLD_IMAGES"},"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-05-01T00:00:00.000"}
]}"#;
