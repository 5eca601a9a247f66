//! Data files in parts, by the local conversion and by steps: the same bytes, wherever it stops.

use super::*;
use crate::steps::{Limits, Steps, WorkItem, WorkPlan, Worked};

/// Some four parts per data file.
const PART: u64 = 400;

fn in_parts(bench: &Bench) -> ConvertOptions {
    ConvertOptions {
        part_bytes: Some(PART),
        workers: NonZeroUsize::new(1),
        ..bench.options()
    }
}

struct Workers<'a> {
    bench: &'a Bench,
    source: Source,
    lake: Store,
    catalog: Arc<Catalog>,
    options: ConvertOptions,
}

impl<'a> Workers<'a> {
    fn new(bench: &'a Bench, options: ConvertOptions) -> Self {
        Self {
            bench,
            source: Source::local(&bench.export).unwrap(),
            lake: Store::local(bench.lake()),
            catalog: catalog(),
            options,
        }
    }

    fn steps(&self) -> Steps<'_> {
        Steps {
            lake: &self.lake,
            catalog: &self.catalog,
            secrets: &Secrets { hmac_key: None },
            options: &self.options,
        }
    }

    async fn plan(&self) -> WorkPlan {
        self.steps().plan(&self.source, "it").await.unwrap()
    }

    /// One call that stops after each part.
    async fn work(&self, item: &WorkItem) -> Result<Worked, ExportError> {
        let limits = Limits {
            go_on: Arc::new(|| false),
            ..Limits::default()
        };
        self.work_within(item, limits).await
    }

    async fn work_within(&self, item: &WorkItem, limits: Limits) -> Result<Worked, ExportError> {
        let progress = Arc::new(NoProgress);
        self.steps()
            .work(&self.source, item, limits, progress)
            .await
    }

    async fn complete(&self) -> Result<ConvertReport, ExportError> {
        self.steps().complete(&self.source).await
    }

    /// Works on all items until nothing is left; gives the number of calls.
    async fn all(&self) -> usize {
        let mut calls = 0;
        for item in self.plan().await.todo {
            loop {
                calls += 1;
                if self.work(&item).await.unwrap() != Worked::Part {
                    break;
                }
            }
        }
        assert_eq!(spooled(self.bench), 0);
        calls
    }
}

fn spooled(bench: &Bench) -> usize {
    let spool = bench.folder.path().join("spool");
    std::fs::read_dir(spool).unwrap().count()
}

/// Items of every table with their quarantined lines, whatever the objects are cut like.
fn quarantined(bench: &Bench) -> Vec<String> {
    let objects = tree(&bench.lake().join("quarantine"));
    let text = objects.values().map(|body| String::from_utf8_lossy(body));
    text.map(std::borrow::Cow::into_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_hold_what_the_whole_file_holds() {
    let whole = Bench::new();
    let report = whole.convert().await.unwrap();
    let parts = Bench::new();
    let in_parts = parts.run(&in_parts(&parts)).await.unwrap();
    assert_eq!((in_parts.items, in_parts.quarantined), (62, 1));
    assert_eq!(in_parts.files, report.files);
    let users = |report: &ConvertReport| report.tables["users"].clone();
    assert_eq!(users(&in_parts).counts, users(&report).counts);
    assert!(users(&in_parts).objects > 2 * users(&report).objects);
    // The line of a quarantined item is that in the file.
    assert_eq!(quarantined(&parts), quarantined(&whole));
    for table in ["users", "orders", "unmatched"] {
        assert_eq!(sorted_keys(&parts, table), sorted_keys(&whole, table));
    }
    commit_export(&parts).await;
}

/// Keys of all rows of a table.
fn sorted_keys(bench: &Bench, table: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for body in tree(&bench.lake().join("snapshot").join(table)).into_values() {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(body)).unwrap();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>();
            let rows = text("_pk").iter().zip(text("_sk").iter());
            keys.extend(rows.map(|(pk, sk)| format!("{pk:?} {sk:?}")));
        }
    }
    keys.sort();
    keys
}

