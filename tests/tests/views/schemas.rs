//! Every schema folder of the repository: its views are SQL that both engines take, with the columns
//! and types that they are said to have.

use std::path::{Path, PathBuf};

use dynalake_schemas::views::{self, Baseline, DuckDbLake, View, duckdb::script};
use dynalake_schemas::{Catalog, ddl};
use dynalake_tests::{athena_on_duckdb, duckdb, duckdb_available, repository};
use serde_json::Value;

fn folders() -> Vec<PathBuf> {
    let fixtures = repository().join("tests/fixtures/schemas");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(fixtures)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.push(repository().join("schemas/ecommerce"));
    folders.sort();
    folders
}

/// DuckDB's name of a Glue type.
fn expected(glue_type: &str, timestamp: &str) -> Option<String> {
    Some(match glue_type {
        "int" => "INTEGER".to_owned(),
        "string" => "VARCHAR".to_owned(),
        "binary" => "BLOB".to_owned(),
        "timestamp" => timestamp.to_owned(),
        "boolean" | "bigint" | "double" | "date" => glue_type.to_uppercase(),
        decimal if decimal.starts_with("decimal") => decimal.to_uppercase(),
        _ => return None,
    })
}

fn assert_described(view: &View, described: &[Value], timestamp: &str) {
    assert_eq!(described.len(), view.columns.len(), "{}", view.name);
    for (column, described) in view.columns.iter().zip(described) {
        assert_eq!(described["column_name"], column.name, "{}", view.name);
        if let Some(ty) = expected(&column.glue_type, timestamp) {
            assert_eq!(
                described["column_type"], ty,
                "{}.{}",
                view.name, column.name
            );
        }
    }
}

fn assert_taken(folder: &Path, baseline: Option<&Baseline>) {
    let catalog = Catalog::load(folder).unwrap_or_else(|problems| panic!("{problems}"));
    let lake = tempfile::tempdir().unwrap();
    let views = views::athena(&catalog, baseline);
    let statements: Vec<String> = views
        .iter()
        .map(|view| view.create_statement(Some(&catalog.database)))
        .collect();
    let describe: Vec<String> = views
        .iter()
        .map(|view| format!("DESCRIBE {}.\"{}\"", catalog.database, view.name))
        .collect();
    let queries: Vec<(&str, &str)> = views
        .iter()
        .zip(&describe)
        .map(|(view, describe)| (view.name.as_str(), describe.as_str()))
        .collect();
    let tables = ddl::create_tables(&catalog, "s3://lake");
    let described = athena_on_duckdb(&tables, lake.path(), &statements, &queries);
    let root = lake.path().to_str().unwrap().to_owned();
    if let Some(baseline) = baseline {
        let record = lake
            .path()
            .join(format!("state/baselines/{}.json", baseline.label));
        std::fs::create_dir_all(record.parent().unwrap()).unwrap();
        std::fs::write(record, "{}").unwrap();
    }
    let script = script(&catalog, baseline, &DuckDbLake { root, s3: None });
    for view in &views {
        assert_described(view, &described[&view.name], "TIMESTAMP");
        // Plain columns only, wherever the name says so.
        if view.name.ends_with("_flat") {
            let flat =
                |c: &views::ViewColumn| expected(&c.glue_type, "").is_some_and(|ty| ty != "BLOB");
            assert!(view.columns.iter().all(flat), "{}", view.name);
            let rows = duckdb(&format!("{script}\nDESCRIBE \"{}\"", view.name));
            assert_described(view, &rows, "TIMESTAMP WITH TIME ZONE");
        }
    }
}

#[test]
fn views_of_all_schemas_are_taken_by_both_engines() {
    if !duckdb_available() {
        return;
    }
    let baseline = Baseline {
        label: "20261101T000400Z".to_owned(),
        at_ms: 1_793_491_440_000,
    };
    for folder in folders() {
        assert_taken(&folder, Some(&baseline));
    }
    assert_taken(&repository().join("schemas/ecommerce"), None);
}
