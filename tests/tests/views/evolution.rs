//! Files written before the schemas grew: columns they lack, types that were narrower.

use dynalake_tests::{duckdb, duckdb_available};
use serde_json::{Value, json};

use super::assert_agreement;
use super::traps::B;
use super::world::{Change, World};

const OLD: &str = r#"
v = "string"
count = "decimal(20,0)"
price = "decimal(9,2)"
qty = { type = "int", attribute = "price_cents" }
address = "struct<city:string>"
lines = "array<struct<sku:string>>"
"#;

const NEW: &str = r#"
v = "string"
count = "decimal(24,0)"
price = "decimal(12,2)"
qty = { type = "bigint", attribute = "price_cents" }
address = "struct<city:string,geo:struct<lat:double,lon:double>>"
lines = "array<struct<sku:string,qty:int>>"
seen = { type = "timestamp", format = "epoch_ms" }
tags = "set<string>"
"#;

fn change(name: &'static str, number: &'static str) -> Change {
    Change {
        key: (name, Some("x")),
        stream: "2024-01-01T00:00:00.000",
        number,
        at: B + 1_000,
        before: None,
        after: Some(("thing", "right")),
    }
}

#[tokio::test]
async fn old_files_are_read_with_the_columns_and_types_of_now() {
    if !duckdb_available() {
        return;
    }
    let mut world = World::new(true);
    world.with_columns(OLD);
    world
        .commit(B, &[(("in both", Some("x")), "thing", "right")])
        .await;
    world.deliver(&[change("old", "1")]).await;
    world.with_columns(NEW);
    // Only old files at first: no file has the new columns.
    assert_agreement(&world).await;
    world.deliver(&[change("new", "2")]).await;
    assert_agreement(&world).await;

    let select = "SELECT _pk, price, address, lines, seen, tags FROM";
    let script = world.script().await;
    let athena = world
        .athena(&[("rows", &format!("{select} lake.things ORDER BY _pk"))])
        .await;
    for rows in [
        duckdb(&format!("{script}\n{select} things ORDER BY _pk")),
        athena["rows"].clone(),
    ] {
        let names: Vec<&Value> = rows.iter().map(|row| &row["_pk"]).collect();
        assert_eq!(names, ["in both", "new", "old"]);
        for row in &rows {
            assert_eq!(row["price"], "5.10", "{row}");
            assert_eq!(row["address"]["city"], "right", "{row}");
        }
        let (new, old) = (&rows[1], &rows[2]);
        assert_eq!(new["address"]["geo"], json!({"lat": 1.5, "lon": null}));
        assert_eq!(old["address"]["geo"], Value::Null);
        assert_eq!(
            (&new["lines"][0]["qty"], &old["lines"][0]["qty"]),
            (&json!(2), &Value::Null)
        );
        assert_eq!(
            (&new["tags"], &old["tags"]),
            (&json!(["right", "x"]), &Value::Null)
        );
        assert!(
            new["seen"]
                .as_str()
                .unwrap()
                .starts_with("2026-05-01T00:00:00.123")
        );
        assert_eq!(old["seen"], Value::Null);
    }
}
