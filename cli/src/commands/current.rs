//! `dynalake current LAKE TABLE`: the rows of a table as it is, or was.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dynalake_pipeline::current::{AsOf, CurrentError, CurrentReport, MergeOptions, TableState};
use dynalake_pipeline::encode::{ObjectMetadata, ObjectWriter};
use dynalake_pipeline::shell::quoted;
use dynalake_pipeline::{number, time};
use dynalake_schemas::Catalog;

use super::rows::{self, RowWriter};
use crate::args::{CurrentArgs, CurrentFormat, RowFormat};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{self, Printer};

/// Rows of a Parquet row group.
const ROW_GROUP_ROWS: usize = 65_536;

pub(super) async fn run(args: &CurrentArgs, printer: &mut Printer) -> Outcome {
    let as_of = match &args.as_of {
        Some(text) => AsOf::Time(instant(text)?),
        None => AsOf::Now,
    };
    let store = lake::existing(&args.lake, &args.s3).await?;
    let mut metadata = ObjectMetadata {
        entity: args.table.clone(),
        table: args.table.clone(),
        schema_version: 0,
    };
    let mut schema = None;
    let of_table = |catalog: &Catalog| {
        let mut entities = catalog.entities.iter();
        entities.find(|entity| entity.table == args.table).cloned()
    };
    let entity = if let Some(folder) = &args.schemas {
        let catalog = catalog::load(folder)?;
        let entity = of_table(catalog.as_ref()).ok_or_else(|| {
            Failure::usage(format!(
                "`{}` has no table `{}`",
                folder.display(),
                args.table
            ))
        })?;
        Some(entity)
    } else {
        // A table that began with newer schemas is read as its files are.
        catalog::of_lake_if_kept(&store)
            .await?
            .and_then(|kept| of_table(&kept))
    };
    if let Some(entity) = &entity {
        metadata = ObjectMetadata::from(entity);
        schema = Some(entity.arrow_schema());
    }
    let spool = spool(args.spool.as_deref())?;
    let options = MergeOptions {
        memory_bytes: usize::try_from(args.memory_mb).unwrap_or(usize::MAX) << 20,
        spool: spool.path().to_owned(),
    };
    let state = TableState::open(&store, metadata.clone(), schema, as_of, &options).await;
    let Some(state) = state.map_err(failure)? else {
        return Err(
            Failure::usage(format!("the lake has no rows of a table `{}`", args.table)).hint(
                format!(
                    "`dynalake tables {}` lists what there is",
                    quoted(&args.lake)
                ),
            ),
        );
    };
    let state = match args.schemas {
        Some(_) => state,
        None => state.with_columns_of_files(),
    };
    let report = match (&args.format, &args.output) {
        (CurrentFormat::Parquet, Some(path)) => write_parquet(state, &metadata, path)?,
        (CurrentFormat::Parquet, None) => {
            return Err(Failure::usage("`--format parquet` needs `--output FILE`"));
        }
        (_, Some(_)) => {
            return Err(Failure::usage("`--output` is for `--format parquet`")
                .hint("redirect the output instead: `… --format csv > rows.csv`"));
        }
        (CurrentFormat::Table, None) => print_table(state, args.limit, printer)?,
        (CurrentFormat::Json, None) => print_rows(state, RowFormat::Json, printer)?,
        (CurrentFormat::Csv, None) => print_rows(state, RowFormat::Csv, printer)?,
    };
    let baseline = match &report.baseline {
        Some(label) => format!("baseline {label} and {}", changes(&report)),
        None => format!("{} (no baseline yet)", changes(&report)),
    };
    printer.note(format!(
        "{} rows, from {baseline}",
        output::number(report.rows)
    ));
    Ok(Exit::Ok)
}

fn changes(report: &CurrentReport) -> String {
    format!("{} change rows", output::number(report.changes))
}

