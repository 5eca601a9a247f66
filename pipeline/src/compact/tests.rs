//! Compactions of a local lake: what readers find before, during and after, wherever one stops.

mod crash;
mod dedupe;
mod plan;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, TimestampMillisecondType};
use dynalake_schemas::{Catalog, row_columns};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::lambda::lambda;
use super::*;
use crate::current::{AsOf, MergeOptions, current_rows};
use crate::encode::encode_batch;
use crate::layout::change_key;
use crate::pipeline::{Partitioning, Pipeline, Secrets};
use crate::record::{ChangeRecord, Operation, Origin, SequenceNumber};
use crate::store::Store;
use crate::time::DAY_MS;

/// Day of most changes: 2024-10-04.
const DAY: i32 = 20_000;
const NOON: i64 = 20_000 * DAY_MS + DAY_MS / 2;
/// The next day.
const NOW: i64 = 20_001 * DAY_MS + DAY_MS / 2;
const LATER: i64 = NOW + DAY_MS;
const STREAM: &str = "2024-01-01T00:00:00.000";

const LAKE_TOML: &str = "database = \"t\"\n[source]\npartition_key = \"PK\"\n";
const THING_TOML: &str = "entity = \"thing\"\ntable = \"things\"\nversion = 1\n[match]\n\
    partition_key = \"T#{id}\"\n[columns]\nid = \"string\"\nv = \"string\"\n";

/// One change: key, sequence number, time, new value (`None` is a delete).
type Change<'a> = (&'a str, &'a str, i64, Option<&'a str>);

struct World {
    folder: tempfile::TempDir,
    store: Store,
    catalog: Arc<Catalog>,
}

/// A row as readers see it: everything but who read it.
type Row = BTreeMap<String, String>;

/// A row with time and schema version, of which the greatest counts.
type Ranked = ((i64, i32), Row);

