//! `dynalake inspect OBJECT`: what is in one Parquet object. Never shows a value of its rows:
//! statistics are said to be there, not printed.

use std::collections::BTreeSet;
use std::path::Path;

use dynalake_pipeline::store::Store;
use parquet::basic::LogicalType;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::Type;
use serde::Serialize;

use crate::args::{Format, InspectArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::object;
use crate::output::{Align, Printer, Sheet, bytes, number};

/// Longest footer value shown in a table, in characters.
const VALUE: usize = 60;

#[derive(Debug, Serialize)]
struct ObjectReport {
    object: String,
    bytes: u64,
    rows: i64,
    created_by: Option<String>,
    footer: Vec<KeyValue>,
    schema: Vec<FieldReport>,
    row_groups: Vec<RowGroupReport>,
    columns: Vec<ColumnReport>,
}

#[derive(Debug, Serialize)]
struct KeyValue {
    key: String,
    value: Option<String>,
}

#[derive(Debug, Serialize)]
struct FieldReport {
    /// Path of names, joined by dots.
    path: String,
    depth: usize,
    repetition: Option<String>,
    physical_type: Option<String>,
    logical_type: Option<String>,
    field_id: Option<i32>,
}

#[derive(Debug, Serialize)]
struct RowGroupReport {
    rows: i64,
    bytes: i64,
    compressed_bytes: i64,
    sorted_by: Vec<String>,
}

/// A leaf column over all row groups.
#[derive(Debug, Default, Serialize)]
struct ColumnReport {
    path: String,
    encodings: BTreeSet<String>,
    compression: BTreeSet<String>,
    bytes: i64,
    compressed_bytes: i64,
    values: i64,
    nulls: Option<u64>,
    min_max: bool,
    page_index: bool,
    bloom_filter: bool,
}

pub(super) async fn run(args: &InspectArgs, printer: &mut Printer) -> Outcome {
    let (store, key) = locate(args).await?;
    let meta = store.head(&key).await?.ok_or_else(|| {
        Failure::usage(format!("`{}` does not exist", store.address(&key)))
            .hint("objects lie under `changes/` and `snapshot/` of a lake")
    })?;
    let footer = object::footer(&store, &key, meta.size).await?;
    let report = report(store.address(&key), footer.size, &footer.metadata);
    match args.format {
        Format::Json => printer.json(&report)?,
        Format::Table => print(&report, printer)?,
    }
    Ok(Exit::Ok)
}

/// The store an object is in, and its key there.
async fn locate(args: &InspectArgs) -> Outcome<(Store, String)> {
    if let Some(uri) = &args.lake {
        return Ok((lake::existing(uri, &args.s3).await?, args.object.clone()));
    }
    if let Some((bucket, key)) = args
        .object
        .strip_prefix("s3://")
        .and_then(|it| it.split_once('/'))
    {
        return Ok((
            lake::existing(&format!("s3://{bucket}"), &args.s3).await?,
            key.to_owned(),
        ));
    }
    let path = Path::new(args.object.strip_prefix("file://").unwrap_or(&args.object));
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|_| !path.is_dir());
    let Some(name) = name else {
        return Err(
            Failure::usage(format!("`{}` is not the name of an object", args.object))
                .hint("give one Parquet file; `dynalake tables` shows a whole lake"),
        );
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    Ok((
        Store::local(folder.unwrap_or(Path::new("."))),
        name.to_owned(),
    ))
}

fn report(object: String, size: u64, metadata: &ParquetMetaData) -> ObjectReport {
    let file = metadata.file_metadata();
    let mut schema = Vec::new();
    for field in file.schema().get_fields() {
        describe(field, "", 0, &mut schema);
    }
    let leaves: Vec<String> = file
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.path().string())
        .collect();
    ObjectReport {
        object,
        bytes: size,
        rows: file.num_rows(),
        created_by: file.created_by().map(str::to_owned),
        footer: file
            .key_value_metadata()
            .into_iter()
            .flatten()
            .map(|pair| KeyValue {
                key: pair.key.clone(),
                value: pair.value.clone(),
            })
            .collect(),
        schema,
        row_groups: metadata
            .row_groups()
            .iter()
            .map(|group| row_group(group, &leaves))
            .collect(),
        columns: (0..leaves.len())
            .map(|leaf| column(leaf, metadata))
            .collect(),
    }
}

