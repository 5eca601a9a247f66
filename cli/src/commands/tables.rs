//! `dynalake tables LAKE`: what is in a lake, from listings and Parquet footers.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::datatypes::TimestampMillisecondType;
use dynalake_pipeline::baseline::{self, BaselineRecord};
use dynalake_pipeline::compact::{self, ObjectCounts};
use dynalake_pipeline::shell::quoted;
use dynalake_pipeline::store::{ObjectMeta, Store};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use serde::Serialize;

use crate::args::{Format, TablesArgs};
use crate::cell;
use crate::exit::{Exit, Outcome};
use crate::exports;
use crate::lake;
use crate::object::{self, Footer};
use crate::output::{Align, Printer, Sheet, bytes, number};
use crate::place::Place;

/// What is known of a lake's exports.
struct Exports {
    complete: BTreeSet<String>,
    /// Oldest first.
    baselines: Vec<BaselineRecord>,
}

impl Exports {
    fn is_committed(&self, label: &str) -> bool {
        self.baselines.iter().any(|record| record.label == label)
    }

    fn is_current(&self, label: &str) -> bool {
        self.baselines
            .last()
            .is_some_and(|newest| newest.label == label)
    }
}

#[derive(Debug, Serialize)]
struct LakeReport {
    lake: String,
    /// Label of the baseline that readers take.
    baseline: Option<String>,
    tables: Vec<TableReport>,
    quarantine_objects: u64,
}

#[derive(Debug, Default, Serialize)]
struct TableReport {
    table: String,
    changes: ChangesReport,
    snapshots: Vec<SnapshotReport>,
}

#[derive(Debug, Default, Serialize)]
struct ChangesReport {
    days: u64,
    first_day: Option<String>,
    last_day: Option<String>,
    last_change: Option<String>,
    #[serde(skip)]
    last_change_ms: Option<i64>,
    objects: u64,
    /// Rows of the objects, a change that arrived twice twice.
    rows: u64,
    bytes: u64,
    /// Objects that a compaction has merged and that wait to be deleted; not counted above.
    superseded: ObjectCounts,
}

#[derive(Debug, Default, Serialize)]
struct SnapshotReport {
    export: String,
    /// Converted whole.
    complete: bool,
    /// A baseline.
    committed: bool,
    /// The baseline that readers take.
    current: bool,
    objects: u64,
    rows: u64,
    bytes: u64,
}

pub(super) async fn run(args: &TablesArgs, printer: &mut Printer) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    let exports = Exports {
        complete: exports::complete(&store).await?,
        baselines: baseline::list(&store).await?,
    };
    let mut objects = Vec::new();
    for prefix in ["changes/", "snapshot/"] {
        objects.extend(store.list(prefix).await?);
    }
    objects.retain(|object| {
        object::is_parquet(&object.key) && !matches!(Place::of(&object.key), Place::Other)
    });
    let superseded = take_superseded(&store, &mut objects).await?;
    let footers = object::footers(&store, &objects.iter().collect::<Vec<_>>()).await?;
    let quarantine = store.list("quarantine/").await?;
    let report = LakeReport {
        lake: args.lake.clone(),
        baseline: exports.baselines.last().map(|newest| newest.label.clone()),
        tables: tables(&footers, &exports, &superseded),
        quarantine_objects: count(
            quarantine
                .iter()
                .filter(|object| Place::of(&object.key) == Place::Quarantine)
                .count(),
        ),
    };
    match args.format {
        Format::Json => printer.json(&report)?,
        Format::Table => print(&report, printer)?,
    }
    Ok(Exit::Ok)
}

fn tables(
    footers: &[Footer],
    exports: &Exports,
    superseded: &BTreeMap<String, ObjectCounts>,
) -> Vec<TableReport> {
    let mut tables: BTreeMap<&str, TableReport> = BTreeMap::new();
    // Footers are sorted by key, so days and exports of a table come in order.
    for footer in footers {
        let rows = u64::try_from(footer.metadata.file_metadata().num_rows()).unwrap_or(0);
        match Place::of(&footer.key) {
            Place::Changes { table, day } => {
                let changes = &mut tables.entry(table).or_default().changes;
                if changes.last_day.as_deref() != Some(day) {
                    changes.days += 1;
                    changes.last_day = Some(day.to_owned());
                    changes.first_day.get_or_insert_with(|| day.to_owned());
                }
                changes.objects += 1;
                changes.rows += rows;
                changes.bytes += footer.size;
                changes.last_change_ms = changes.last_change_ms.max(last_change(footer));
                changes.last_change = changes.last_change_ms.map(cell::instant);
            }
            Place::Snapshot { table, export } => {
                let snapshots = &mut tables.entry(table).or_default().snapshots;
                if snapshots.last().is_none_or(|last| last.export != export) {
                    snapshots.push(SnapshotReport {
                        export: export.to_owned(),
                        complete: exports.complete.contains(export),
                        committed: exports.is_committed(export),
                        current: exports.is_current(export),
                        ..SnapshotReport::default()
                    });
                }
                if let Some(last) = snapshots.last_mut() {
                    last.objects += 1;
                    last.rows += rows;
                    last.bytes += footer.size;
                }
            }
            Place::Quarantine | Place::Other => {}
        }
    }
    tables
        .into_iter()
        .map(|(table, mut report)| {
            report.changes.superseded = superseded.get(table).copied().unwrap_or_default();
            table.clone_into(&mut report.table);
            report
        })
        .collect()
}

