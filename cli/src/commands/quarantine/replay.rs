//! `dynalake quarantine replay LAKE`: quarantined records through the same code once more.
//!
//! Order of writing: rows, then the copy under `quarantine/replayed/`, then the original is
//! deleted. Broken off anywhere, the next run writes the same rows to the same keys.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use dynalake_export_job::format::{DataFormat, LineReader};
use dynalake_export_job::line;
use dynalake_pipeline::baseline::{self, BaselineKind, BaselineRecord};
use dynalake_pipeline::encode::encode_batch;
use dynalake_pipeline::layout;
use dynalake_pipeline::pipeline::{Partitioning, Pipeline, Secrets, TableBatch};
use dynalake_pipeline::quarantine::{QuarantineEntry, RecordOrigin};
use dynalake_pipeline::record::{ChangeRecord, Operation, Origin};
use dynalake_pipeline::reject::{ReasonCode, Reject};
use dynalake_pipeline::store::Store;
use dynalake_pipeline::stream::envelope::{OpenEvent, read_records};
use dynalake_schemas::Catalog;
use serde::Serialize;

use super::{entries, objects};
use crate::World;
use crate::args::{Format, QuarantineReplayArgs};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, number};

#[derive(Debug, Serialize)]
struct ReplayReport {
    lake: String,
    dry_run: bool,
    objects: Vec<ObjectReport>,
}

#[derive(Debug, Serialize)]
struct ObjectReport {
    object: String,
    records: usize,
    /// Rows by lake table.
    rows: BTreeMap<String, usize>,
    /// Where the object went; `None` while records of it remain.
    moved_to: Option<String>,
    remaining: Vec<Remaining>,
}

/// A record that still cannot become a row.
#[derive(Debug, Serialize)]
struct Remaining {
    line: usize,
    reason: &'static str,
    path: Option<String>,
    message: String,
}

/// Where rows go: to the changes, or to an export's snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Changes,
    Snapshot { export_id: String, label: String },
}

pub(super) async fn run(
    args: &QuarantineReplayArgs,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let catalog = catalog::load(&args.schemas)?;
    let secrets = catalog::secrets(world)?;
    let store = lake::existing(&args.lake, &args.s3).await?;
    let mut report = ReplayReport {
        lake: args.lake.clone(),
        dry_run: args.dry_run,
        objects: Vec::new(),
    };
    let records = baseline::list(&store).await?;
    let baselines: BTreeSet<String> = records.iter().map(|record| record.label.clone()).collect();
    let mut left_behind = BTreeSet::new();
    for object in objects(&store, &args.objects).await? {
        let replay = Replay {
            catalog: &catalog,
            secrets: &secrets,
            key: &object.key,
            baselines: &baselines,
        };
        let entries = entries(&store, &object.key).await?;
        let (mut outcome, batches) = replay.decode(&entries)?;
        for (target, _) in &batches {
            if let Target::Snapshot { label, .. } = target
                && let Some(rolled) = rolled_from(&records, label)
            {
                left_behind.insert((label.clone(), rolled.label.clone()));
            }
        }
        if !args.dry_run {
            replay.put(&store, &batches).await?;
            if outcome.remaining.is_empty() {
                outcome.moved_to = Some(set_aside(&store, &object.key).await?);
            }
        }
        report.objects.push(outcome);
    }
    match args.format {
        Format::Json => printer.json(&report)?,
        Format::Table if report.objects.is_empty() => printer.note("nothing is in quarantine"),
        Format::Table => print(&report, printer)?,
    }
    for (label, rolled) in &left_behind {
        printer.warning(format!(
            "items came back into baseline {label}, but baseline {rolled}, which was rolled forward from \
             it before, does not have them: take a full export, or convert the incremental exports \
             since {label} again with `--replace`"
        ));
    }
    let remains = report
        .objects
        .iter()
        .any(|object| !object.remaining.is_empty());
    Ok(if remains || !left_behind.is_empty() {
        Exit::Findings
    } else {
        Exit::Ok
    })
}

/// The newest baseline that was rolled forward from this one, step by step. `records` are sorted by
/// time.
fn rolled_from<'r>(records: &'r [BaselineRecord], label: &str) -> Option<&'r BaselineRecord> {
    records
        .iter()
        .skip_while(|record| record.label.as_str() <= label)
        .take_while(|record| record.kind == BaselineKind::Rolled)
        .last()
}

