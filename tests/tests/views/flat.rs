//! Flat views: every value in a plain column, and nothing lost on the way.

use dynalake_tests::{duckdb, duckdb_available};
use serde_json::{Value, json};

use super::traps::B;
use super::world::World;

#[tokio::test]
async fn nested_values_become_columns_and_text() {
    if !duckdb_available() {
        return;
    }
    let mut world = World::new(true);
    world
        .commit(B, &[(("a", Some("x")), "thing", "right")])
        .await;
    let script = world.script().await;
    let athena = world
        .athena(&[("flat", "SELECT * FROM lake.things_flat")])
        .await;
    let of_duckdb = duckdb(&format!("{script}\nSELECT * FROM things_flat"));
    for row in [&of_duckdb[0], &athena["flat"][0]] {
        let row = row.as_object().unwrap();
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        assert!(!names.contains(&"address"), "{names:?}");
        assert!(
            row.values()
                .all(|value| !value.is_array() && !value.is_object()),
            "{row:?}"
        );
        for (name, value) in [
            ("address_city", json!("right")),
            ("address_geo_lat", json!(1.5)),
            ("address_geo_lon", Value::Null),
            ("exact", json!("12345678901234567890.123456789012345678")),
            ("price", json!("5.10")),
            ("count", json!("9007199254740993")),
            ("day", json!("2026-05-01")),
            ("blob", json!("/wBh")),
        ] {
            assert_eq!(row[name], value, "{name}");
        }
        let parsed =
            |name: &str| -> Value { serde_json::from_str(row[name].as_str().unwrap()).unwrap() };
        assert_eq!(
            parsed("lines"),
            json!([{"sku": "a'\"b", "qty": 2, "price": 1.25, "photo": "/wA="}, null])
        );
        assert_eq!(parsed("tags"), json!(["right", "x"]));
        assert_eq!(parsed("attrs"), json!({"colour": "right"}));
        assert_eq!(parsed("_rest")["extra"], json!({"S": "in _rest"}));
    }
}
