//! Rolls with other schemas than the base was made with.

use super::world::*;
use crate::RefusalKind;
use crate::manifest::ExportView;

/// A new column and a new entity, which takes what was unmatched.
fn newer() -> Vec<String> {
    let mut entities = entities();
    entities[1].push_str("note = \"string\"\n");
    entities.push(
        "entity = \"counter\"\ntable = \"counters\"\nversion = 1\n[match]\npartition_key = \"COUNTER\"\n\
         [columns]\nn = \"bigint\"\n"
            .to_owned(),
    );
    entities
}

fn catalog_from(entities: &[String]) -> std::sync::Arc<dynalake_schemas::Catalog> {
    catalog_of(&entities.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_of_older_schemas_is_decoded_again_under_the_newer_ones() {
    let [first, second, _] = history();
    let t1 = T0 + HOUR;
    let mut world = World::new();
    world.baseline(T0, &first).await;
    world.catalog = catalog_from(&newer());
    let full = World::with(catalog_from(&newer()));
    let label = full.baseline(t1, &second).await.label;
    let mut second_but_counter = second.clone();
    put(
        &mut second_but_counter,
        "COUNTER",
        "META",
        r#""n":{"N":"1"}"#,
    );
    let change = effects(&first, &second_but_counter, t1);
    let id = world.window((T0, t1), ExportView::NewImage, &change).await;
    let report = world.roll(&[id]).await.unwrap();
    assert!(report.decoded_again);
    let record = world.commit(&report).await;
    assert_eq!(record.tables["counters"].rows, 1);
    let expected: Vec<String> = full
        .rows(&label)
        .into_iter()
        .map(|row| row.replace(r#""n":{"N":"2"}"#, r#""n":{"N":"1"}"#))
        .collect();
    assert_eq!(world.rows(&label), expected);
    // Nothing of the way there is left, but what windows left.
    let deltas = tree(&world.lake().join("deltas"));
    assert!(deltas.keys().all(|key| !key.contains("rolled-")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_hide_values_are_not_decoded_again() {
    let [first, second, _] = history();
    let t1 = T0 + HOUR;
    let hiding = |transform: &str| {
        let mut entities = entities();
        entities[0] = entities[0].replace(
            "age = \"int\"",
            &format!("age = \"int\"\nname = {{ type = \"string\"{transform} }}"),
        );
        catalog_from(&entities)
    };
    let roll = async |before, after| {
        let mut world = World::with(before);
        world.baseline(T0, &first).await;
        world.catalog = after;
        let change = effects(&first, &second, t1);
        let id = world.window((T0, t1), ExportView::NewImage, &change).await;
        world.roll(&[id]).await
    };
    let mask = ", transform = \"mask\"";
    let error = roll(hiding(mask), hiding("")).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::OtherSchemas), "{error}");
    assert!(error.to_string().contains("full export"), "{error}");
    assert!(error.to_string().contains("`users`"), "{error}");
    // What is hidden from now on could still be read; with the same schemas nothing is decoded.
    assert!(roll(hiding(""), hiding(mask)).await.unwrap().decoded_again);
    assert!(
        !roll(hiding(mask), hiding(mask))
            .await
            .unwrap()
            .decoded_again
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_gone_or_narrower_loses_nothing() {
    let [first, second, _] = history();
    let t1 = T0 + HOUR;
    let mut gone = entities();
    gone.remove(0);
    let mut narrower = entities();
    narrower[0] = narrower[0].replace("age = \"int\"\n", "");
    for entities in [gone, narrower] {
        let mut world = World::new();
        world.baseline(T0, &first).await;
        world.catalog = catalog_from(&entities);
        let change = effects(&first, &second, t1);
        let id = world.window((T0, t1), ExportView::NewImage, &change).await;
        let report = world.roll(&[id]).await.unwrap();
        let full = World::with(catalog_from(&entities));
        let label = full.baseline(t1, &second).await.label;
        assert_eq!(world.rows(&report.label), full.rows(&label));
    }
}
