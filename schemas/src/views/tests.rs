use std::fs;
use std::path::Path;

use super::*;
use crate::fixture::{catalog, ecommerce, entity, folder};

/// 2026-11-01T00:04:00Z: B − M is on the day before.
const AT: i64 = 1_793_491_440_000;

fn baseline() -> Baseline {
    Baseline {
        label: "20261101T000400Z".to_owned(),
        at_ms: AT,
    }
}

fn shop(columns: &str) -> Catalog {
    let order = entity(
        "order",
        "partition_key = \"USER#{user_id}\"\nsort_key = \"ORDER#{order_id}\"",
        &format!("user_id = \"string\"\norder_id = \"string\"\n{columns}"),
    );
    catalog(folder(&[("order.toml", &order)]).path())
}

fn little_shop() -> Catalog {
    shop(
        "total = \"decimal(12,2)\"\nplaced_at = \"timestamp\"\n\
         address = \"struct<city:string,geo:struct<lat:double,lon:double>>\"\n\
         lines = \"array<struct<sku:string,qty:int>>\"\nthumbnail = \"binary\"\n",
    )
}

fn lake() -> DuckDbLake {
    DuckDbLake {
        root: "/data/it's a lake".to_owned(),
        s3: None,
    }
}

/// Compares with a file of this folder; with `DYNALAKE_UPDATE_GOLDEN=1` writes it.
#[track_caller]
fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/views/golden")
        .join(name);
    if std::env::var_os("DYNALAKE_UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        expected,
        "{} differs; if that is meant, run the test with DYNALAKE_UPDATE_GOLDEN=1 and review it",
        path.display()
    );
}

#[test]
fn athena_views_are_as_reviewed() {
    assert_golden(
        "athena.sql",
        &athena_script(&little_shop(), Some(&baseline())),
    );
    assert_golden("athena_no_baseline.sql", &athena_script(&shop(""), None));
}

#[test]
fn the_script_for_duckdb_is_as_reviewed() {
    let text = duckdb::script(&little_shop(), Some(&baseline()), &lake());
    assert_golden("duckdb.sql", &text);
}

#[test]
fn days_are_read_one_wider_than_the_margin() {
    assert_eq!(baseline().changes_decide_from(), "2026-10-31 23:59:00.000");
    assert_eq!(baseline().first_day(), "2026-10-30");
    let later = Baseline {
        at_ms: AT + 60_001,
        ..baseline()
    };
    assert_eq!(later.changes_decide_from(), "2026-11-01 00:00:00.001");
    assert_eq!(later.first_day(), "2026-10-31");
    for at_ms in [i64::MIN, i64::MAX] {
        let odd = Baseline {
            label: String::new(),
            at_ms,
        };
        assert_eq!(odd.first_day().len(), 10, "{}", odd.first_day());
    }
}

#[test]
fn columns_are_typed_first_and_those_of_the_flat_view_are_plain() {
    for view in athena(&catalog(&ecommerce()), Some(&baseline())) {
        let names: Vec<&str> = view.columns.iter().map(|c| c.name.as_str()).collect();
        let first_row_column = names.iter().position(|name| *name == "_pk").unwrap();
        assert_eq!(
            first_row_column + row_columns_count(),
            names.len(),
            "{}",
            view.name
        );
        if view.name.ends_with("_flat") {
            for column in &view.columns {
                let ty = column.glue_type.as_str();
                let plain = [
                    "boolean",
                    "int",
                    "bigint",
                    "double",
                    "string",
                    "date",
                    "timestamp",
                ];
                assert!(
                    plain.contains(&ty) || ty.starts_with("decimal("),
                    "{}: {ty}",
                    column.name
                );
            }
        }
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "{}", view.name);
    }
}

fn row_columns_count() -> usize {
    crate::row_columns::COUNT
}

#[test]
fn dropped_columns_are_in_no_view() {
    let catalog = catalog(&ecommerce());
    let text = athena_script(&catalog, None) + &duckdb::script(&catalog, None, &lake());
    assert!(!text.contains("password_hash") && text.contains("card_token"));
}