fn catalog(thing: &str) -> Arc<Catalog> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lake.toml"), LAKE_TOML).unwrap();
    fs::write(folder.path().join("thing.toml"), thing).unwrap();
    Arc::new(Catalog::load(folder.path()).unwrap_or_else(|error| panic!("{error}")))
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::local(folder.path().join("lake"));
        Self {
            folder,
            store,
            catalog: catalog(THING_TOML),
        }
    }

    /// A lake with the same objects, modification times included.
    fn copy(&self) -> Self {
        let copy = Self {
            catalog: Arc::clone(&self.catalog),
            ..Self::new()
        };
        copy_folder(&self.lake(), &copy.lake());
        copy
    }

    fn lake(&self) -> std::path::PathBuf {
        self.folder.path().join("lake")
    }

    fn entity(&self) -> usize {
        let entities = &self.catalog.entities;
        entities.iter().position(|e| e.table == "things").unwrap()
    }

    /// Changes as one event of the stream delivers them.
    async fn changes(&self, changes: &[Change<'_>]) {
        self.changes_of(STREAM, changes).await;
    }

    async fn changes_of(&self, stream: &str, changes: &[Change<'_>]) {
        let catalog = Arc::clone(&self.catalog);
        let mut pipeline =
            Pipeline::new(catalog, &Secrets::default(), Partitioning::ByDay).unwrap();
        for (key, number, at, value) in changes {
            let keys = format!(r#"{{"PK":{{"S":"T#{key}"}}}}"#);
            let item = value.map(|value| {
                format!(r#"{{"PK":{{"S":"T#{key}"}},"v":{{"S":"{value}"}},"w":{{"N":"1"}}}}"#)
            });
            let record = ChangeRecord {
                operation: if item.is_some() {
                    Operation::Modify
                } else {
                    Operation::Remove
                },
                reason: None,
                at: *at,
                stream: Some(stream),
                sequence_number: SequenceNumber::parse(number),
                event_id: Some(number),
                origin: Origin::Stream,
                keys: Some(keys.as_bytes()),
                new_image: item.as_ref().map(String::as_bytes),
                old_image: None,
                payload: b"",
            };
            pipeline.push(&record).unwrap();
        }
        for table in pipeline.finish().unwrap() {
            let entity = &self.catalog.entities[table.entity];
            let key = change_key(entity, table.day.unwrap(), &table.batch);
            let body = encode_batch(entity, &table.batch).unwrap();
            self.store.put(&key, body.into()).await.unwrap();
        }
    }

    async fn compact(&self, options: &CompactOptions) -> CompactReport {
        self.try_compact(&self.store, options).await.unwrap()
    }

    async fn try_compact(
        &self,
        store: &Store,
        options: &CompactOptions,
    ) -> Result<CompactReport, CompactError> {
        compact(store, &self.catalog, options, &Unwatched).await
    }

    /// What readers of the current state, and those of the history, find.
    async fn seen(&self) -> (Vec<Row>, Vec<Row>) {
        let spool = tempfile::tempdir().unwrap();
        let options = MergeOptions {
            memory_bytes: 64 << 20,
            spool: spool.path().to_owned(),
        };
        let mut current = Vec::new();
        let mut sink = |batch: RecordBatch| {
            current.extend((0..batch.num_rows()).map(|row| texts(&batch, row)));
            Ok(())
        };
        current_rows(
            &self.store,
            &self.catalog,
            self.entity(),
            AsOf::Now,
            &options,
            &mut sink,
        )
        .await
        .unwrap();
        (current, self.history())
    }

    /// One row per change, the one with the greatest time; by a road of its own.
    fn history(&self) -> Vec<Row> {
        let mut changes = BTreeMap::<[Option<String>; 4], Ranked>::new();
        for (key, bytes) in self.objects() {
            if !key.starts_with("changes/things/") {
                continue;
            }
            for batch in batches(bytes) {
                let text = |column: usize, row: usize| {
                    let column = batch.column(column).as_string::<i32>();
                    column.is_valid(row).then(|| column.value(row).to_owned())
                };
                for row in 0..batch.num_rows() {
                    use row_columns::{AT, PK, SCHEMA, SEQ, SK, STREAM};
                    let change = [PK, SK, STREAM, SEQ].map(|column| text(column, row));
                    let at = batch.column(AT).as_primitive::<TimestampMillisecondType>();
                    let schema = batch.column(SCHEMA).as_primitive::<Int32Type>();
                    let rank = (at.value(row), schema.value(row));
                    let found = (rank, texts(&batch, row));
                    let best = changes.entry(change).or_insert_with(|| found.clone());
                    if rank > best.0 {
                        *best = found;
                    }
                }
            }
        }
        changes.into_values().map(|(_, row)| row).collect()
    }

    /// Every file of the lake with its bytes.
    fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.lake()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let key = path.strip_prefix(self.lake()).unwrap();
                    files.insert(key.display().to_string(), fs::read(&path).unwrap());
                }
            }
        }
        files
    }

    fn keys(&self, prefix: &str) -> Vec<String> {
        let keys = self.objects().into_keys();
        keys.filter(|key| key.starts_with(prefix)).collect()
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
            let modified = path.metadata().unwrap().modified().unwrap();
            let file = fs::File::options().append(true).open(&target).unwrap();
            file.set_modified(modified).unwrap();
        }
    }
}

fn batches(bytes: Vec<u8>) -> Vec<RecordBatch> {
    ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))
        .unwrap()
        .build()
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// The columns of a row that are not NULL, as text.
fn texts(batch: &RecordBatch, row: usize) -> Row {
    let schema = batch.schema();
    schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter(|(_, column)| column.is_valid(row))
        .map(|(field, column)| {
            let text = match column.as_primitive_opt::<TimestampMillisecondType>() {
                Some(times) => times.value(row).to_string(),
                None => arrow::util::display::array_value_to_string(column, row).unwrap(),
            };
            (field.name().clone(), text)
        })
        .collect()
}

fn seq(number: u32) -> String {
    format!("{number:021}")
}

/// A day with every trap: duplicates with other times, a delete, retries with other bounds, two
/// streams that share a number; and a change of the open day.
async fn busy() -> World {
    let world = World::new();
    let [one, two, three, four] = [1, 2, 3, 4].map(seq);
    world
        .changes(&[("a", &one, NOON, Some("a1")), ("b", &two, NOON, Some("b1"))])
        .await;
    world
        .changes(&[
            ("b", &two, NOON, Some("b1")),
            ("c", &three, NOON + 5, Some("c1")),
        ])
        .await;
    // The same change with another time: what an event without creation time becomes when retried.
    world
        .changes(&[("a", &one, NOON + 70_000, Some("a1"))])
        .await;
    world.changes(&[("c", &four, NOON + 9, None)]).await;
    world
        .changes_of(
            "2025-01-01T00:00:00.000",
            &[("b", &two, NOON - 60_000, Some("b2"))],
        )
        .await;
    // The open day.
    world.changes(&[("a", &seq(9), NOW - 5, Some("a9"))]).await;
    world.changes(&[("d", &seq(10), NOW - 4, Some("d1"))]).await;
    world
}