fn describe(field: &Type, parent: &str, depth: usize, out: &mut Vec<FieldReport>) {
    let info = field.get_basic_info();
    let path = if parent.is_empty() {
        field.name().to_owned()
    } else {
        format!("{parent}.{}", field.name())
    };
    let physical = match field {
        Type::PrimitiveType {
            physical_type,
            type_length,
            ..
        } if *type_length > 0 => Some(format!("{physical_type}({type_length})")),
        Type::PrimitiveType { physical_type, .. } => Some(physical_type.to_string()),
        Type::GroupType { .. } => None,
    };
    out.push(FieldReport {
        path: path.clone(),
        depth,
        repetition: info.has_repetition().then(|| info.repetition().to_string()),
        physical_type: physical,
        logical_type: info.logical_type_ref().map(logical),
        field_id: info.has_id().then(|| info.id()),
    });
    if field.is_group() {
        for child in field.get_fields() {
            describe(child, &path, depth + 1, out);
        }
    }
}

fn logical(ty: &LogicalType) -> String {
    match ty {
        LogicalType::Decimal(decimal) => {
            format!("DECIMAL({},{})", decimal.precision, decimal.scale)
        }
        LogicalType::Timestamp(time) => {
            let zone = if time.is_adjusted_to_u_t_c {
                "UTC"
            } else {
                "local"
            };
            format!("TIMESTAMP({:?},{zone})", time.unit)
        }
        LogicalType::Integer(int) => {
            format!(
                "{}INT({})",
                if int.is_signed { "" } else { "U" },
                int.bit_width
            )
        }
        other => format!("{other:?}").to_uppercase(),
    }
}

fn row_group(group: &RowGroupMetaData, leaves: &[String]) -> RowGroupReport {
    let sorted_by = group
        .sorting_columns()
        .into_iter()
        .flatten()
        .map(|sorting| {
            let name = usize::try_from(sorting.column_idx)
                .ok()
                .and_then(|index| leaves.get(index));
            let name = name.map_or_else(|| sorting.column_idx.to_string(), Clone::clone);
            let order = if sorting.descending { " DESC" } else { "" };
            let nulls = if sorting.nulls_first {
                " NULLS FIRST"
            } else {
                ""
            };
            format!("{name}{order}{nulls}")
        });
    RowGroupReport {
        rows: group.num_rows(),
        bytes: group.total_byte_size(),
        compressed_bytes: group.compressed_size(),
        sorted_by: sorted_by.collect(),
    }
}

fn column(leaf: usize, metadata: &ParquetMetaData) -> ColumnReport {
    let chunks: Vec<&ColumnChunkMetaData> = metadata
        .row_groups()
        .iter()
        .filter_map(|group| group.columns().get(leaf))
        .collect();
    let all = |test: fn(&ColumnChunkMetaData) -> bool| {
        !chunks.is_empty() && chunks.iter().all(|chunk| test(chunk))
    };
    // A chunk of NULLs only has no least and greatest value.
    let has_min_max = |chunk: &ColumnChunkMetaData| {
        chunk.statistics().is_some_and(|it| {
            let nulls = it
                .null_count_opt()
                .and_then(|nulls| i64::try_from(nulls).ok());
            it.min_bytes_opt().is_some() && it.max_bytes_opt().is_some()
                || nulls == Some(chunk.num_values())
        })
    };
    ColumnReport {
        path: chunks
            .first()
            .map_or_else(String::new, |chunk| chunk.column_path().string()),
        encodings: chunks
            .iter()
            .flat_map(|chunk| chunk.encodings())
            .map(|encoding| encoding.to_string())
            .collect(),
        compression: chunks
            .iter()
            .map(|chunk| format!("{:?}", chunk.compression_codec()))
            .collect(),
        bytes: chunks.iter().map(|chunk| chunk.uncompressed_size()).sum(),
        compressed_bytes: chunks.iter().map(|chunk| chunk.compressed_size()).sum(),
        values: chunks.iter().map(|chunk| chunk.num_values()).sum(),
        nulls: chunks
            .iter()
            .map(|chunk| chunk.statistics()?.null_count_opt())
            .sum(),
        min_max: all(has_min_max),
        page_index: all(|chunk| chunk.column_index_range().is_some()),
        bloom_filter: all(|chunk| chunk.bloom_filter_offset().is_some()),
    }
}