#[test]
fn flattened_names_make_way_for_others() {
    let catalog = shop(
        "a = \"struct<b_c:int,b:struct<c:int>>\"\na_b = \"struct<c:int>\"\na_b_c = \"string\"\n",
    );
    let view = athena(&catalog, None)
        .into_iter()
        .find(|view| view.name == "orders_flat")
        .unwrap();
    let names: Vec<&str> = view
        .columns
        .iter()
        .take(6)
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "user_id", "order_id", "a_b_c_2", "a_b_c_3", "a_b_c_4", "a_b_c"
        ]
    );
    assert!(
        view.query.contains("t.\"a\".\"b\".\"c\" AS \"a_b_c_3\""),
        "{}",
        view.query
    );
}

#[test]
fn long_flattened_names_are_cut_and_stay_apart() {
    let (parent, child) = ("p".repeat(100), "c".repeat(100));
    let catalog = shop(&format!(
        "{parent} = \"struct<{child}:int,{child}x:int>\"\n"
    ));
    let view = athena(&catalog, None)
        .into_iter()
        .find(|view| view.name == "orders_flat")
        .unwrap();
    let name = |letters| format!("{parent}_{}", "c".repeat(letters));
    assert_eq!(view.columns[2].name, name(27));
    assert_eq!(view.columns[3].name, format!("{}_2", name(25)));
}

#[test]
fn binary_becomes_base64_wherever_it_stands() {
    let catalog = shop(
        "a = \"set<binary>\"\nb = \"map<string,array<binary>>\"\n\
         c = \"array<struct<x:binary,y:int,z:map<string,date>>>\"\nd = \"array<array<string>>\"\n",
    );
    let of = |views: &[FlatQuery], column: &str| {
        let (_, query) = &views[0];
        let ending = format!(" AS \"{column}\"");
        let line = query
            .lines()
            .find(|line| line.trim_end_matches(',').ends_with(&ending));
        line.unwrap()
            .trim()
            .trim_end_matches(',')
            .trim_end_matches(&ending)
            .to_owned()
    };
    let athena = flat_queries(&catalog, Dialect::Athena { database: "shop" });
    assert_eq!(
        of(&athena, "a"),
        "json_format(CAST(transform(t.\"a\", e0 -> to_base64(e0)) AS JSON))"
    );
    assert_eq!(
        of(&athena, "b"),
        "json_format(CAST(transform_values(t.\"b\", (k0, e0) -> transform(e0, e1 -> \
         to_base64(e1))) AS JSON))"
    );
    assert_eq!(
        of(&athena, "c"),
        "json_format(CAST(transform(t.\"c\", e0 -> CASE WHEN e0 IS NOT NULL THEN \
         CAST(ROW(to_base64(e0.\"x\"), e0.\"y\", e0.\"z\") AS ROW(\"x\" VARCHAR, \"y\" INTEGER, \
         \"z\" MAP(VARCHAR, DATE))) END) AS JSON))"
    );
    assert_eq!(of(&athena, "d"), "json_format(CAST(t.\"d\" AS JSON))");
    let duckdb = flat_queries(&catalog, Dialect::DuckDb);
    assert_eq!(
        of(&duckdb, "a"),
        "CAST(to_json(list_transform(t.\"a\", lambda e0: base64(e0))) AS VARCHAR)"
    );
}

type FlatQuery = (String, String);

fn flat_queries(catalog: &Catalog, dialect: Dialect<'_>) -> Vec<FlatQuery> {
    let views = entities(catalog).map(|entity| {
        let [_, _, flat] = entity_views(entity, None, dialect);
        (flat.name, flat.query)
    });
    views.collect()
}

#[test]
fn s3_is_reached_without_secrets_in_the_script() {
    let lake = DuckDbLake {
        root: "s3://bucket/my-lake/".to_owned(),
        s3: Some(S3Access {
            region: Some("eu-west-1".to_owned()),
            endpoint: Some("http://127.0.0.1:9000/".to_owned()),
            path_style: true,
        }),
    };
    let text = duckdb::script(&shop(""), None, &lake);
    for part in [
        "PROVIDER credential_chain",
        "SCOPE 's3://bucket/my-lake/'",
        "REGION 'eu-west-1'",
        "ENDPOINT '127.0.0.1:9000'",
        "USE_SSL false",
        "URL_STYLE 'path'",
        "glob('s3://bucket/my-lake/changes/orders/dt=*/*.parquet')",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
