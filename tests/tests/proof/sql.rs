//! The views of both engines over a lake: the same rows as Rust's, column for column.

use std::path::{Path, PathBuf};

use dynalake_pipeline::current::{AsOf, MergeOptions, current_rows};
use dynalake_pipeline::encode::ObjectWriter;
use dynalake_pipeline::publish::current_baseline;
use dynalake_schemas::views::{self, DuckDbLake};
use dynalake_schemas::{Entity, ddl, row_columns};
use dynalake_tests::{athena_on_duckdb, duckdb, duckdb_available};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::lake::Lake;
use crate::source::Source;

/// Current rows and history of every table, by DuckDB's script and by Athena's statements.
pub fn views_equal_rust(source: &Source, lake: &Lake, runtime: &Runtime) {
    if !duckdb_available() {
        return;
    }
    let copy = tempfile::tempdir_in(lake.folder.path()).unwrap();
    download(lake, &copy.path().join("lake"), runtime);
    let root = copy.path().join("lake").display().to_string();
    let baseline = runtime
        .block_on(Box::pin(current_baseline(&lake.store)))
        .unwrap();

    let mut current = Vec::new();
    for (index, entity) in lake.catalog.entities.iter().enumerate() {
        let rust = rust_rows(lake, index, entity, copy.path(), runtime);
        current.push((entity, rust));
    }
    let query = |database: &str| {
        let mut parts: Vec<String> = current
            .iter()
            .map(|(entity, rust)| differences(entity, database, rust))
            .collect();
        parts.push(history(&current, database, source.told));
        parts.join("\nUNION ALL ")
    };

    let script = views::duckdb::script(
        &lake.catalog,
        baseline.as_ref(),
        &DuckDbLake {
            root: root.clone(),
            s3: None,
        },
    );
    let different = duckdb(&format!("{script}\n{}", query("")));
    assert_eq!(different, Vec::<Value>::new(), "DuckDB's views and Rust");

    let database = &lake.catalog.database;
    let statements: Vec<String> = views::athena(&lake.catalog, baseline.as_ref())
        .iter()
        .map(|view| view.create_statement(Some(database)))
        .collect();
    let tables = ddl::create_tables(&lake.catalog, "s3://lake");
    let query = query(&format!("{database}."));
    let answers = athena_on_duckdb(
        &tables,
        Path::new(&root),
        &statements,
        &[("different", &query)],
    );
    let different = &answers["different"];
    assert_eq!(*different, Vec::<Value>::new(), "Athena's views and Rust");
}

/// One row that names the table, if a view and Rust's rows are not the same.
fn differences(entity: &Entity, database: &str, rust: &Path) -> String {
    let columns: Vec<String> = entity
        .arrow_schema()
        .fields()
        .iter()
        .map(|field| format!("\"{}\"", field.name()))
        .collect();
    let columns = columns.join(", ");
    let table = &entity.table;
    let view = format!("SELECT {columns} FROM {database}\"{table}\"");
    let rust = format!("SELECT {columns} FROM read_parquet('{}')", rust.display());
    format!(
        "SELECT '{table}' AS what, count(*) AS rows FROM (({view} EXCEPT ALL {rust}) UNION ALL \
         ({rust} EXCEPT ALL {view})) HAVING count(*) > 0"
    )
}

/// A row, if the histories do not hold every change once: each delivered record, by stream and
/// sequence number, and none twice in one table.
fn history(tables: &[(&Entity, PathBuf)], database: &str, records: usize) -> String {
    let [pk, sk, stream, seq] = [
        row_columns::PK,
        row_columns::SK,
        row_columns::STREAM,
        row_columns::SEQ,
    ]
    .map(|column| row_columns::ALL[column].name);
    let all: Vec<String> = tables
        .iter()
        .map(|(entity, _)| {
            let table = &entity.table;
            format!(
                "SELECT '{table}' AS t, {pk}, {sk}, {stream}, {seq} FROM \
                 {database}\"{table}_history\""
            )
        })
        .collect();
    let all = all.join(" UNION ALL ");
    format!(
        "SELECT 'history' AS what, count(DISTINCT ({stream}, {seq})) AS rows FROM ({all}) AS h \
         HAVING count(DISTINCT ({stream}, {seq})) <> {records} \
         OR count(*) <> count(DISTINCT (t, {pk}, {sk}, {stream}, {seq}))"
    )
}

/// Rust's current rows of a table, in a file.
fn rust_rows(
    lake: &Lake,
    index: usize,
    entity: &Entity,
    folder: &Path,
    runtime: &Runtime,
) -> PathBuf {
    let mut writer = ObjectWriter::new(entity, Vec::new()).unwrap();
    let spool = tempfile::tempdir_in(folder).unwrap();
    let options = MergeOptions {
        memory_bytes: 64 << 20,
        spool: spool.path().to_owned(),
    };
    let mut sink = |batch| {
        writer.write(&batch).unwrap();
        Ok(())
    };
    let (store, catalog) = (&lake.store, &lake.catalog);
    let rows = current_rows(store, catalog, index, AsOf::Now, &options, &mut sink);
    runtime.block_on(Box::pin(rows)).unwrap();
    let path = folder.join(format!("{}.parquet", entity.table));
    std::fs::write(&path, writer.finish().unwrap().0).unwrap();
    path
}

/// The lake as a folder, whatever store it is in.
fn download(lake: &Lake, folder: &Path, runtime: &Runtime) {
    let objects = runtime.block_on(Box::pin(lake.store.list(""))).unwrap();
    for object in objects {
        let body = runtime.block_on(Box::pin(lake.store.get(&object.key)));
        let path = folder.join(&object.key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, body.unwrap().expect("a listed object is there")).unwrap();
    }
}