/// The replay of one quarantine object.
struct Replay<'a> {
    catalog: &'a Arc<Catalog>,
    secrets: &'a Secrets,
    key: &'a str,
    /// Labels of the committed baselines.
    baselines: &'a BTreeSet<String>,
}

impl Replay<'_> {
    /// Rows of the records that can become rows, and what is to be said of the others.
    fn decode(
        &self,
        entries: &[QuarantineEntry],
    ) -> Outcome<(ObjectReport, Vec<(Target, TableBatch)>)> {
        let mut pipelines: BTreeMap<Target, Pipeline> = BTreeMap::new();
        let mut remaining = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            if let Err(reject) = self.push(entry, &mut pipelines)? {
                remaining.push(Remaining {
                    line: index + 1,
                    reason: reject.code.as_str(),
                    path: reject.path,
                    message: reject.message,
                });
            }
        }
        let mut batches = Vec::new();
        let mut rows: BTreeMap<String, usize> = BTreeMap::new();
        for (target, mut pipeline) in pipelines {
            for batch in pipeline.finish().map_err(Failure::findings)? {
                if let Some(entity) = self.catalog.entities.get(batch.entity) {
                    *rows.entry(entity.table.clone()).or_default() += batch.batch.num_rows();
                }
                batches.push((target.clone(), batch));
            }
        }
        let object = self.key.to_owned();
        let records = entries.len();
        Ok((
            ObjectReport {
                object,
                records,
                rows,
                moved_to: None,
                remaining,
            },
            batches,
        ))
    }

    fn push(
        &self,
        entry: &QuarantineEntry,
        pipelines: &mut BTreeMap<Target, Pipeline>,
    ) -> Outcome<Result<(), Reject>> {
        if entry.source == Origin::IncrementalExport {
            // Its item belongs into the baseline at the end of its window, if there is one.
            let label = layout::export_label(entry.at);
            if !label.is_some_and(|label| self.baselines.contains(&label)) {
                return Ok(Err(malformed(
                    "no baseline ends with this incremental export: convert it again with \
                     `dynalake export convert --replace`, together with those that were rolled with it",
                )));
            }
        }
        let (target, partitioning) = match &entry.origin {
            RecordOrigin::Stream { .. } => (Target::Changes, Partitioning::ByDay),
            RecordOrigin::Export { export_id, .. } => match layout::export_label(entry.at) {
                Some(label) => (
                    Target::Snapshot {
                        export_id: export_id.clone(),
                        label,
                    },
                    Partitioning::Whole,
                ),
                None => return Ok(Err(malformed("the export's time has no label"))),
            },
        };
        let pipeline = match pipelines.entry(target) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let pipeline = Pipeline::new(Arc::clone(self.catalog), self.secrets, partitioning)
                    .map_err(Failure::usage)?;
                place.insert(pipeline)
            }
        };
        Ok(match &entry.origin {
            RecordOrigin::Stream { arn } => push_stream(entry, arn.as_deref(), pipeline),
            RecordOrigin::Export { data_file, .. } => push_line(entry, data_file, pipeline),
        })
    }

    async fn put(&self, store: &Store, batches: &[(Target, TableBatch)]) -> Outcome<()> {
        let mut written = Vec::new();
        for (target, batch) in batches {
            let Some(entity) = self.catalog.entities.get(batch.entity) else {
                continue;
            };
            let key = match (target, batch.day) {
                (Target::Snapshot { export_id, label }, _) => {
                    self.snapshot_key(&entity.table, export_id, label)
                }
                (Target::Changes, Some(day)) => layout::change_key(entity, day, &batch.batch),
                // Changes are always divided by day.
                (Target::Changes, None) => continue,
            };
            let body = encode_batch(entity, &batch.batch).map_err(Failure::findings)?;
            store.put(&key, Bytes::from(body)).await?;
            written.push(key);
        }
        // An earlier replay, with other schemas, may have put the same items into other tables.
        for (target, _) in batches {
            let Target::Snapshot { export_id, label } = target else {
                continue;
            };
            for entity in &self.catalog.entities {
                let key = self.snapshot_key(&entity.table, export_id, label);
                if !written.contains(&key) && store.head(&key).await?.is_some() {
                    store.delete(&key).await?;
                }
            }
        }
        Ok(())
    }

    /// One object per table for all records of the quarantine object, so that a later replay
    /// replaces it: snapshot rows are not told apart by readers.
    fn snapshot_key(&self, table: &str, export_id: &str, label: &str) -> String {
        let name = self.key.rsplit('/').next().unwrap_or(self.key);
        let name = name.strip_suffix(".jsonl").unwrap_or(name);
        layout::snapshot_key(table, label, &format!("{export_id}-replayed-{name}"), 0)
    }
}

