//! A compaction of all closed days of a lake.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use dynalake_schemas::{Catalog, Entity};

use super::error::CompactError;
use super::expire::expire;
use super::options::{CompactOptions, Watch};
use super::plan::{Frame, Unit, next_unit, output_key};
use super::record::{CompactedObject, CompactionRecord, VERSION, live, record_key, records};
use super::report::{CompactReport, DayReport, ObjectCounts};
use super::rewrite::rewrite;
use crate::layout::{CHANGES, day_text};
use crate::store::{ObjectMeta, Store};

/// Merges the small change objects of closed days, and deletes what earlier compactions have made
/// superfluous and whose grace time is over. Needs a Tokio runtime; merging runs on a blocking thread.
///
/// # Errors
/// The lake or the spool failed. Readers find the same rows as before, and the next compaction goes on
/// where this one stopped. Days whose objects cannot be merged are in the report.
pub async fn compact(
    store: &Store,
    catalog: &Catalog,
    options: &CompactOptions,
    watch: &dyn Watch,
) -> Result<CompactReport, CompactError> {
    let mut report = CompactReport {
        before: day_text(options.before),
        dry_run: options.dry_run,
        ..CompactReport::default()
    };
    for entity in &catalog.entities {
        compact_table(store, entity, options, watch, &mut report).await?;
    }
    Ok(report)
}

async fn compact_table(
    store: &Store,
    entity: &Entity,
    options: &CompactOptions,
    watch: &dyn Watch,
    report: &mut CompactReport,
) -> Result<(), CompactError> {
    let table = entity.table.as_str();
    // Records first: an object that is made meanwhile is then listed, but nothing stands for anything
    // that is not.
    let found = records(store, table).await?;
    let mut listed = store.list(&format!("{CHANGES}/{table}/dt=")).await?;
    listed.retain(|meta| is_parquet(&meta.key));
    let found = expire(store, found, &mut listed, options, watch, report).await?;
    let before = day_text(options.before);
    let mut days: BTreeMap<String, Vec<ObjectMeta>> = BTreeMap::new();
    for meta in listed {
        if let Some(day) = day_of(&meta.key).filter(|day| *day < before.as_str()) {
            days.entry(day.to_owned()).or_default().push(meta);
        }
    }
    for (day, listed) in days {
        let mut objects = Day {
            live: Vec::new(),
            records: found
                .iter()
                .filter(|record| record.day == day)
                .cloned()
                .collect(),
        };
        let told_apart = live(listed, &objects.records);
        objects.live = told_apart.live;
        let superseded = ObjectCounts::of(told_apart.superseded.iter().map(|meta| meta.size));
        report.in_grace.add(superseded);
        let frame = Frame {
            entity,
            day: &day,
            target_bytes: options.target_bytes,
        };
        compact_day(store, frame, &mut objects, options, watch, report).await?;
    }
    Ok(())
}

/// Objects of one day.
struct Day {
    /// What readers need, sorted by key.
    live: Vec<ObjectMeta>,
    records: Vec<CompactionRecord>,
}

impl Day {
    fn counts(&self) -> ObjectCounts {
        ObjectCounts::of(self.live.iter().map(|meta| meta.size))
    }

    fn is_recorded(&self, key: &str) -> bool {
        self.records
            .iter()
            .any(|record| record.outputs.iter().any(|output| output.key == key))
    }

    /// Puts the outputs in the place of the inputs.
    fn replace(&mut self, record: CompactionRecord, outputs: Vec<ObjectMeta>) {
        let is_of =
            |objects: &[CompactedObject], key: &str| objects.iter().any(|object| object.key == key);
        self.live
            .retain(|meta| !is_of(&record.inputs, &meta.key) && !is_of(&record.outputs, &meta.key));
        self.live.extend(outputs);
        self.live.sort_by(|a, b| a.key.cmp(&b.key));
        self.records.push(record);
    }
}