/// `2026-05-01T00:00:00Z`, or epoch seconds or milliseconds.
pub(super) fn instant(text: &str) -> Outcome<i64> {
    if let Some((at, _)) = time::parse_iso8601(text) {
        return Ok(at);
    }
    // Seconds until the year 5138, milliseconds from 1973 on.
    let decimal = number::Decimal::parse(text).ok();
    let seconds = decimal.and_then(|number| time::from_epoch(number, 0));
    let millis = decimal.and_then(|number| time::from_epoch(number, 3));
    let held = match millis {
        Some((at, _)) if at.abs() >= 100_000_000_000 => millis,
        _ => seconds,
    };
    held.map(|(at, _)| at).ok_or_else(|| {
        Failure::usage(format!("`{text}` is not an instant"))
            .hint("write `2026-05-01T00:00:00Z`, or seconds or milliseconds since 1970")
    })
}

fn spool(folder: Option<&Path>) -> Outcome<tempfile::TempDir> {
    let made = match folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    made.map_err(|error| Failure::usage(format!("no temporary folder can be made: {error}")))
}

fn failure(error: CurrentError) -> Failure {
    match error {
        CurrentError::Store(error) => Failure::from(error),
        CurrentError::Sink(message) => Failure::usage(message),
        error => Failure::remote(error),
    }
}

fn names(schema: &SchemaRef) -> Vec<String> {
    schema
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

/// The first rows, for people.
fn print_table(state: TableState, limit: usize, printer: &mut Printer) -> Outcome<CurrentReport> {
    let columns = names(state.schema());
    let limit = if limit == 0 { usize::MAX } else { limit };
    let (mut batches, mut shown) = (Vec::new(), 0);
    let report = state.read(&mut |batch| {
        let batch = batch.slice(0, batch.num_rows().min(limit - shown));
        shown += batch.num_rows();
        if batch.num_rows() > 0 {
            batches.push(batch);
        }
        Ok(())
    });
    let report = report.map_err(failure)?;
    let sheet = rows::table(&batches, &columns, false, false);
    if !sheet.is_empty() {
        printer.rows(&sheet)?;
    }
    if u64::try_from(shown).is_ok_and(|shown| shown < report.rows) {
        printer.note(format!("the first {shown} rows; `--limit 0` prints all"));
    }
    Ok(report)
}

fn print_rows(
    state: TableState,
    format: RowFormat,
    printer: &mut Printer,
) -> Outcome<CurrentReport> {
    let mut writer = RowWriter::begin(format, names(state.schema()), printer)?;
    let mut broken = None;
    let report = state.read(&mut |batch| {
        writer.write(&batch, printer).map_err(|error| {
            let message = error.to_string();
            broken = Some(error);
            CurrentError::Sink(message)
        })
    });
    if let Some(error) = broken {
        return Err(error.into());
    }
    let report = report.map_err(failure)?;
    writer.end(printer)?;
    Ok(report)
}

/// One Parquet file, sorted by key, with the table's schema.
fn write_parquet(
    state: TableState,
    metadata: &ObjectMetadata,
    path: &Path,
) -> Outcome<CurrentReport> {
    let unwritable =
        |error: &dyn std::fmt::Display| Failure::usage(format!("`{}`: {error}", path.display()));
    let file = File::create(path).map_err(|error| unwritable(&error))?;
    let schema = Arc::clone(state.schema());
    let mut writer = ObjectWriter::with_schema(schema, metadata, BufWriter::new(file))
        .map_err(|error| unwritable(&error))?;
    let mut pending: Vec<RecordBatch> = Vec::new();
    let mut flush = |pending: &mut Vec<RecordBatch>| -> Result<(), CurrentError> {
        if let Some(first) = pending.first() {
            let batch = arrow::compute::concat_batches(&first.schema(), pending.iter())
                .map_err(|error| CurrentError::Merge(error.to_string()))?;
            writer.write(&batch)?;
            pending.clear();
        }
        Ok(())
    };
    let report = state.read(&mut |batch| {
        pending.push(batch);
        let rows: usize = pending.iter().map(RecordBatch::num_rows).sum();
        if rows >= ROW_GROUP_ROWS {
            flush(&mut pending)
        } else {
            Ok(())
        }
    });
    let report = report.map_err(failure)?;
    flush(&mut pending).map_err(failure)?;
    let (file, _) = writer.finish().map_err(|error| unwritable(&error))?;
    file.into_inner().map_err(|error| unwritable(&error))?;
    Ok(report)
}
