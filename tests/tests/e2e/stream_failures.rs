//! What is left of a batch when the network, S3 or the process fails, and after the retry.

use dynalake_tests::Action;
use serde_json::{Value, json};

use crate::event::{Change, batch, event, insert, modify, order, shipment, user};
use crate::world::{Objects, World, assert_done, failure, quarantined, query};

/// A batch that makes objects of four tables, two days and quarantine.
fn changes() -> Vec<Change> {
    let mut changes: Vec<Change> = (0..20)
        .map(|n| match n % 3 {
            0 => insert(n, user(n, "a")),
            1 => insert(n, order(n, n, "new")),
            _ => modify(n, shipment(n, "open"), shipment(n, "closed")),
        })
        .collect();
    // The day after.
    changes[12].at = Some(json!(1_777_720_000));
    changes
}

fn records(changes: &[Change]) -> Vec<Value> {
    let mut records: Vec<Value> = changes.iter().map(Change::record).collect();
    if let Some(record) = records
        .iter_mut()
        .find(|record| record["eventID"].as_str() == Some(POISON))
    {
        record["dynamodb"]["NewImage"]["total"] = json!({"N": "1e"});
    }
    records
}

/// `eventID` of the fifth change.
const POISON: &str = "00000000000000000000000000000004";

/// What a run without failure writes. The lake is empty again after it.
async fn without_failure(world: &World, text: &str) -> Objects {
    assert_done(world.start().invoke(text));
    let objects = world.objects().await;
    world.clear().await;
    objects
}

#[tokio::test]
async fn a_put_that_fails_fails_the_invocation_and_its_retry_completes_it() {
    let Some(world) = World::new("each-put") else {
        return;
    };
    let text = event(records(&changes()));
    let expected = without_failure(&world, &text).await;
    // users (two days), orders, open_shipments, closed_shipments, quarantine
    assert_eq!(expected.len(), 6, "{:?}", expected.keys());
    let mut function = world.start();
    for action in [Action::Deny, Action::SlowDown, Action::DropAnswer] {
        for n in 0..expected.len() {
            world.proxy.fail_put(n, action);
            let (error_type, message) = failure(function.invoke(&text));
            assert_eq!(error_type, "dynalake.Store", "{message}");
            assert!(message.contains("cannot put"), "{message}");
            // What is there is whole, and what it should be.
            for (key, body) in &world.objects().await {
                assert_eq!(expected.get(key), Some(body), "{action:?} {n} {key}");
            }
            world.proxy.heal();
            assert_done(function.invoke(&text));
            assert_eq!(world.objects().await, expected, "{action:?} {n}");
            world.clear().await;
            if action != Action::Deny {
                // Every attempt is waited for: one object shows it.
                break;
            }
        }
    }
}

#[tokio::test]
async fn all_decoding_is_done_before_the_first_put() {
    let Some(world) = World::new("decode-first") else {
        return;
    };
    let mut records = records(&changes());
    records[19]["eventSourceARN"] =
        json!("arn:aws:dynamodb:eu-west-1:111122223333:table/other/stream/2026-05-01T00:00:00.000");
    world.proxy.heal();
    let (error_type, _) = failure(world.start().invoke(event(records)));
    assert_eq!(error_type, "dynalake.SourceTable");
    assert_eq!(world.proxy.seen(), vec![]);
}

#[tokio::test]
async fn passing_failures_are_not_failures() {
    let Some(world) = World::new("passing") else {
        return;
    };
    let text = event(records(&changes()));
    let expected = without_failure(&world, &text).await;
    let mut function = world.start();
    for action in [Action::SlowDown, Action::Reset, Action::DropAnswer] {
        world.proxy.set(move |request| {
            if request.attempt == 0 {
                action
            } else {
                Action::Pass
            }
        });
        assert_done(function.invoke(&text));
        assert_eq!(world.objects().await, expected, "{action:?}");
        world.clear().await;
    }
}

#[tokio::test]
async fn a_process_that_is_killed_between_puts_leaves_what_its_retry_completes() {
    let Some(world) = World::new("killed") else {
        return;
    };
    let text = event(records(&changes()));
    let expected = without_failure(&world, &text).await;
    for n in 0..expected.len() {
        // The n-th object is never stored, so the process is between puts when it is killed.
        world.proxy.fail_put(n, Action::SlowDown);
        let mut function = world.start();
        let invocation = function.begin(&text);
        world
            .proxy
            .wait_for(|r| r.method == "PUT" && r.nth == n && r.attempt == 1);
        function.kill();
        assert!(matches!(
            function.wait(&invocation),
            Err(dynalake_tests::LambdaError::Exited(_))
        ));
        world.proxy.heal();
        for (key, body) in &world.objects().await {
            assert_eq!(expected.get(key), Some(body), "{n} {key}");
        }
        assert_done(world.start().invoke(&text));
        assert_eq!(world.objects().await, expected, "{n}");
        world.clear().await;
    }
}

#[tokio::test]
async fn a_retry_with_another_cut_gives_the_same_rows() {
    let Some(world) = World::new("other-cut") else {
        return;
    };
    let changes = changes();
    let whole = event(records(&changes));
    let expected = without_failure(&world, &whole).await;

    // The batch fails after some objects were stored; Lambda halves it, and one half once more.
    let mut function = world.start();
    world.proxy.fail_put(2, Action::Deny);
    failure(function.invoke(&whole));
    world.proxy.heal();
    for cut in [0..10, 10..15, 15..20] {
        assert_done(function.invoke(event(records(&changes[cut]))));
    }
    let objects = world.objects().await;
    for table in ["users", "orders", "open_shipments", "closed_shipments"] {
        // A reader takes one row per change; `dt` is a function of the row.
        let sql = "SELECT DISTINCT ON (_pk, _sk, _stream, _seq) * FROM changes \
                   ORDER BY _pk, _sk, _stream, _seq";
        let rows = query(&objects, table, sql);
        assert_eq!(rows, query(&expected, table, sql), "{table}");
        // And duplicates are equal in every column, so that it does not matter which one.
        let distinct = query(&objects, table, "SELECT DISTINCT * FROM changes").len();
        assert_eq!(distinct, rows.len(), "{table}");
    }
    let mut payloads: Vec<Value> = quarantined(&objects)
        .into_iter()
        .map(|line| line["payload"].clone())
        .collect();
    payloads.dedup();
    assert_eq!(payloads.len(), 1);
}

#[tokio::test]
async fn wrong_credentials_fail_the_invocation_with_what_the_service_said() {
    let Some(world) = World::new("credentials") else {
        return;
    };
    let mut variables = world.variables();
    let secret = "wrong-secret-access-key";
    variables.insert("AWS_SECRET_ACCESS_KEY".to_owned(), secret.to_owned());
    let mut function = crate::world::start(&variables).unwrap();
    let text = batch(&[insert(1, user(1, "a"))]);
    let (error_type, message) = failure(function.invoke(&text));
    assert_eq!(error_type, "dynalake.Store");
    assert!(message.contains("SignatureDoesNotMatch"), "{message}");
    assert!(function.is_alive());
    assert!(!function.log().join("\n").contains(secret));
    assert_eq!(world.objects().await.len(), 0);
}
