//! The example database, as its users see it.

use crate::fixture::{catalog, ecommerce};
use crate::model::{AttributeView, Catalog, ColumnSource};
use crate::show;

/// Entity and captured columns of an item with these keys.
fn route(catalog: &Catalog, pk: &str, sk: &str) -> (String, Vec<(String, String)>) {
    let mut captures = Vec::new();
    let index = catalog.route(
        pk,
        Some(sk),
        &mut |_| None::<AttributeView<'_>>,
        &mut captures,
    );
    let entity = &catalog.entities[index];
    let captured = entity
        .columns
        .iter()
        .filter_map(|column| match column.source {
            ColumnSource::Capture(at) => Some((column.name.clone(), captures[at]?.to_owned())),
            ColumnSource::Attribute(_) => None,
        });
    (entity.name.clone(), captured.collect())
}

#[test]
fn items_of_the_shop_find_their_entity_by_keys_alone() {
    let catalog = catalog(&ecommerce());
    for (pk, sk, entity, captures) in [
        ("USER#u1", "METADATA", "user", vec!["u1"]),
        (
            "USER#u1",
            "ORDER#2026-11-30#o1",
            "order",
            vec!["u1", "2026-11-30", "o1"],
        ),
        ("ORDER#o1", "ITEM#p1", "order_item", vec!["o1", "p1"]),
        ("ORDER#o1", "PAYMENT#pay1", "payment", vec!["o1", "pay1"]),
        ("PRODUCT#p1", "METADATA", "product", vec!["p1"]),
        (
            "PRODUCT#p1",
            "CATEGORY#tea",
            "product_category",
            vec!["p1", "tea"],
        ),
        (
            "PRODUCT#p1#shard3",
            "INVENTORY",
            "inventory",
            vec!["p1", "3"],
        ),
        ("IDEM#a#b", "IDEM", "idempotency_key", vec!["a#b"]),
        ("USER#u1", "ORDER#yesterday#o1", "unmatched", vec![]),
        ("PRODUCT#p1#shardX", "INVENTORY", "unmatched", vec![]),
        ("SESSION#1", "METADATA", "unmatched", vec![]),
        ("", "", "unmatched", vec![]),
    ] {
        let (found, captured) = route(&catalog, pk, sk);
        let texts: Vec<&str> = captured.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!((found.as_str(), texts), (entity, captures), "{pk} {sk}");
        let possible = catalog.possible_by_keys(pk, Some(sk));
        let names: Vec<&str> = possible
            .iter()
            .map(|at| catalog.entities[*at].name.as_str())
            .collect();
        assert_eq!(names, [entity], "an item of the shop never moves");
    }
    assert!(
        catalog
            .entities
            .iter()
            .all(|entity| entity.matcher.by_keys_alone())
    );
}

#[test]
fn a_catalog_is_shown_with_all_types_and_sources() {
    let shown = show::describe(&catalog(&ecommerce()));
    let entity = |name: &str| {
        shown
            .entities
            .iter()
            .find(|entity| entity.entity == name)
            .unwrap()
    };
    let order = entity("order");
    assert_eq!(
        order.matching,
        "PK = USER#{user_id}, SK = ORDER#{order_date:date}#{order_id}"
    );
    let column = |entity: &str, name: &str| {
        let entity = shown
            .entities
            .iter()
            .find(|shown| shown.entity == entity)
            .unwrap();
        entity
            .columns
            .iter()
            .find(|column| column.name == name)
            .unwrap()
            .clone()
    };
    let lines = column("order", "lines");
    assert_eq!(
        lines.arrow_type.as_deref(),
        Some(
            "List<Struct<sku: Utf8, name: Utf8, qty: Int32, price: Decimal128(12, 2), \
             options: Map<Utf8, Utf8>>>"
        )
    );
    assert_eq!(
        (lines.from, lines.source.as_str(), lines.exact),
        ("attribute", "lines", false)
    );
    assert_eq!(column("order", "order_date").from, "capture");
    let refunds = column("payment", "refunds");
    assert_eq!(
        refunds.format.as_deref(),
        Some("refunds.element.refunded_at: epoch_s")
    );
    let dropped = column("user", "password_hash");
    assert_eq!(
        (dropped.transform, dropped.athena_type, dropped.field_id),
        (Some("drop"), None, None)
    );
    assert_eq!(column("product", "tags").declared_type, "set<string>");
    assert_eq!(
        column("product", "tags").athena_type.as_deref(),
        Some("array<string>")
    );
    assert_eq!(entity("unmatched").matching, "everything else");
    let json = serde_json::to_value(&shown).unwrap();
    assert_eq!(json["entities"][0]["columns"][0]["type"], "string");
    assert!(json["entities"][0]["match"].is_string());
}
