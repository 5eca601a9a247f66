//! `dynalake show LAKE TABLE`: rows of a snapshot, or changes.

mod changes;
mod condition;
mod scan;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use arrow::array::RecordBatch;
use dynalake_pipeline::baseline;
use dynalake_pipeline::store::{ObjectMeta, Store};

use self::changes::Changes;
use self::condition::Condition;
use self::scan::Scanner;
use super::rows::{self, RowWriter};
use crate::args::{RowFormat, ShowArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::exports;
use crate::lake;
use crate::object;
use crate::output::Printer;
use crate::place::Place;
use crate::suggest;

/// Footers read at a time where not all objects may be needed.
const CHUNK: usize = 16;

/// Objects of one partition (an export, or a day), sorted by key.
type Partition = Vec<ObjectMeta>;

pub(super) async fn run(args: &ShowArgs, printer: &mut Printer) -> Outcome {
    let conditions = args
        .conditions
        .iter()
        .map(|text| Condition::parse(text))
        .collect::<Outcome<Vec<_>>>()?;
    let columns: Vec<String> = args
        .columns
        .iter()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    let store = lake::existing(&args.lake, &args.s3).await?;
    let partitions = if args.changes {
        days(&store, args).await?
    } else {
        vec![snapshot(&store, args, printer).await?]
    };
    let extra: &[&str] = if args.changes { &changes::COLUMNS } else { &[] };
    let mut show = Show {
        scanner: Scanner::new(&store, &conditions, &columns, extra),
        store: &store,
        args,
        columns: &columns,
        conditions: &conditions,
        partitions: &partitions,
    };
    show.run(printer).await
}

/// One run of the command.
struct Show<'a> {
    scanner: Scanner<'a>,
    store: &'a Store,
    args: &'a ShowArgs,
    columns: &'a [String],
    conditions: &'a [Condition],
    partitions: &'a [Partition],
}

