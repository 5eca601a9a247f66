//! `lake.sql`: a lake's views for DuckDB (1.4 or newer; tested with 1.5), over its files.
//!
//! `<table>_changes` and `<table>_snapshot` are what the tables of the same name are in Athena; the
//! other views are Athena's. All read the files anew with each query, so that the script is written
//! again only when another baseline is committed or the schemas change.
//!
//! - Files older than a column lack it, and those older than a widened type have the narrow one:
//!   columns are united by name with an empty relation of the declared columns.
//! - DuckDB refuses to read a pattern that no file matches, and a young lake has tables without files.
//!   So the script asks with `glob` first, and keeps what is to be read in a variable of the session.
//!   Where there is no such variable (another connection to the same database) the files are read.
//! - The script refuses to open a lake that has got another baseline since it was written.

use std::fmt::Write;

use super::current::wrapped;
use super::dialect::{Dialect, identifier, literal};
use super::{Baseline, View, ViewColumn, entities, entity_views};
use crate::athena::athena_type;
use crate::ddl;
use crate::load::QUARANTINE;
use crate::model::{Catalog, Entity};
use crate::row_columns::{self, RowColumnKind};
use crate::tables::{changes_table, snapshot_table};

/// Where DuckDB finds a lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuckDbLake {
    /// Absolute path of the lake's folder, or `s3://bucket/prefix`.
    pub root: String,
    /// How S3 is reached; `None` for a folder.
    pub s3: Option<S3Access>,
}

/// How DuckDB reaches S3. Credentials are not part of it: DuckDB takes them from the usual AWS places
/// when the script is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Access {
    /// Region, where it is not to be taken from the environment.
    pub region: Option<String>,
    /// Endpoint of a server other than AWS's, as a URL.
    pub endpoint: Option<String>,
    /// The bucket's name stands in the path instead of the host name.
    pub path_style: bool,
}

/// A view over files, and what it reads.
struct FileView {
    view: View,
    /// Pattern that its files match.
    pattern: String,
    /// Query over files that are there.
    read: String,
    partition_column: &'static str,
}

/// The script: views over files, then the views of [`super::athena`] in DuckDB's spelling.
pub fn script(catalog: &Catalog, baseline: Option<&Baseline>, lake: &DuckDbLake) -> String {
    let baseline_text = match baseline {
        Some(baseline) => format!("Baseline: {}.", baseline.label),
        None => "No baseline yet: tables hold what changes tell.".to_owned(),
    };
    let mut text = format!(
        "-- The lake `{}` for DuckDB 1.4 or newer: `duckdb -init lake.sql`.\n\
         -- {baseline_text}\n\
         -- Written by `dynalake duckdb`, which writes it anew; do not edit.\n\n\
         SET TimeZone = 'UTC';\n",
        catalog.database
    );
    if let Some(s3) = &lake.s3 {
        text.push_str(&s3_access(s3, &lake.root));
    }
    let root = escaped_pattern(lake.root.trim_end_matches('/'));
    push_guard(&mut text, baseline, &root);
    for entity in entities(catalog) {
        for files in [changes(entity, &root), snapshot(entity, &root)] {
            push_files(&mut text, &files);
        }
        for view in entity_views(entity, baseline, Dialect::DuckDb) {
            push_view(&mut text, &view);
        }
    }
    push_files(&mut text, &quarantine(catalog, &root));
    text
}

/// The views of another baseline than the lake's current one would be wrong without a sign of it: its
/// rows may have been removed, or the new one may have repaired a gap. Labels sort as their times do.
fn push_guard(text: &mut String, baseline: Option<&Baseline>, root: &str) {
    let label = literal(baseline.map_or("", |baseline| baseline.label.as_str()));
    let records = literal(&format!("{root}/state/baselines/*.json"));
    _ = writeln!(
        text,
        "\nSET VARIABLE dynalake_baseline = (\n  \
         SELECT CASE WHEN coalesce(max(parse_filename(file, true)), '') = {label} THEN {label}\n    \
         ELSE error('the lake has another baseline than this script: write it anew with `dynalake \
         duckdb`') END\n  FROM glob({records})\n);"
    );
}

fn push_view(text: &mut String, view: &View) {
    // Writing to a String cannot fail.
    _ = writeln!(
        text,
        "\n-- {}\n{};",
        view.about,
        view.create_statement(None)
    );
}

fn push_files(text: &mut String, files: &FileView) {
    let none = format!(
        "SELECT NULL::VARCHAR AS {} WHERE false",
        identifier(files.partition_column)
    );
    _ = writeln!(
        text,
        "\nSET VARIABLE {} = (\n  SELECT CASE count(*) WHEN 0 THEN {}\n    ELSE {} END\n  \
         FROM glob({})\n);",
        files.view.name,
        literal(&none),
        literal(&files.read),
        literal(&files.pattern),
    );
    let statement = files.view.create_statement(None);
    _ = writeln!(text, "-- {}\n{statement};", files.view.about);
}

fn changes(entity: &Entity, root: &str) -> FileView {
    table_files(
        entity,
        changes_table(&entity.table),
        "changes",
        format!("{root}/changes/{}/dt=*/*.parquet", entity.table),
        "dt",
    )
}

fn snapshot(entity: &Entity, root: &str) -> FileView {
    table_files(
        entity,
        snapshot_table(&entity.table),
        "the whole table per export",
        format!("{root}/snapshot/{}/export=*/*.parquet", entity.table),
        "export",
    )
}