#[tokio::test]
async fn readers_find_the_same_before_during_and_after_and_inputs_stay_for_the_grace_time() {
    let world = busy().await;
    let before = world.seen().await;
    assert_eq!((before.0.len(), before.1.len()), (3, 7));
    let inputs = world.keys("changes/things/dt=2024-10-04/");
    assert_eq!(inputs.len(), 5);

    let report = world.compact(&CompactOptions::at(NOW)).await;
    let days = &report.tables["things"];
    assert_eq!(days.len(), 1);
    assert_eq!((days[0].day.as_str(), days[0].merged), ("2024-10-04", 5));
    assert_eq!((days[0].rows, days[0].duplicates), (5, 2));
    assert_eq!(
        (report.objects_before.objects, report.objects_after.objects),
        (5, 1)
    );
    assert!(report.objects_after.bytes < report.objects_before.bytes);
    assert_eq!((report.in_grace.objects, report.deleted.objects), (5, 0));
    assert_eq!(report.problems, [""; 0]);
    assert_eq!(world.keys("changes/things/dt=2024-10-04/").len(), 6);
    assert_eq!(world.seen().await, before);

    // Nothing more to do, and nothing is deleted before its time.
    let early = CompactOptions {
        before: DAY + 1,
        ..CompactOptions::at(LATER - 1)
    };
    let again = world.compact(&early).await;
    assert_eq!(
        (
            again.merged(),
            again.deleted.objects,
            again.in_grace.objects
        ),
        (0, 0, 5)
    );
    assert_eq!(world.seen().await, before);

    let last = CompactOptions {
        before: DAY + 1,
        ..CompactOptions::at(LATER)
    };
    let report = world.compact(&last).await;
    assert_eq!(
        (
            report.merged(),
            report.deleted.objects,
            report.in_grace.objects
        ),
        (0, 5, 0)
    );
    let left = world.keys("changes/things/dt=2024-10-04/");
    assert_eq!(left.len(), 1);
    assert!(left[0].contains("/compacted-"), "{left:?}");
    assert_eq!(world.keys("state/compactions/"), [""; 0]);
    assert_eq!(world.keys("changes/things/dt=2024-10-05/").len(), 2);
    assert_eq!(world.seen().await, before);
}