async fn commit_export(bench: &Bench) {
    let lake = Store::local(bench.lake());
    let id = spec().export_id();
    let (record, _) = crate::commit_export(&lake, &id, "me", 0).await.unwrap();
    assert_eq!(record.tables["users"].rows, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_local_runs_and_both_in_turn_write_the_same_bytes() {
    let local = Bench::new();
    local.run(&in_parts(&local)).await.unwrap();
    let expected = tree(&local.lake());

    let bench = Bench::new();
    let steps = Workers::new(&bench, in_parts(&bench));
    let plan = steps.plan().await;
    assert_eq!((plan.files, plan.todo.len(), plan.items), (4, 4, 62));
    let early = steps.complete().await.unwrap_err();
    assert_eq!(early.refusal(), Some(RefusalKind::Unfinished));
    let calls = steps.all().await;
    assert!(calls > 8, "{calls}");
    assert!(!bench.is_complete());
    let report = steps.complete().await.unwrap();
    assert_eq!(
        report,
        local
            .run(&in_parts(&local))
            .await
            .map(only_converted)
            .unwrap()
    );
    assert!(tree(&bench.lake()) == expected);
    assert_eq!(steps.plan().await.todo, []);
    let again = steps.work(&plan.todo[0]).await.unwrap();
    assert!(matches!(again, Worked::Whole { items: 15 | 16 }));
    assert!(tree(&bench.lake()) == expected);

    // A local run goes on with what steps began; its own wish for whole files does not count.
    let mixed = Bench::new();
    let steps = Workers::new(&mixed, in_parts(&mixed));
    let item = &steps.plan().await.todo[1];
    assert_eq!(steps.work(item).await.unwrap(), Worked::Part);
    mixed.convert().await.unwrap();
    assert!(tree(&mixed.lake()) == expected);

    // Steps go on with what a local run began.
    let mixed = Bench::new();
    let stopping = ConvertOptions {
        stop_after_puts: Some(9),
        ..in_parts(&mixed)
    };
    mixed.run(&stopping).await.unwrap_err();
    let steps = Workers::new(&mixed, mixed.options());
    steps.all().await;
    steps.complete().await.unwrap();
    assert!(tree(&mixed.lake()) == expected);
}

/// The report as if this run had converted everything.
fn only_converted(mut report: ConvertReport) -> ConvertReport {
    report.files.converted += report.files.resumed;
    report.files.resumed = 0;
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_before_any_put_of_a_part_and_started_again() {
    let undisturbed = Bench::new();
    undisturbed.run(&in_parts(&undisturbed)).await.unwrap();
    let expected = tree(&undisturbed.lake());
    let mut stops = 0;
    for puts in 0.. {
        let bench = Bench::new();
        let stopping = ConvertOptions {
            stop_after_puts: Some(puts),
            ..in_parts(&bench)
        };
        if bench.run(&stopping).await.is_ok() {
            break;
        }
        stops += 1;
        bench.run(&in_parts(&bench)).await.unwrap();
        assert!(tree(&bench.lake()) == expected, "stopped before put {puts}");
        assert_eq!(spooled(&bench), 0);
    }
    assert_eq!(stops, expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_damaged_file_are_made_anew_once_it_is_repaired() {
    let undisturbed = Bench::new();
    undisturbed.run(&in_parts(&undisturbed)).await.unwrap();
    let expected = tree(&undisturbed.lake());

    let bench = Bench::new();
    let steps = Workers::new(&bench, in_parts(&bench));
    let file = bench.data_files().remove(0);
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let item = steps.plan().await.todo;
    let item = item.iter().find(|item| item.file == name).unwrap();
    let right = std::fs::read(&file).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(
        &mut flate2::read::GzDecoder::new(right.as_slice()),
        &mut text,
    )
    .unwrap();
    let wrong = text.replacen("\"BOOL\":true", "\"BOOL\":false", 1);
    std::fs::write(&file, crate::export_writer::gzip(wrong.as_bytes()).unwrap()).unwrap();
    let mut calls = 0;
    let error = loop {
        calls += 1;
        match steps.work(item).await {
            Ok(worked) => assert_eq!(worked, Worked::Part),
            Err(error) => break error,
        }
    };
    assert_eq!(error.refusal(), Some(RefusalKind::Checksum), "{error}");
    assert!(calls > 2, "{calls}");
    std::fs::write(&file, right).unwrap();
    steps.all().await;
    steps.complete().await.unwrap();
    assert!(tree(&bench.lake()) == expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_other_schemas_or_too_small_is_refused() {
    let bench = Bench::new();
    let mut steps = Workers::new(&bench, in_parts(&bench));
    let item = steps.plan().await.todo.remove(0);
    steps.catalog = catalog_with(LAKE_TOML, &[USER_TOML]);
    let error = steps.work(&item).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::OtherPlan), "{error}");
    steps.catalog = catalog();
    steps.options.memory_mb = 16;
    let error = steps.work(&item).await.unwrap_err();
    assert!(error.to_string().contains("256 MB"), "{error}");
    steps.options.memory_mb = 256;
    let stop = Limits {
        stop: Arc::new(AtomicBool::new(true)),
        ..Limits::default()
    };
    let stopped = steps.work_within(&item, stop).await;
    assert!(matches!(stopped, Err(ExportError::Stopped)));
}
