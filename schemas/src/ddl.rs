//! The catalog's tables: what Athena is told about a lake, as data and as DDL.
//!
//! Per entity two tables, over its changes (`x_changes`, partition column `dt`) and its snapshots
//! (`x_snapshot`, partition column `export`), and one over the quarantine. Partitions are projected,
//! so that none has to be registered: days by a range of dates; exports as `injected`, which asks
//! every query for a literal `export = '…'`. Property names are those of Athena's user guide
//! ("Partition projection"), table parts those of Glue ("Table" of its API).

use std::fmt::Write;

use crate::athena::{athena_type, ddl_type};
use crate::load::{QUARANTINE, UNMATCHED};
use crate::model::{Catalog, Entity};
use crate::row_columns;
use crate::tables::{changes_table, snapshot_table};

/// First day of the projected range of `dt`. A day before it is in no query's answer, and each day
/// after it costs an unfiltered query one listing; no dynalake lake is older.
pub const FIRST_DAY: &str = "2020-01-01";

/// A table of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// Name, without the database.
    pub name: String,
    /// What it holds.
    pub comment: String,
    /// Columns, without the partition column.
    pub columns: Vec<ColumnDefinition>,
    /// The partition column, a string.
    pub partition_column: &'static str,
    /// Where its objects are; ends in `/`.
    pub location: String,
    /// How they are read.
    pub format: FileFormat,
    /// Table properties (Glue: parameters), in order.
    pub properties: Vec<(String, String)>,
}

/// A column of a table of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Name.
    pub name: String,
    /// Glue type string.
    pub glue_type: String,
    /// Type in DDL, names of struct members quoted.
    ddl_type: String,
    /// What it holds, for row columns.
    pub comment: Option<&'static str>,
}

/// File format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Parquet.
    Parquet,
    /// One JSON object per line.
    JsonLines,
}

impl FileFormat {
    /// Serialisation library.
    pub fn serde(self) -> &'static str {
        match self {
            Self::Parquet => "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            Self::JsonLines => "org.openx.data.jsonserde.JsonSerDe",
        }
    }

    /// Hive input format.
    pub fn input_format(self) -> &'static str {
        match self {
            Self::Parquet => "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
            Self::JsonLines => "org.apache.hadoop.mapred.TextInputFormat",
        }
    }

    /// Hive output format.
    pub fn output_format(self) -> &'static str {
        match self {
            Self::Parquet => "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
            Self::JsonLines => "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        }
    }

    fn classification(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::JsonLines => "json",
        }
    }
}

/// DDL of the database and all tables of a lake at `location` (`s3://bucket/prefix`), one statement
/// after the other, each ended by `;`. Athena runs one statement per query.
pub fn create_tables(catalog: &Catalog, location: &str) -> String {
    let mut text = format!(
        "CREATE DATABASE IF NOT EXISTS {};\n",
        identifier(&catalog.database)
    );
    for table in tables(catalog, location) {
        text.push('\n');
        text.push_str(&table.create_statement(&catalog.database));
        text.push_str(";\n");
    }
    text
}

/// The tables of a lake at `location`, in order of name; the quarantine last.
pub fn tables(catalog: &Catalog, location: &str) -> Vec<TableDefinition> {
    let location = location.trim_end_matches('/');
    let mut entities: Vec<&Entity> = catalog.entities.iter().collect();
    entities.sort_by_key(|entity| (entity.table == UNMATCHED, &entity.table));
    let mut tables = Vec::new();
    for entity in entities {
        tables.push(changes(entity, location));
        tables.push(snapshot(entity, location));
    }
    tables.push(quarantine(location));
    tables
}

fn changes(entity: &Entity, location: &str) -> TableDefinition {
    let about = entity.description.as_ref().unwrap_or(&entity.name);
    let location = format!("{location}/changes/{}/", entity.table);
    TableDefinition {
        name: changes_table(&entity.table),
        comment: format!("{about}: one row per change"),
        columns: columns(entity),
        partition_column: "dt",
        properties: by_day(FileFormat::Parquet, &location),
        location,
        format: FileFormat::Parquet,
    }
}

fn snapshot(entity: &Entity, location: &str) -> TableDefinition {
    let about = entity.description.as_ref().unwrap_or(&entity.name);
    let location = format!("{location}/snapshot/{}/", entity.table);
    let mut properties = common(FileFormat::Parquet);
    properties.push(property("projection.export.type", "injected"));
    properties.push(template(&location, "export"));
    TableDefinition {
        name: snapshot_table(&entity.table),
        comment: format!("{about}: the whole table per export; every query names one export"),
        columns: columns(entity),
        partition_column: "export",
        properties,
        location,
        format: FileFormat::Parquet,
    }
}