impl Show<'_> {
    async fn run(&mut self, printer: &mut Printer) -> Outcome {
        let format = self.args.format;
        if self.args.limit == 0 && format != RowFormat::Table {
            self.see_all().await?;
            self.check_columns().await?;
            return self.stream(printer).await;
        }
        let (batches, more) = if self.args.changes {
            self.newest_changes().await?
        } else {
            self.first_rows().await?
        };
        self.check_columns().await?;
        let columns = self.printed_columns();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if format == RowFormat::Table {
            let asked = !self.columns.is_empty();
            let sheet = rows::table(&batches, &columns, asked, self.args.changes);
            if sheet.is_empty() {
                printer.note("no rows");
            } else {
                printer.rows(&sheet)?;
            }
        } else {
            let mut writer = RowWriter::begin(format, columns, printer)?;
            for batch in &batches {
                writer.write(batch, printer)?;
            }
            writer.end(printer)?;
        }
        if more {
            let which = if self.args.changes { "newest" } else { "first" };
            printer.note(format!("the {which} {rows} rows; `--limit 0` prints all"));
        }
        Ok(Exit::Ok)
    }

    /// The first rows of a snapshot, and whether there are more.
    async fn first_rows(&mut self) -> Outcome<(Vec<RecordBatch>, bool)> {
        let limit = if self.args.limit == 0 {
            usize::MAX
        } else {
            self.args.limit
        };
        let (mut batches, mut rows, mut more) = (Vec::new(), 0, false);
        for object in self
            .partitions
            .iter()
            .flat_map(|partition| partition.chunks(CHUNK))
        {
            for footer in object::footers(self.store, &refs(object)).await? {
                let flow = self
                    .scanner
                    .scan(&footer, |batch| {
                        let room = limit - rows;
                        more = more || batch.num_rows() > room;
                        let batch = batch.slice(0, batch.num_rows().min(room));
                        rows += batch.num_rows();
                        if batch.num_rows() > 0 {
                            batches.push(batch);
                        }
                        Ok(if more {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        })
                    })
                    .await?;
                if flow.is_break() {
                    return Ok((batches, true));
                }
            }
        }
        Ok((batches, more))
    }

    /// The newest changes, oldest first, and whether there are more. Days are read from the newest
    /// one back, and only as many as needed: an object's day is that of its rows' `_at`.
    async fn newest_changes(&mut self) -> Outcome<(Vec<RecordBatch>, bool)> {
        let mut changes = Changes::new((self.args.limit > 0).then_some(self.args.limit));
        for (index, day) in self.partitions.iter().enumerate().rev() {
            self.scan_day(day, &mut changes).await?;
            if changes.is_full() && index > 0 {
                return Ok((changes.take(), true));
            }
        }
        let batches = changes.take();
        Ok((batches, changes.has_dropped()))
    }

    async fn scan_day(&mut self, day: &Partition, changes: &mut Changes) -> Outcome<()> {
        for objects in day.chunks(CHUNK) {
            for footer in object::footers(self.store, &refs(objects)).await? {
                self.scanner
                    .scan_all(&footer, |batch| {
                        changes.push(batch);
                        Ok(())
                    })
                    .await?;
            }
        }
        Ok(())
    }

    /// All rows, printed as they are read: of changes no more than a day is held in memory.
    async fn stream(&mut self, printer: &mut Printer) -> Outcome {
        let mut writer = RowWriter::begin(self.args.format, self.printed_columns(), printer)?;
        let mut changes = Changes::new(None);
        for partition in self.partitions {
            if self.args.changes {
                self.scan_day(partition, &mut changes).await?;
                for batch in changes.take() {
                    writer.write(&batch, printer)?;
                }
                continue;
            }
            for objects in partition.chunks(CHUNK) {
                for footer in object::footers(self.store, &refs(objects)).await? {
                    self.scanner
                        .scan_all(&footer, |batch| Ok(writer.write(&batch, printer)?))
                        .await?;
                }
            }
        }
        writer.end(printer)?;
        Ok(Exit::Ok)
    }

    fn printed_columns(&self) -> Vec<String> {
        if self.columns.is_empty() {
            self.scanner.seen().to_vec()
        } else {
            self.columns.to_vec()
        }
    }

    /// Reads the footers of all objects for their columns.
    async fn see_all(&mut self) -> Outcome<()> {
        for objects in self
            .partitions
            .iter()
            .flat_map(|partition| partition.chunks(CHUNK))
        {
            for footer in object::footers(self.store, &refs(objects)).await? {
                self.scanner.see(&footer)?;
            }
        }
        Ok(())
    }

    /// Refuses columns that no object has.
    async fn check_columns(&mut self) -> Outcome<()> {
        let unknown = |seen: &[String]| {
            let asked = self
                .columns
                .iter()
                .chain(self.conditions.iter().map(|c| &c.column));
            asked.into_iter().find(|name| !seen.contains(name)).cloned()
        };
        if unknown(self.scanner.seen()).is_none() {
            return Ok(());
        }
        self.see_all().await?;
        let seen = self.scanner.seen();
        if seen.is_empty() {
            // No objects, no columns: a baseline without rows of this table.
            return Ok(());
        }
        let asked = self
            .columns
            .iter()
            .chain(self.conditions.iter().map(|c| &c.column));
        let Some(name) = asked.into_iter().find(|name| !seen.contains(name)) else {
            return Ok(());
        };
        let failure = Failure::usage(format!(
            "table `{}` has no column `{name}`",
            self.args.table
        ));
        Err(
            match suggest::nearest(name, seen.iter().map(String::as_str)) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!("its columns are: {}", seen.join(", "))),
            },
        )
    }
}

fn refs(objects: &[ObjectMeta]) -> Vec<&ObjectMeta> {
    objects.iter().collect()
}