fn table_files(
    entity: &Entity,
    name: String,
    what: &str,
    pattern: String,
    partition_column: &'static str,
) -> FileView {
    let row = row_columns::ALL.iter().map(|column| {
        let ty = match column.kind {
            RowColumnKind::Text => "VARCHAR",
            RowColumnKind::Timestamp => "TIMESTAMPTZ",
            RowColumnKind::Int => "INTEGER",
        };
        (
            column.name,
            column.kind.athena_type().to_owned(),
            ty.to_owned(),
        )
    });
    let typed = entity.stored_columns().map(|column| {
        let ty = Dialect::DuckDb.type_name(&column.ty);
        (column.name.as_str(), athena_type(&column.ty), ty)
    });
    let partition = (partition_column, "string".to_owned(), "VARCHAR".to_owned());
    let columns: Vec<_> = row.chain(typed).chain([partition]).collect();
    let names: Vec<&str> = columns.iter().map(|(name, _, _)| *name).collect();
    let read = read_files(
        partition_column,
        &names,
        &format!("read_parquet({}, union_by_name = true", literal(&pattern)),
    );
    let names = columns.iter().map(|(name, _, _)| identifier(name));
    let declared = columns
        .iter()
        .map(|(name, _, ty)| format!("NULL::{ty} AS {}", identifier(name)));
    let query = over_files(&name, &read, &wrapped(names, 2), &wrapped(declared, 4));
    let columns = columns.into_iter().map(|(name, glue_type, _)| ViewColumn {
        name: name.to_owned(),
        glue_type,
    });
    FileView {
        view: View {
            about: format!("{}: {what}, as in the files", entity.table),
            columns: columns.collect(),
            name,
            query,
        },
        pattern,
        read,
        partition_column,
    }
}

/// The partition is taken from the last folder of a file's path. (`hive_partitioning` takes the first
/// one of that name, which may be above the lake.) DuckDB skips files by it, as long as the path is
/// called `filename`; where a column has that name, it reads them all.
fn read_files(partition_column: &str, names: &[&str], function: &str) -> String {
    let path = if names.contains(&"filename") {
        "file#"
    } else {
        "filename"
    };
    format!(
        "SELECT *, regexp_extract(\"{path}\", '.*/{partition_column}=([^/]*)/', 1) AS {} \
         FROM {function}, hive_partitioning = false, filename = '{path}')",
        identifier(partition_column)
    )
}

/// `names` of the declared columns, united with what the files have.
fn over_files(variable: &str, read: &str, names: &str, declared: &str) -> String {
    format!(
        "SELECT {names}\nFROM (\n  SELECT {declared}\n  WHERE false\n  UNION ALL BY NAME\n  \
         SELECT * FROM query(coalesce(getvariable({}),\n    {}))\n)",
        literal(variable),
        literal(read)
    )
}

fn quarantine(catalog: &Catalog, root: &str) -> FileView {
    let pattern = format!("{root}/quarantine/dt=*/*.jsonl");
    // The columns are those of the table in Athena.
    let table = ddl::tables(catalog, "").pop();
    let partition = ViewColumn {
        name: "dt".to_owned(),
        glue_type: "string".to_owned(),
    };
    let columns = table.into_iter().flat_map(|table| table.columns);
    let columns = columns.map(|column| ViewColumn {
        name: column.name,
        glue_type: column.glue_type,
    });
    let columns: Vec<ViewColumn> = columns.chain([partition]).collect();
    let ty = |column: &ViewColumn| match (column.name.as_str(), column.glue_type.as_str()) {
        ("origin", _) => "JSON",
        (_, "bigint") => "BIGINT",
        _ => "VARCHAR",
    };
    let members = columns
        .iter()
        .filter(|column| column.name != "dt")
        .map(|column| format!("{}: '{}'", identifier(&column.name), ty(column)));
    let members: Vec<String> = members.collect();
    let read = read_files(
        "dt",
        &[],
        &format!(
            "read_json({}, format = 'newline_delimited', columns = {{{}}}",
            literal(&pattern),
            members.join(", ")
        ),
    );
    let names = columns.iter().map(|column| identifier(&column.name));
    let declared = columns
        .iter()
        .map(|column| format!("NULL::{} AS {}", ty(column), identifier(&column.name)));
    let query = over_files(QUARANTINE, &read, &wrapped(names, 2), &wrapped(declared, 4));
    FileView {
        view: View {
            name: QUARANTINE.to_owned(),
            about: "records that could not become rows, whole".to_owned(),
            columns,
            query,
        },
        pattern,
        read,
        partition_column: "dt",
    }
}

fn s3_access(s3: &S3Access, root: &str) -> String {
    let mut options = vec![
        "TYPE s3".to_owned(),
        "PROVIDER credential_chain".to_owned(),
        format!("SCOPE {}", literal(root)),
    ];
    if let Some(region) = &s3.region {
        options.push(format!("REGION {}", literal(region)));
    }
    if let Some(endpoint) = &s3.endpoint {
        let (tls, host) = match endpoint.split_once("://") {
            Some(("http", host)) => (false, host),
            Some((_, host)) => (true, host),
            None => (true, endpoint.as_str()),
        };
        options.push(format!("ENDPOINT {}", literal(host.trim_end_matches('/'))));
        options.push(format!("USE_SSL {tls}"));
    }
    if s3.path_style {
        options.push("URL_STYLE 'path'".to_owned());
    }
    format!(
        "INSTALL httpfs;\nLOAD httpfs;\nINSTALL aws;\nLOAD aws;\nCREATE OR REPLACE SECRET dynalake (\n  \
         {}\n);\n",
        options.join(",\n  ")
    )
}

/// A path as a pattern that matches only itself.
fn escaped_pattern(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for character in path.chars() {
        match character {
            '*' | '?' | '[' => {
                text.push('[');
                text.push(character);
                text.push(']');
            }
            other => text.push(other),
        }
    }
    text
}