fn quarantine(location: &str) -> TableDefinition {
    let location = format!("{location}/quarantine/");
    let text = |name: &str, comment| ColumnDefinition {
        name: name.to_owned(),
        glue_type: "string".to_owned(),
        ddl_type: "string".to_owned(),
        comment: Some(comment),
    };
    let mut columns = vec![
        text("reason", "reason code"),
        text("entity", "entity the record was routed to"),
        text("path", "attribute path"),
        text("message", "what is wrong"),
        text(
            "source",
            "stream, full_export, incremental_export or replay",
        ),
        text("origin", "where the record can be found again, as JSON"),
        text("at", "milliseconds since 1970-01-01 UTC"),
        text("event_id", "event id of the stream record"),
        text("sequence_number", "sequence number of the stream record"),
        text("payload", "the record as received"),
        text(
            "payload_base64",
            "the record as received, where it is not UTF-8",
        ),
    ];
    if let Some(at) = columns.iter_mut().find(|column| column.name == "at") {
        "bigint".clone_into(&mut at.glue_type);
        "bigint".clone_into(&mut at.ddl_type);
    }
    TableDefinition {
        name: QUARANTINE.to_owned(),
        comment: "records that could not become rows, whole".to_owned(),
        columns,
        partition_column: "dt",
        properties: by_day(FileFormat::JsonLines, &location),
        location,
        format: FileFormat::JsonLines,
    }
}

fn columns(entity: &Entity) -> Vec<ColumnDefinition> {
    let row = row_columns::ALL.iter().map(|column| ColumnDefinition {
        name: column.name.to_owned(),
        glue_type: column.kind.athena_type().to_owned(),
        ddl_type: column.kind.athena_type().to_owned(),
        comment: Some(column.comment),
    });
    let typed = entity.stored_columns().map(|column| ColumnDefinition {
        name: column.name.clone(),
        glue_type: athena_type(&column.ty),
        ddl_type: ddl_type(&column.ty),
        comment: None,
    });
    row.chain(typed).collect()
}

fn property(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn common(format: FileFormat) -> Vec<(String, String)> {
    let mut properties = vec![
        property("EXTERNAL", "TRUE"),
        property("classification", format.classification()),
    ];
    if format == FileFormat::Parquet {
        properties.push(property("parquet.compression", "ZSTD"));
    }
    properties.push(property("projection.enabled", "true"));
    properties
}

fn by_day(format: FileFormat, location: &str) -> Vec<(String, String)> {
    let mut properties = common(format);
    properties.push(property("projection.dt.type", "date"));
    properties.push(property("projection.dt.format", "yyyy-MM-dd"));
    properties.push(property("projection.dt.range", &format!("{FIRST_DAY},NOW")));
    properties.push(property("projection.dt.interval", "1"));
    properties.push(property("projection.dt.interval.unit", "DAYS"));
    properties.push(template(location, "dt"));
    properties
}

fn template(location: &str, column: &str) -> (String, String) {
    property(
        "storage.location.template",
        &format!("{location}{column}=${{{column}}}/"),
    )
}

impl TableDefinition {
    /// `CREATE EXTERNAL TABLE`, without a semicolon.
    pub fn create_statement(&self, database: &str) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        _ = writeln!(
            text,
            "CREATE EXTERNAL TABLE IF NOT EXISTS {}.{} (",
            identifier(database),
            identifier(&self.name)
        );
        for (index, column) in self.columns.iter().enumerate() {
            let comma = if index + 1 < self.columns.len() {
                ","
            } else {
                ""
            };
            _ = write!(text, "  {} {}", identifier(&column.name), column.ddl_type);
            if let Some(comment) = column.comment {
                _ = write!(text, " COMMENT {}", literal(comment));
            }
            _ = writeln!(text, "{comma}");
        }
        _ = writeln!(text, ")\nCOMMENT {}", literal(&self.comment));
        _ = writeln!(
            text,
            "PARTITIONED BY ({} string)",
            identifier(self.partition_column)
        );
        _ = writeln!(text, "ROW FORMAT SERDE {}", literal(self.format.serde()));
        _ = writeln!(
            text,
            "STORED AS INPUTFORMAT {}",
            literal(self.format.input_format())
        );
        _ = writeln!(
            text,
            "  OUTPUTFORMAT {}",
            literal(self.format.output_format())
        );
        _ = writeln!(
            text,
            "LOCATION {}\nTBLPROPERTIES (",
            literal(&self.location)
        );
        for (index, (name, value)) in self.properties.iter().enumerate() {
            let comma = if index + 1 < self.properties.len() {
                ","
            } else {
                ""
            };
            _ = writeln!(text, "  {} = {}{comma}", literal(name), literal(value));
        }
        text.push(')');
        text
    }
}

/// An identifier of DDL. Names are `[a-z0-9_]+`, so nothing in them needs escaping.
fn identifier(name: &str) -> String {
    format!("`{name}`")
}

/// A string literal of Hive's DDL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests;