#[tokio::test]
async fn what_is_written_has_one_row_per_change_with_its_greatest_time_and_keeps_deletes() {
    let world = busy().await;
    world.compact(&CompactOptions::at(NOW)).await;
    let output = world.keys("changes/things/dt=2024-10-04/compacted-");
    let rows: Vec<_> = batches(fs::read(world.lake().join(&output[0])).unwrap())
        .iter()
        .flat_map(|batch| {
            let column = |row: usize, index: usize| {
                batch.column(index).as_string::<i32>().value(row).to_owned()
            };
            let at = batch
                .column(row_columns::AT)
                .as_primitive::<TimestampMillisecondType>();
            (0..batch.num_rows())
                .map(|row| {
                    let offset = at.value(row) - NOON;
                    (
                        column(row, row_columns::PK),
                        column(row, row_columns::OP),
                        offset,
                    )
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let row = |pk: &str, op: &str, offset| (pk.to_owned(), op.to_owned(), offset);
    assert_eq!(
        rows,
        [
            row("T#a", "MODIFY", 70_000),
            row("T#b", "MODIFY", 0),
            row("T#b", "MODIFY", -60_000),
            row("T#c", "MODIFY", 5),
            row("T#c", "REMOVE", 9),
        ]
    );
}

#[tokio::test]
async fn a_few_late_objects_are_left_and_many_are_compacted_with_the_old_ones() {
    let world = busy().await;
    world.compact(&CompactOptions::at(NOW)).await;
    for n in 0..7 {
        world
            .changes(&[("e", &seq(100 + n), NOON, Some("late"))])
            .await;
    }
    let before = world.seen().await;
    assert_eq!(
        world.compact(&CompactOptions::at(NOW + 1)).await.merged(),
        0
    );
    // A duplicate of a change that is compacted by now, with a later time. It even replaces one of the
    // inputs, since times are not part of a key: that one is an object of its own again.
    world
        .changes(&[("a", &seq(1), NOON + 90_000, Some("a1"))])
        .await;
    let with_duplicate = world.seen().await;
    assert_ne!(with_duplicate, before);
    let report = world.compact(&CompactOptions::at(NOW + 2)).await;
    let day = &report.tables["things"][0];
    assert_eq!((day.merged, day.duplicates), (9, 1));
    assert_eq!((day.before.objects, day.after.objects), (9, 1));
    assert_eq!(world.seen().await, with_duplicate);
    // Both records in one run: the older one first, whose outputs are the newer one's inputs.
    let report = world.compact(&CompactOptions::at(LATER + 2)).await;
    assert_eq!((report.deleted.objects, report.problems.len()), (4 + 9, 0));
    assert_eq!(world.keys("changes/things/dt=2024-10-04/").len(), 1);
    assert_eq!(world.seen().await, with_duplicate);
}

#[tokio::test]
async fn files_of_an_older_schema_take_the_form_of_the_newest() {
    let mut world = busy().await;
    let wider = THING_TOML.replace("version = 1", "version = 2") + "w = \"bigint\"\n";
    let old = std::mem::replace(&mut world.catalog, catalog(&wider));
    world.changes(&[("f", &seq(200), NOON, Some("f1"))]).await;
    let before = world.seen().await;
    world.compact(&CompactOptions::at(NOW)).await;
    assert_eq!(world.seen().await, before);
    world.compact(&CompactOptions::at(LATER)).await;
    assert_eq!(world.seen().await, before);
    let output = world.keys("changes/things/dt=2024-10-04/compacted-");
    let bytes = fs::read(world.lake().join(&output[0])).unwrap();
    assert!(batches(bytes)[0].schema().field_with_name("w").is_ok());

    // The other way a column would be lost: the day is left as it is, others are not.
    world
        .changes(&[("g", &seq(201), NOON - DAY_MS, Some("new"))])
        .await;
    world.catalog = old;
    world
        .changes(&[("g", &seq(202), NOON - DAY_MS, Some("old"))])
        .await;
    world
        .changes(&[("g", &seq(203), NOON - 2 * DAY_MS, Some("x"))])
        .await;
    world
        .changes(&[("g", &seq(204), NOON - 2 * DAY_MS, Some("y"))])
        .await;
    let keys = world.keys("changes/things/dt=2024-10-03/");
    let report = world.compact(&CompactOptions::at(LATER)).await;
    assert_eq!(report.problems.len(), 1);
    assert!(
        report.problems[0].contains("2024-10-03") && report.problems[0].contains("column `w`"),
        "{:?}",
        report.problems
    );
    assert_eq!(report.tables["things"].len(), 1);
    assert_eq!(world.keys("changes/things/dt=2024-10-03/"), keys);
}

#[tokio::test]
async fn an_object_that_cannot_be_read_stops_its_day_only() {
    let world = busy().await;
    let broken = "changes/things/dt=2024-10-03/1-1-x.parquet";
    world.store.put(broken, "PAR1 no".into()).await.unwrap();
    world
        .changes(&[("g", &seq(204), NOON - DAY_MS, Some("y"))])
        .await;
    let report = world.compact(&CompactOptions::at(NOW)).await;
    assert_eq!(report.problems.len(), 1);
    assert!(report.problems[0].contains(broken), "{:?}", report.problems);
    assert_eq!(report.tables["things"].len(), 1);
}

#[tokio::test]
async fn an_input_that_was_put_anew_is_not_deleted() {
    let world = busy().await;
    let before = world.seen().await;
    world.compact(&CompactOptions::at(NOW)).await;
    let inputs = world.keys("changes/things/dt=2024-10-04/");
    // A retry of the function, long after.
    let again = world.lake().join(&inputs[0]);
    let file = fs::File::options().append(true).open(&again).unwrap();
    let modified = again.metadata().unwrap().modified().unwrap();
    file.set_modified(modified + std::time::Duration::from_hours(1))
        .unwrap();
    let report = world.compact(&CompactOptions::at(LATER)).await;
    assert_eq!(report.deleted.objects, 4);
    assert!(again.exists());
    assert_eq!(world.seen().await, before);
    // Outputs that somebody deleted: the inputs stay.
    let world = busy().await;
    world.compact(&CompactOptions::at(NOW)).await;
    let output = world.keys("changes/things/dt=2024-10-04/compacted-");
    fs::remove_file(world.lake().join(&output[0])).unwrap();
    let report = world
        .compact(&CompactOptions {
            before: 0,
            ..CompactOptions::at(LATER)
        })
        .await;
    assert_eq!((report.deleted.objects, report.problems.len()), (0, 1));
    assert_eq!(world.seen().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_do_the_same_and_lose_nothing() {
    let world = busy().await;
    let before = world.seen().await;
    let tasks: Vec<_> = (0..4)
        .map(|n| {
            let (store, catalog) = (world.store.clone(), Arc::clone(&world.catalog));
            tokio::spawn(async move {
                compact(&store, &catalog, &CompactOptions::at(NOW + n), &Unwatched).await
            })
        })
        .collect();
    // Meanwhile more arrives for the closed day.
    for n in 0..10 {
        world
            .changes(&[("h", &seq(300 + n), NOON, Some("late"))])
            .await;
    }
    for task in tasks {
        let report = task.await.unwrap().unwrap();
        assert_eq!(report.problems, [""; 0]);
    }
    let (current, history) = world.seen().await;
    assert_eq!(history.len(), before.1.len() + 10);
    for at in [
        LATER + 10,
        LATER + DAY_MS,
        LATER + 2 * DAY_MS,
        LATER + 3 * DAY_MS,
    ] {
        let options = CompactOptions {
            before: DAY + 1,
            ..CompactOptions::at(at)
        };
        world.compact(&options).await;
        assert_eq!(world.seen().await, (current.clone(), history.clone()));
    }
    // Perhaps with some that came too late, and are too few.
    let left = world.keys("changes/things/dt=2024-10-04/");
    assert!(left.len() <= super::plan::LATE_OBJECTS + 1, "{left:?}");
    assert_eq!(world.keys("state/compactions/"), [""; 0]);
}

#[tokio::test]
async fn outputs_have_the_size_that_is_asked_for_and_large_objects_are_left() {
    let world = World::new();
    // Sizes of what does not compress.
    let text = |n: u32| -> String {
        let mut state = u64::from(n) + 1;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from_digit(u32::try_from(state >> 59).unwrap(), 36).unwrap()
        };
        (0..2000).map(|_| next()).collect()
    };
    for event in 0..20_u32 {
        let texts: Vec<(String, String, String)> = (0..10)
            .map(|n| {
                (
                    format!("{n}-{event}"),
                    seq(event * 10 + n),
                    text(event * 10 + n),
                )
            })
            .collect();
        let changes: Vec<Change<'_>> = texts
            .iter()
            .map(|(key, number, text)| (key.as_str(), number.as_str(), NOON, Some(text.as_str())))
            .collect();
        world.changes(&changes).await;
    }
    let before = world.seen().await;
    let options = CompactOptions {
        target_bytes: 100_000,
        ..CompactOptions::at(NOW)
    };
    let report = world.compact(&options).await;
    let day = &report.tables["things"][0];
    assert!((2..=4).contains(&day.after.objects), "{day:?}");
    assert_eq!((day.rows, day.duplicates), (200, 0));
    assert_eq!(world.seen().await, before);
    let live = world.keys("changes/things/dt=2024-10-04/compacted-");
    let mut sizes: Vec<u64> = live
        .iter()
        .map(|key| fs::metadata(world.lake().join(key)).unwrap().len())
        .collect();
    sizes.sort_unstable();
    assert!(sizes[1..].iter().all(|size| *size >= 100_000), "{sizes:?}");
    let again = world.compact(&options).await;
    assert_eq!(
        (again.merged(), again.objects_before),
        (0, report.objects_after)
    );
    // Every object is sorted, and one starts where another ends.
    let mut ends: Vec<(String, String)> = live
        .iter()
        .map(|key| {
            let batches = batches(fs::read(world.lake().join(key)).unwrap());
            let keys: Vec<String> = batches
                .iter()
                .flat_map(|batch| {
                    let column = batch.column(row_columns::PK).as_string::<i32>().clone();
                    (0..column.len()).map(move |row| column.value(row).to_owned())
                })
                .collect();
            assert!(keys.is_sorted());
            (keys[0].clone(), keys[keys.len() - 1].clone())
        })
        .collect();
    ends.sort();
    assert!(
        ends.windows(2).all(|pair| pair[0].1 < pair[1].0),
        "{ends:?}"
    );
}

#[tokio::test]
async fn a_day_of_several_pieces_of_work_ends_with_what_the_last_one_wrote() {
    let world = World::new();
    for n in 0..40 {
        world
            .changes(&[
                ("a", &seq(n), NOON, Some("a")),
                ("b", &seq(100 + n), NOON, None),
            ])
            .await;
    }
    let before = world.seen().await;
    // Room for some ten objects at a time.
    let options = CompactOptions {
        target_bytes: 12_000,
        before: DAY + 1,
        ..CompactOptions::at(NOW)
    };
    let report = world.compact(&options).await;
    let records = records(&world.store, "things").await.unwrap();
    assert!(records.len() > 2, "{}", records.len());
    let listed = world.store.list("changes/things/").await.unwrap();
    let told_apart = live(listed, &records);
    let counts = |objects: &[crate::store::ObjectMeta]| {
        ObjectCounts::of(objects.iter().map(|object| object.size))
    };
    assert_eq!(counts(&told_apart.live), report.objects_after);
    assert_eq!(counts(&told_apart.superseded), report.in_grace);
    assert_eq!(world.compact(&options).await.merged(), 0);
    let later = CompactOptions {
        now_ms: LATER,
        ..options
    };
    let last = world.compact(&later).await;
    assert_eq!((last.merged(), last.deleted), (0, report.in_grace));
    let left = world.store.list("changes/things/").await.unwrap();
    assert_eq!(left, told_apart.live);
    assert_eq!(world.seen().await, before);
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let world = busy().await;
    let before = world.objects();
    let dry = CompactOptions {
        dry_run: true,
        ..CompactOptions::at(NOW)
    };
    let report = world.compact(&dry).await;
    assert_eq!((report.merged(), report.dry_run), (5, true));
    assert_eq!(report.objects_after, report.objects_before);
    assert!(world.objects() == before);
}

/// Stops after so many looks.
struct StopAfter(AtomicU64);

impl Watch for StopAfter {
    fn stop(&self) -> bool {
        let left = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        left.is_err()
    }
}

#[tokio::test]
async fn the_lambda_takes_any_event_of_a_schedule_stops_in_time_and_emits_metrics() {
    let world = busy().await;
    world
        .changes(&[("g", &seq(203), NOON - DAY_MS, Some("x"))])
        .await;
    world
        .changes(&[("g", &seq(204), NOON - DAY_MS, Some("y"))])
        .await;
    let before = world.seen().await;
    let spool = tempfile::tempdir().unwrap();
    let context = lambda::Context {
        store: &world.store,
        catalog: &world.catalog,
        spool: spool.path().to_owned(),
        memory_bytes: 16 << 20,
    };
    let call = async |event: &str, now, looks| {
        let watch = StopAfter(AtomicU64::new(looks));
        lambda(event.as_bytes(), now, &context, &watch).await
    };
    let event =
        r#"{"version":"0","time":"2024-10-05T02:00:00Z","detail":{},"source":"aws.events"}"#;
    let outcome = call(event, NOW, 1).await.unwrap();
    assert_eq!(
        (outcome.report.merged(), outcome.report.unfinished),
        (2, true)
    );
    let outcome = call(event, NOW, 9).await.unwrap();
    assert_eq!(
        (outcome.report.merged(), outcome.report.unfinished),
        (5, false)
    );
    let line: serde_json::Value = serde_json::from_str(&outcome.log_line).unwrap();
    assert!(!outcome.log_line.contains('\n'));
    for (name, value) in [
        ("compact_merged", 5),
        ("compact_objects_before", 6),
        ("compact_objects_after", 2),
        ("compact_duplicates", 2),
        ("compact_problems", 0),
    ] {
        assert_eq!(line[name], value, "{name}");
    }
    assert_eq!(line["database"], "t");
    let metrics = line["_aws"]["CloudWatchMetrics"][0]["Metrics"]
        .as_array()
        .unwrap();
    assert!(
        metrics
            .iter()
            .all(|metric| line[metric["Name"].as_str().unwrap()].is_u64())
    );
    assert_eq!(world.seen().await, before);
    assert_eq!(fs::read_dir(spool.path()).unwrap().count(), 0);

    let event = r#"{"before":"2024-10-04","grace_hours":0,"target_mb":1}"#;
    let outcome = call(event, NOW, 99).await.unwrap();
    assert_eq!(
        (
            outcome.report.before.as_str(),
            outcome.report.deleted.objects
        ),
        ("2024-10-04", 7)
    );
    assert!(call("null", NOW, 99).await.is_ok());
    for bad in [
        "{",
        "[1]",
        r#"{"before":"yesterday"}"#,
        r#"{"target_mb":0}"#,
        r#"{"grace_hours":-1}"#,
    ] {
        let error = call(bad, NOW, 99).await.unwrap_err();
        assert!(matches!(error, CompactError::Event(_)), "{bad}: {error}");
    }
}
