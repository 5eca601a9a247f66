//! Batches that the mapping gave up are replayed, each once, and bad ones are left.

use dynalake_tests::repository;
use serde_json::json;

use super::world::World;
use crate::event::{batch, insert, user};

const FOLDER: &str = "aws/lambda/0b5c1a5e-mapping/shardId-00000001/2026/05/01";

#[tokio::test(flavor = "multi_thread")]
async fn batches_that_were_given_up_are_replayed_once_and_bad_ones_are_left() {
    // The events' table is this one.
    let Some(world) = World::deploy("shop-table") else {
        return;
    };
    let work = world.work();
    let given_up = |n: u64| {
        json!({
            "requestContext": {"condition": "RetryAttemptsExhausted", "approximateInvokeCount": 3},
            "version": "1.0",
            "DDBStreamBatchInfo": {"shardId": "shardId-00000001", "batchSize": 1},
            "payload": batch(&[insert(n, user(n, "Ada"))]),
        })
    };
    let key = |name: &str| format!("{FOLDER}/2026-05-01T10.00.0{name}");
    for n in 1..=2 {
        let text = given_up(n).to_string();
        work.put(&key(&format!("{n}-x")), text.into())
            .await
            .unwrap();
    }
    let queued = json!({"version": "1.0", "DDBStreamBatchInfo": {"batchSize": 1}});
    work.put(&key("3-x"), queued.to_string().into())
        .await
        .unwrap();

    let schemas = repository().join("tests/fixtures/schemas/shop");
    let schemas = schemas.to_str().unwrap();
    let replay = ["replay", "--failed", "--path-style", "--schemas", schemas];
    let first = world.run(&replay).exits(1);
    assert_eq!(first.out.matches("replayed").count(), 2, "{first:?}");
    first.says(&["2026-05-01T10.00.03-x: it has no `payload`"]);
    let changes = world.lake().list("changes/").await.unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let left: Vec<String> = work
        .list("aws/lambda/")
        .await
        .unwrap()
        .into_iter()
        .map(|object| object.key)
        .collect();
    let moved = |n| key(n).replace("aws/lambda/", "aws/lambda/replayed/");
    assert_eq!(left, [key("3-x"), moved("1-x"), moved("2-x")]);

    // Broken off between the copy and the deletion: it comes back, and writes the same object.
    work.put(&key("1-x"), given_up(1).to_string().into())
        .await
        .unwrap();
    work.delete(&key("3-x")).await.unwrap();
    world.run(&replay).exits(0);
    let again = world.lake().list("changes/").await.unwrap();
    let keys = |objects: &[dynalake_pipeline::store::ObjectMeta]| -> Vec<String> {
        objects.iter().map(|object| object.key.clone()).collect()
    };
    assert_eq!(keys(&again), keys(&changes));
    let over = world.run(&replay).exits(0);
    over.says(&["no batch was given up in `s3://"]);
}