async fn compact_day(
    store: &Store,
    frame: Frame<'_>,
    objects: &mut Day,
    options: &CompactOptions,
    watch: &dyn Watch,
    report: &mut CompactReport,
) -> Result<(), CompactError> {
    let mut day = DayReport {
        day: frame.day.to_owned(),
        before: objects.counts(),
        ..DayReport::default()
    };
    // After each unit it is looked again, so that a run that goes on after a crash takes the same way.
    while let Some(unit) = next_unit(frame, &objects.live, |key| objects.is_recorded(key)) {
        if watch.stop() {
            report.unfinished = true;
            break;
        }
        day.merged += count(unit.inputs.len());
        if options.dry_run {
            break;
        }
        match merge_unit(store, frame, &unit, options).await {
            Ok((record, outputs)) => {
                watch.merged(
                    &frame.entity.table,
                    frame.day,
                    count(record.inputs.len()),
                    count(record.outputs.len()),
                );
                day.rows += record.rows;
                day.duplicates += record.duplicates;
                let inputs = ObjectCounts::of(record.inputs.iter().map(|input| input.size));
                report.in_grace.add(inputs);
                objects.replace(record, outputs);
            }
            Err(error) if error.is_of_day() => {
                day.merged -= count(unit.inputs.len());
                report.problems.push(format!(
                    "table `{}`, day {}: {error}",
                    frame.entity.table, frame.day
                ));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    day.after = objects.counts();
    report.objects_before.add(day.before);
    report.objects_after.add(day.after);
    if day.merged > 0 {
        let days = report.tables.entry(frame.entity.table.clone()).or_default();
        days.push(day);
    }
    Ok(())
}

/// Merges, puts the outputs, and then says so. Gives the outputs as they are listed from now on.
async fn merge_unit(
    store: &Store,
    frame: Frame<'_>,
    unit: &Unit,
    options: &CompactOptions,
) -> Result<(CompactionRecord, Vec<ObjectMeta>), CompactError> {
    let spool = spool(options)?;
    let rewritten = rewrite(store, frame.entity, unit, options, spool.path()).await?;
    if rewritten.rows + rewritten.duplicates != rewritten.read {
        return Err(CompactError::Unaccounted {
            table: frame.entity.table.clone(),
            day: frame.day.to_owned(),
            read: rewritten.read,
            written: rewritten.rows,
            duplicates: rewritten.duplicates,
        });
    }
    let (mut outputs, mut listed) = (Vec::new(), Vec::new());
    for (part, (path, size)) in rewritten.files.iter().enumerate() {
        let key = output_key(frame, &unit.id, part);
        store.put_file(&key, path).await?;
        listed.extend(store.head(&key).await?);
        outputs.push(CompactedObject {
            key,
            size: *size,
            modified_ms: None,
        });
    }
    let record = CompactionRecord {
        version: VERSION,
        id: unit.id.clone(),
        table: frame.entity.table.clone(),
        day: frame.day.to_owned(),
        inputs: unit.inputs.iter().map(CompactedObject::from).collect(),
        outputs,
        rows: rewritten.rows,
        duplicates: rewritten.duplicates,
        written_at_ms: options.now_ms,
    };
    put_record(store, &record).await?;
    Ok((record, listed))
}

/// Puts a record, unless one is there that says the same: its grace time began earlier.
async fn put_record(store: &Store, record: &CompactionRecord) -> Result<(), CompactError> {
    let key = record_key(&record.table, &record.day, &record.id);
    let mut text = serde_json::to_vec_pretty(record)
        .map_err(|error| CompactError::Worker(error.to_string()))?;
    text.push(b'\n');
    let text = Bytes::from(text);
    if store.put_if_absent(&key, text.clone()).await? {
        return Ok(());
    }
    let there = store.get(&key).await?;
    let there = there.and_then(|bytes| serde_json::from_slice::<CompactionRecord>(&bytes).ok());
    let says_the_same = there.is_some_and(|there| {
        let written_at_ms = record.written_at_ms;
        *record
            == CompactionRecord {
                written_at_ms,
                ..there
            }
    });
    if !says_the_same {
        // Of objects of the same names that have been put anew since.
        store.put(&key, text).await?;
    }
    Ok(())
}

fn spool(options: &CompactOptions) -> Result<tempfile::TempDir, CompactError> {
    let folder = options.spool.clone().unwrap_or_else(std::env::temp_dir);
    tempfile::Builder::new()
        .prefix("dynalake-compact-")
        .tempdir_in(&folder)
        .map_err(|source| CompactError::Spool {
            path: PathBuf::from(&folder),
            source,
        })
}

/// The day in `changes/<table>/dt=<day>/<object>`.
fn day_of(key: &str) -> Option<&str> {
    key.split('/').nth(2)?.strip_prefix("dt=")
}

fn is_parquet(key: &str) -> bool {
    std::path::Path::new(key)
        .extension()
        .is_some_and(|extension| extension == "parquet")
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