/// Change objects by day, oldest day first.
async fn days(store: &Store, args: &ShowArgs) -> Outcome<Vec<Partition>> {
    let mut days: BTreeMap<String, Partition> = BTreeMap::new();
    for object in list(store, &format!("changes/{}/", args.table)).await? {
        if let Place::Changes { day, .. } = Place::of(&object.key) {
            days.entry(day.to_owned()).or_default().push(object.clone());
        }
    }
    if days.is_empty() {
        let snapshots = list(store, &format!("snapshot/{}/", args.table)).await?;
        if snapshots.is_empty() {
            return Err(unknown_table(store, args).await?);
        }
        return Err(
            Failure::usage(format!("table `{}` has no changes yet", args.table))
                .hint("leave out `--changes` to see its snapshot"),
        );
    }
    Ok(days.into_values().collect())
}

/// Objects of the snapshot to show: the current baseline's, or those asked for.
async fn snapshot(store: &Store, args: &ShowArgs, printer: &mut Printer) -> Outcome<Partition> {
    let table = args.table.as_str();
    let mut exports: BTreeMap<String, Partition> = BTreeMap::new();
    for object in list(store, &format!("snapshot/{table}/")).await? {
        if let Place::Snapshot { export, .. } = Place::of(&object.key) {
            exports
                .entry(export.to_owned())
                .or_default()
                .push(object.clone());
        }
    }
    let current = baseline::current(store, None).await?;
    // A baseline of which this table has no rows is one all the same.
    let is_empty = exports.is_empty()
        && !current
            .as_ref()
            .is_some_and(|record| args.export.is_none() && record.tables.contains_key(table));
    if is_empty {
        if list(store, &format!("changes/{table}/")).await?.is_empty() {
            return Err(unknown_table(store, args).await?);
        }
        return Err(
            Failure::usage(format!("table `{table}` has no snapshot yet, only changes"))
                .hint("add `--changes` to see them")
                .hint("`dynalake export convert` makes a snapshot from a table export"),
        );
    }
    let complete = exports::complete(store).await?;
    let known = exports
        .keys()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let chosen = if let Some(label) = &args.export {
        exports.remove_entry(label).ok_or_else(|| {
            Failure::usage(format!(
                "table `{table}` has no snapshot of export `{label}`"
            ))
            .hint(format!("its exports are: {known}"))
        })?
    } else {
        let current = current.ok_or_else(|| {
            Failure::usage(format!("no baseline of `{}` is committed yet", args.lake))
                .hint("finish and commit one: run the same `dynalake export convert` again")
                .hint(format!(
                    "or look at what is not committed with `--export`: {known}"
                ))
        })?;
        let objects = exports.remove(&current.label).unwrap_or_default();
        if args.format == RowFormat::Table {
            printer.note(format!("{table} as of baseline {}", current.label));
        }
        return Ok(objects);
    };
    let (label, objects) = chosen;
    if !complete.contains(&label) {
        printer.warning(format!(
            "the snapshot of export {label} is not complete: rows are missing"
        ));
    } else if args.format == RowFormat::Table {
        printer.note(format!("{table} as of export {label}"));
    }
    Ok(objects)
}

async fn list(store: &Store, prefix: &str) -> Outcome<Vec<ObjectMeta>> {
    let mut objects = store.list(prefix).await?;
    objects.retain(|object| object::is_parquet(&object.key));
    Ok(objects)
}

async fn unknown_table(store: &Store, args: &ShowArgs) -> Outcome<Failure> {
    let mut tables: Vec<String> = Vec::new();
    for prefix in ["changes/", "snapshot/"] {
        for object in list(store, prefix).await? {
            if let Place::Changes { table, .. } | Place::Snapshot { table, .. } =
                Place::of(&object.key)
                && !tables.iter().any(|known| known == table)
            {
                tables.push(table.to_owned());
            }
        }
    }
    tables.sort_unstable();
    let (lake, table) = (&args.lake, &args.table);
    if tables.is_empty() {
        return Ok(Failure::usage(format!("`{lake}` holds no tables")).hint(
            "is this the root of the lake, the folder that holds `changes/` and `snapshot/`?",
        ));
    }
    let failure = Failure::usage(format!("`{lake}` has no table `{table}`"));
    Ok(
        match suggest::nearest(table, tables.iter().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint(format!("its tables are: {}", tables.join(", "))),
        },
    )
}