/// A line of an export, in the format that the name of its data file tells.
fn push_line(
    entry: &QuarantineEntry,
    data_file: &str,
    pipeline: &mut Pipeline,
) -> Result<(), Reject> {
    // Rows that were decoded again for a newer baseline are in files of the lake's own, as JSON.
    let format = DataFormat::of_file(data_file).unwrap_or(DataFormat::Json);
    let mut lines = LineReader::new(format);
    let json = lines.json(&entry.payload)?;
    if entry.source == Origin::IncrementalExport {
        replayed_change(line::change(json, entry.at)?, entry.at, pipeline)
    } else {
        replayed(line::snapshot(json, entry.at)?, pipeline)
    }
}

fn push_stream(
    entry: &QuarantineEntry,
    arn: Option<&str>,
    pipeline: &mut Pipeline,
) -> Result<(), Reject> {
    let payload =
        std::str::from_utf8(&entry.payload).map_err(|_| malformed("the record is not UTF-8"))?;
    let event = OpenEvent {
        records: Cow::Owned(format!("[{payload}]")),
        arn: arn.map(Cow::Borrowed),
    };
    let records = read_records(&event).map_err(|error| malformed(&error.to_string()))?;
    let [record] = records.as_slice() else {
        return Err(malformed("the payload is not one record"));
    };
    let at = record.creation_ms.unwrap_or(entry.at);
    replayed(record.change_record(at, Origin::Replay)?, pipeline)
}

fn replayed(record: ChangeRecord<'_>, pipeline: &mut Pipeline) -> Result<(), Reject> {
    pipeline
        .push(&ChangeRecord {
            origin: Origin::Replay,
            ..record
        })
        .map(|_rows| ())
}

/// A change of an incremental export, as the item of the baseline that it led to. A delete leaves
/// nothing, as in the baseline.
fn replayed_change(
    record: ChangeRecord<'_>,
    at: i64,
    pipeline: &mut Pipeline,
) -> Result<(), Reject> {
    if record.new_image.is_none() {
        return Ok(());
    }
    let operation = Operation::Snapshot;
    replayed(
        ChangeRecord {
            operation,
            at,
            ..record
        },
        pipeline,
    )
}

fn malformed(message: &str) -> Reject {
    Reject::new(ReasonCode::MalformedRecord, message)
}

/// Takes an object out of quarantine; what it held stays readable under `quarantine/replayed/`.
async fn set_aside(store: &Store, key: &str) -> Outcome<String> {
    let to = key.replacen("quarantine/", "quarantine/replayed/", 1);
    if let Some(body) = store.get(key).await? {
        store.put(&to, body).await?;
        store.delete(key).await?;
    }
    Ok(to)
}

fn print(report: &ReplayReport, printer: &mut Printer) -> Outcome<()> {
    let mut sheet = Sheet::new([
        ("object", Align::Left),
        ("records", Align::Right),
        ("rows", Align::Left),
        ("remaining", Align::Right),
        ("moved to", Align::Left),
    ]);
    for object in &report.objects {
        let rows = object
            .rows
            .iter()
            .map(|(table, rows)| format!("{table} {rows}"));
        sheet.row([
            object.object.clone(),
            object.records.to_string(),
            rows.collect::<Vec<_>>().join(", "),
            object.remaining.len().to_string(),
            object.moved_to.clone().unwrap_or_default(),
        ]);
    }
    printer.table(&sheet)?;
    let remaining: usize = report
        .objects
        .iter()
        .map(|object| object.remaining.len())
        .sum();
    for object in &report.objects {
        for one in &object.remaining {
            let path = one
                .path
                .as_deref()
                .map(|path| format!(" at `{path}`"))
                .unwrap_or_default();
            printer.line(format!(
                "{} line {}: {}: {}{path}",
                object.object, one.line, one.reason, one.message
            ))?;
        }
    }
    if report.dry_run {
        printer.note("nothing was written (`--dry-run`)");
    }
    if remaining > 0 {
        let remaining = number(u64::try_from(remaining).unwrap_or(u64::MAX));
        printer.note(format!("{remaining} records stay in quarantine"));
    }
    Ok(())
}