fn print(report: &ObjectReport, printer: &mut Printer) -> Outcome<()> {
    let rows = number(count(report.rows));
    printer.line(&report.object)?;
    printer.line(format!("{rows} rows, {}", bytes(report.bytes)))?;
    if let Some(writer) = &report.created_by {
        printer.line(format!("written by {writer}"))?;
    }
    let mut schema = Sheet::new([
        ("schema", Align::Left),
        ("repetition", Align::Left),
        ("physical", Align::Left),
        ("logical", Align::Left),
        ("field id", Align::Right),
    ]);
    for field in &report.schema {
        let name = field.path.rsplit_once('.').filter(|_| field.depth > 0);
        let name = name.map_or(field.path.as_str(), |(_, name)| name);
        schema.row([
            format!("{}{name}", "· ".repeat(field.depth)),
            field.repetition.clone().unwrap_or_default(),
            field.physical_type.clone().unwrap_or_default(),
            field.logical_type.clone().unwrap_or_default(),
            field.field_id.map_or_else(String::new, |id| id.to_string()),
        ]);
    }
    printer.line("")?;
    printer.table(&schema)?;

    let mut groups = Sheet::new([
        ("row group", Align::Right),
        ("rows", Align::Right),
        ("bytes", Align::Right),
        ("compressed", Align::Right),
        ("sorted by", Align::Left),
    ]);
    for (index, group) in report.row_groups.iter().enumerate() {
        groups.row([
            index.to_string(),
            number(count(group.rows)),
            bytes(count(group.bytes)),
            bytes(count(group.compressed_bytes)),
            group.sorted_by.join(", "),
        ]);
    }
    printer.line("")?;
    printer.table(&groups)?;

    let mut columns = Sheet::new([
        ("column", Align::Left),
        ("values", Align::Right),
        ("nulls", Align::Right),
        ("bytes", Align::Right),
        ("compressed", Align::Right),
        ("compression", Align::Left),
        ("encodings", Align::Left),
        ("min/max", Align::Left),
        ("page index", Align::Left),
    ]);
    let yes = |yes: bool| String::from(if yes { "yes" } else { "no" });
    for column in &report.columns {
        let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        columns.row([
            column.path.clone(),
            number(count(column.values)),
            column.nulls.map_or_else(|| "?".to_owned(), number),
            bytes(count(column.bytes)),
            bytes(count(column.compressed_bytes)),
            list(&column.compression),
            list(&column.encodings),
            yes(column.min_max),
            yes(column.page_index),
        ]);
    }
    printer.line("")?;
    printer.table(&columns)?;

    let mut footer = Sheet::new([("footer key", Align::Left), ("value", Align::Left)]);
    for pair in &report.footer {
        let value = pair.value.clone().unwrap_or_default();
        let length = value.chars().count();
        let value = if length > VALUE {
            format!(
                "{}… ({length} characters)",
                value.chars().take(VALUE).collect::<String>()
            )
        } else {
            value
        };
        footer.row([pair.key.clone(), value]);
    }
    if !footer.is_empty() {
        printer.line("")?;
        printer.table(&footer)?;
    }
    Ok(())
}

/// Parquet's signed counts; a negative one is a broken file and shown as nothing.
fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