/// Takes the objects that others stand for out of a listing, and counts them per table.
async fn take_superseded(
    store: &Store,
    objects: &mut Vec<ObjectMeta>,
) -> Outcome<BTreeMap<String, ObjectCounts>> {
    let names: BTreeSet<String> = objects
        .iter()
        .filter_map(|object| match Place::of(&object.key) {
            Place::Changes { table, .. } => Some(table.to_owned()),
            _ => None,
        })
        .collect();
    let mut records = Vec::new();
    for table in &names {
        records.extend(compact::records(store, table).await?);
    }
    let told_apart = compact::live(std::mem::take(objects), &records);
    *objects = told_apart.live;
    let mut superseded: BTreeMap<String, ObjectCounts> = BTreeMap::new();
    for object in told_apart.superseded {
        if let Place::Changes { table, .. } = Place::of(&object.key) {
            let counts = superseded.entry(table.to_owned()).or_default();
            counts.objects += 1;
            counts.bytes += object.size;
        }
    }
    Ok(superseded)
}

/// Greatest `_at` of an object, from its statistics.
fn last_change(footer: &Footer) -> Option<i64> {
    let object = ArrowReaderMetadata::try_new(
        std::sync::Arc::clone(&footer.metadata),
        ArrowReaderOptions::default(),
    )
    .ok()?;
    let statistics =
        StatisticsConverter::try_new("_at", object.schema(), object.parquet_schema()).ok()?;
    let greatest = statistics
        .row_group_maxes(footer.metadata.row_groups())
        .ok()?;
    let greatest = greatest
        .as_primitive_opt::<TimestampMillisecondType>()?
        .clone();
    (0..greatest.len())
        .filter(|row| greatest.is_valid(*row))
        .map(|row| greatest.value(row))
        .max()
}

fn print(report: &LakeReport, printer: &mut Printer) -> Outcome<()> {
    if report.tables.is_empty() {
        printer.note(format!("`{}` holds no tables", report.lake));
        return Ok(());
    }
    let mut sheet = Sheet::new([
        ("table", Align::Left),
        ("days", Align::Right),
        ("change rows", Align::Right),
        ("last change", Align::Left),
        ("exports", Align::Right),
        ("baseline", Align::Left),
        ("baseline rows", Align::Right),
        ("objects", Align::Right),
        ("bytes", Align::Right),
    ]);
    for table in &report.tables {
        let (changes, snapshots) = (&table.changes, &table.snapshots);
        let current = snapshots.iter().find(|one| one.current);
        let objects = changes.objects + snapshots.iter().map(|one| one.objects).sum::<u64>();
        let size = changes.bytes + snapshots.iter().map(|one| one.bytes).sum::<u64>();
        sheet.row([
            table.table.clone(),
            number(changes.days),
            number(changes.rows),
            changes.last_change.clone().unwrap_or_default(),
            exports_text(snapshots),
            report.baseline.clone().unwrap_or_else(|| "none".to_owned()),
            match (current, &report.baseline) {
                (Some(current), _) => number(current.rows),
                (None, Some(_)) => number(0),
                (None, None) => String::new(),
            },
            number(objects),
            bytes(size),
        ]);
    }
    printer.table(&sheet)?;
    let superseded = || report.tables.iter().map(|table| table.changes.superseded);
    let objects: u64 = superseded().map(|counts| counts.objects).sum();
    if objects > 0 {
        printer.note(format!(
            "not counted: {} objects, {}, that were compacted and wait to be deleted",
            number(objects),
            bytes(superseded().map(|counts| counts.bytes).sum())
        ));
    }
    if report.quarantine_objects > 0 {
        printer.note(format!(
            "{} quarantine objects: see `dynalake quarantine list {}`",
            number(report.quarantine_objects),
            quoted(&report.lake)
        ));
    }
    Ok(())
}

fn exports_text(snapshots: &[SnapshotReport]) -> String {
    let remarks = [
        (
            snapshots.iter().filter(|one| !one.complete).count(),
            "incomplete",
        ),
        (
            snapshots
                .iter()
                .filter(|one| one.complete && !one.committed)
                .count(),
            "not committed",
        ),
    ];
    let remarks: Vec<String> = remarks
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    let all = number(count(snapshots.len()));
    if remarks.is_empty() {
        all
    } else {
        format!("{all} ({})", remarks.join(", "))
    }
}

fn count(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
