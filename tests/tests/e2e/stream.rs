//! What the stream function writes, driven over the Runtime API into a real S3 server.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::event::{
    ARN, Change, LABEL, MORNING, batch, event, event_id, insert, modify, order, remove,
    sequence_number, shipment, user,
};
use crate::world::{World, assert_done, failure, quarantined, query, tables};

#[tokio::test]
async fn changes_arrive_as_typed_rows() {
    let Some(world) = World::new("rows") else {
        return;
    };
    let mut function = world.start();
    let mut expired = remove(5, order(1, 7, "paid"));
    expired.ttl = true;
    let changes = [
        insert(1, user(1, "山田 太郎")),
        insert(2, order(1, 7, "new")),
        modify(3, order(1, 7, "new"), order(1, 7, "paid")),
        modify(4, user(1, "山田 太郎"), user(1, "Yamada \"T\"\n")),
        expired,
        remove(6, user(1, "Yamada")),
        insert(
            7,
            json!({"PK": {"S": "COUPON#1"}, "SK": {"S": "X"}, "off": {"N": "1e1"}}),
        ),
    ];
    assert_done(function.invoke(batch(&changes)));

    let objects = world.objects().await;
    assert_eq!(tables(&objects), ["orders", "unmatched", "users"]);
    assert_eq!(quarantined(&objects), Vec::<Value>::new());

    let users = query(
        &objects,
        "users",
        "SELECT _pk, _sk, _op, _reason, _at, _stream, _seq, _event_id, _source, _schema, _rest, \
         _old, user_id, name, length(email) AS email, joined_at, dt FROM changes ORDER BY _seq",
    );
    assert_eq!(users.len(), 3);
    let seq = |n: u64| format!("{:0>40}", sequence_number(n));
    assert_eq!(
        users[0],
        json!({
            "_pk": "USER#1", "_sk": "METADATA", "_op": "INSERT", "_reason": null,
            "_at": "2026-05-01T10:00:01.000Z", "_stream": LABEL, "_seq": seq(1),
            "_event_id": event_id(1), "_source": "stream", "_schema": 3, "_rest": null,
            "_old": null, "user_id": "1", "name": "山田 太郎", "email": 64,
            "joined_at": "2026-04-30T23:59:59.250Z", "dt": "2026-05-01",
        })
    );
    assert_eq!(users[1]["_op"], "MODIFY");
    assert_eq!(users[1]["name"], "Yamada \"T\"\n");
    assert_eq!(users[2]["_op"], "REMOVE");
    assert_eq!(users[2]["_reason"], "user");

    let orders = query(
        &objects,
        "orders",
        "SELECT _op, _reason, status, total, placed_at, tags, lines, attrs, label, _rest, \
         _old IS NOT NULL AS has_old FROM changes ORDER BY _seq",
    );
    assert_eq!(
        orders[0],
        json!({
            "_op": "INSERT", "_reason": null, "status": "new", "total": "7.05",
            "placed_at": "2026-05-01T10:00:00.123Z", "tags": ["blue", "red", "緑"],
            "lines": [
                {"sku": "A-1", "qty": 2, "price": "0.50"},
                {"sku": "B-2", "qty": 1, "price": "9007199254740993.01"},
            ],
            "attrs": [["gift", "yes"], ["メモ", "急ぎ"]], "label": "00010203",
            "_rest": r#"{"undeclared":{"L":[{"NULL":true},{"BOOL":false},{"NS":["3","10"]}]}}"#,
            "has_old": false,
        })
    );
    assert_eq!(orders[1]["status"], "paid");
    assert_eq!(orders[1]["has_old"], true);
    assert_eq!(
        (&orders[2]["_op"], &orders[2]["_reason"]),
        (&json!("REMOVE"), &json!("ttl"))
    );

    let unmatched = query(&objects, "unmatched", "SELECT _pk, _sk, _rest FROM changes");
    assert_eq!(
        unmatched,
        [json!({"_pk": "COUPON#1", "_sk": "X", "_rest": r#"{"off":{"N":"10"}}"#})]
    );

    // Columns that are hashed are nowhere in clear, images and messages included.
    for (key, body) in &objects {
        let clear = body
            .windows(b"user1@example.com".len())
            .any(|w| w == b"user1@example.com");
        assert!(!clear, "{key}");
    }
}

#[tokio::test]
async fn the_same_batch_twice_makes_the_same_objects() {
    let Some(world) = World::new("twice") else {
        return;
    };
    let changes: Vec<_> = (0..40)
        .map(|n| {
            if n % 2 == 0 {
                insert(n, user(n, "a"))
            } else {
                insert(n, order(n, n, "new"))
            }
        })
        .collect();
    let mut records: Vec<Value> = changes.iter().map(Change::record).collect();
    records[9]["dynamodb"]["NewImage"]["total"] = json!({"N": "many"});
    let text = event(records);
    let mut function = world.start();
    assert_done(function.invoke(&text));
    let first = world.objects().await;
    assert_eq!(quarantined(&first).len(), 1);
    assert_done(function.invoke(&text));
    assert_eq!(world.objects().await, first);

    // So does another process, after the first one was lost.
    function.kill();
    world.clear().await;
    assert_done(world.start().invoke(&text));
    assert_eq!(world.objects().await, first);
}

#[tokio::test]
async fn every_invocation_writes_one_summary_line_of_metrics() {
    let Some(world) = World::new("summary") else {
        return;
    };
    let mut function = world.start();
    let changes = [insert(1, user(1, "a")), insert(2, order(1, 2, "new"))];
    assert_done(function.invoke(batch(&changes)));
    assert_done(function.invoke(batch(&[insert(3, user(3, "b"))])));
    function.kill();
    let summaries: Vec<Value> = function
        .json_log()
        .into_iter()
        .filter(|line| line.get("_aws").is_some())
        .collect();
    assert_eq!(summaries.len(), 2, "{:?}", function.log());
    for summary in &summaries {
        assert!(
            summary["_aws"]["CloudWatchMetrics"][0]["Namespace"].is_string(),
            "{summary}"
        );
    }
    let log = function.log().join("\n");
    for value in [
        "USER#1",
        "user1@example.com",
        "Yamada",
        crate::world::SECRET,
    ] {
        assert!(!log.contains(value), "the log holds a value: {log}");
    }
}

#[tokio::test]
async fn an_empty_batch_writes_nothing() {
    let Some(world) = World::new("empty") else {
        return;
    };
    let mut function = world.start();
    assert_done(function.invoke(r#"{"Records":[]}"#));
    assert_eq!(world.objects().await.len(), 0);
}

#[tokio::test]
async fn a_poison_record_goes_to_quarantine_and_its_neighbours_go_on() {
    let Some(world) = World::new("poison") else {
        return;
    };
    let mut function = world.start();
    let mut records: Vec<Value> = (1..=9).map(|n| insert(n, user(n, "a")).record()).collect();
    records[1]["dynamodb"]["NewImage"]["x"] = json!({"N": "12e"});
    records[2]["dynamodb"]["NewImage"]["x"] = json!({"S": "a", "N": "1"});
    records[3]["dynamodb"]["NewImage"]["x"] = json!({"L": [{"M": {"y": {"B": "%%"}}}]});
    records[4]["dynamodb"]["Keys"] = json!({"PK": {"S": "USER#5"}});
    records[5]["dynamodb"]
        .as_object_mut()
        .unwrap()
        .remove("SequenceNumber");
    records[6]["eventName"] = json!("UPSERT");
    records[7] = json!("not a record");
    assert_done(function.invoke(event(records.clone())));

    let objects = world.objects().await;
    let rows = query(&objects, "users", "SELECT _pk FROM changes ORDER BY _pk");
    assert_eq!(rows, [json!({"_pk": "USER#1"}), json!({"_pk": "USER#9"})]);
    let lines = quarantined(&objects);
    assert_eq!(lines.len(), 7);
    for (line, record) in lines.iter().zip(&records[1..8]) {
        let payload: Value = serde_json::from_str(line["payload"].as_str().unwrap()).unwrap();
        assert_eq!(&payload, record, "the payload is whole");
        assert!(
            line["reason"].is_string() && line["message"].is_string(),
            "{line}"
        );
    }
    let paths: Vec<&str> = lines[..3]
        .iter()
        .map(|line| line["path"].as_str().unwrap_or(""))
        .collect();
    assert!(
        paths[0].ends_with('x') && paths[2].ends_with("x[0].y"),
        "{paths:?}"
    );
}

#[tokio::test]
async fn an_event_that_cannot_be_read_fails_alone() {
    let Some(world) = World::new("unparsable") else {
        return;
    };
    let mut function = world.start();
    for text in [
        "{\"Records\":[{\"eventID\":",
        "[]",
        "null",
        "{}",
        r#"{"Records":{}}"#,
        r#"{"Records":[{"eventSource":"aws:sqs","body":"x"}]}"#,
        "\u{1F600}",
    ] {
        let (error_type, message) = failure(function.invoke(text));
        assert!(!error_type.is_empty() && !message.is_empty(), "{text}");
    }
    assert_eq!(world.objects().await.len(), 0);
    assert!(function.is_alive());
    assert_done(function.invoke(batch(&[insert(1, user(1, "a"))])));
    assert_eq!(
        query(&world.objects().await, "users", "FROM changes").len(),
        1
    );
}

#[tokio::test]
async fn streams_without_new_images_are_refused() {
    let Some(world) = World::new("views") else {
        return;
    };
    let mut function = world.start();
    for view in ["KEYS_ONLY", "OLD_IMAGE"] {
        let mut change = modify(2, user(2, "a"), user(2, "b"));
        change.view = view;
        let text = batch(&[change]);
        let (error_type, message) = failure(function.invoke(text));
        assert_eq!(error_type, "dynalake.StreamViewType");
        assert!(
            message.contains(view) && message.contains("NEW_AND_OLD_IMAGES"),
            "{message}"
        );
    }
    assert_eq!(world.objects().await.len(), 0);

    let mut change = modify(3, user(3, "a"), user(3, "b"));
    change.view = "NEW_IMAGE";
    assert_done(function.invoke(batch(&[change])));
    let rows = query(&world.objects().await, "users", "SELECT name FROM changes");
    assert_eq!(rows, [json!({"name": "b"})]);
}

#[tokio::test]
async fn records_of_another_table_are_refused() {
    let Some(world) = World::new("other-table") else {
        return;
    };
    let mut stray = insert(2, user(2, "a"));
    stray.arn =
        "arn:aws:dynamodb:eu-west-1:111122223333:table/other/stream/2026-05-01T00:00:00.000";
    let text = batch(&[insert(1, user(1, "a")), stray.clone()]);
    let (error_type, message) = failure(world.start().invoke(text));
    assert_eq!(error_type, "dynalake.SourceTable");
    assert!(
        message.contains("`other`") && message.contains("`shop-table`"),
        "{message}"
    );
    assert_eq!(
        world.objects().await.len(),
        0,
        "nothing was written of the batch"
    );

    let mut variables = world.variables();
    variables.insert("DYNALAKE_SOURCE_TABLE".to_owned(), "other".to_owned());
    assert_done(
        crate::world::start(&variables)
            .unwrap()
            .invoke(batch(&[stray])),
    );
    assert_eq!(
        query(&world.objects().await, "users", "FROM changes").len(),
        1
    );
}

#[tokio::test]
async fn an_item_that_becomes_another_entity_leaves_a_tombstone() {
    let Some(world) = World::new("moves") else {
        return;
    };
    let mut function = world.start();
    let changes = [
        insert(1, shipment(1, "open")),
        modify(2, shipment(1, "open"), shipment(1, "closed")),
        remove(3, shipment(1, "closed")),
    ];
    assert_done(function.invoke(batch(&changes)));
    let objects = world.objects().await;
    let sql = "SELECT _op, _reason, ltrim(_seq, '0') AS seq FROM changes ORDER BY _seq";
    assert_eq!(
        query(&objects, "open_shipments", sql),
        [
            json!({"_op": "INSERT", "_reason": null, "seq": sequence_number(1)}),
            json!({"_op": "REMOVE", "_reason": "moved", "seq": sequence_number(2)}),
        ]
    );
    assert_eq!(
        query(&objects, "closed_shipments", sql),
        [
            json!({"_op": "MODIFY", "_reason": null, "seq": sequence_number(2)}),
            json!({"_op": "REMOVE", "_reason": "user", "seq": sequence_number(3)}),
        ]
    );
}

#[tokio::test]
async fn a_delete_without_old_image_goes_to_every_table_its_keys_allow() {
    let Some(world) = World::new("blind-delete") else {
        return;
    };
    let mut function = world.start();
    let mut first = remove(1, shipment(1, "open"));
    first.view = "NEW_IMAGE";
    let mut second = remove(2, order(1, 7, "new"));
    second.view = "NEW_IMAGE";
    assert_done(function.invoke(batch(&[first, second])));
    let objects = world.objects().await;
    for table in ["open_shipments", "closed_shipments"] {
        let rows = query(&objects, table, "SELECT _pk, _sk, _op FROM changes");
        assert_eq!(
            rows,
            [json!({"_pk": "SHIP#1", "_sk": "STATE", "_op": "REMOVE"})],
            "{table}"
        );
    }
    let rows = query(
        &objects,
        "orders",
        "SELECT _op, user_id, order_id FROM changes",
    );
    assert_eq!(
        rows,
        [json!({"_op": "REMOVE", "user_id": "1", "order_id": "7"})]
    );
}

#[tokio::test]
async fn creation_times_may_have_fractions_or_be_missing_and_days_are_partitions() {
    let Some(world) = World::new("times") else {
        return;
    };
    let mut function = world.start();
    let at = |n: u64, at: Option<Value>| {
        let mut change = insert(n, user(n, "a"));
        change.at = at;
        change
    };
    let changes = [
        at(1, Some(json!(1_777_629_600.5))),
        at(2, None),
        at(3, Some(json!(1_777_679_999))),
        at(4, Some(json!(1_777_680_000))),
        at(5, Some(json!(1_777_629_600.0))),
    ];
    let mut records: Vec<Value> = changes.iter().map(Change::record).collect();
    // Members that AWS may add.
    records[0]["dynamodb"]["ApproximateCreationDateTimePrecision"] = json!("SECOND");
    records[0]["novel"] = json!({"a": [1, {}]});
    assert_done(function.invoke(event(records)));
    let objects = world.objects().await;
    let rows = query(
        &objects,
        "users",
        "SELECT _at, dt FROM changes ORDER BY _seq",
    );
    let expected = [
        ("2026-05-01T10:00:00.500Z", "2026-05-01"),
        // The newest of the batch stands for the missing one.
        ("2026-05-02T00:00:00.000Z", "2026-05-02"),
        ("2026-05-01T23:59:59.000Z", "2026-05-01"),
        ("2026-05-02T00:00:00.000Z", "2026-05-02"),
        ("2026-05-01T10:00:00.000Z", "2026-05-01"),
    ];
    assert_eq!(rows, expected.map(|(at, dt)| json!({"_at": at, "dt": dt})));

    // No record says when: the time of receipt, which is after these tests were written.
    assert_done(function.invoke(batch(&[at(6, None)])));
    let sql = "SELECT _at > TIMESTAMPTZ '2026-05-02 12:00:00Z' AS later FROM changes \
               ORDER BY _seq DESC LIMIT 1";
    assert_eq!(
        query(&world.objects().await, "users", sql),
        [json!({"later": true})]
    );
}

#[tokio::test]
async fn ten_thousand_records_of_one_batch_are_ten_thousand_rows() {
    let Some(world) = World::new("ten-thousand") else {
        return;
    };
    let mut function = world.start();
    let records = (0..10_000).map(|n| {
        let item = if n % 4 == 0 {
            user(n, "name")
        } else {
            // Few attributes: Lambda's events end at 6 MB.
            json!({
                "PK": {"S": format!("USER#{}", n % 97)},
                "SK": {"S": format!("ORDER#{n}")},
                "total": {"N": format!("{n}")},
            })
        };
        insert(n, item).record()
    });
    let text = event(records);
    assert!(text.len() < 6 << 20, "{} bytes", text.len());
    assert_done(function.invoke(text));
    let objects = world.objects().await;
    let sql = "SELECT count(*) AS n, count(DISTINCT (_pk, _sk, _stream, _seq)) AS keys, \
               count(DISTINCT _event_id) AS events FROM changes";
    assert_eq!(
        query(&objects, "users", sql),
        [json!({"n": 2500, "keys": 2500, "events": 2500})]
    );
    assert_eq!(
        query(&objects, "orders", sql),
        [json!({"n": 7500, "keys": 7500, "events": 7500})]
    );
    let sum = query(
        &objects,
        "orders",
        "SELECT sum(total) AS total FROM changes",
    );
    let expected: u64 = (0..10_000).filter(|n| n % 4 != 0).sum();
    assert_eq!(sum, [json!({"total": format!("{expected}.00")})]);
}

#[tokio::test]
async fn six_megabytes_of_large_items_with_both_images_arrive_whole() {
    let Some(world) = World::new("six-megabytes") else {
        return;
    };
    let mut function = world.start();
    // Items of 390 KB, near DynamoDB's limit, old and new: seven records fill an event.
    let item = |n: u64, letter: char| {
        let mut item = order(1, n, "new");
        item["blob"] = json!({"S": letter.to_string().repeat(390_000)});
        item
    };
    let changes: Vec<_> = (0..7)
        .map(|n| modify(n, item(n, 'a'), item(n, 'b')))
        .collect();
    let text = batch(&changes);
    assert!(
        (5 << 20..6 << 20).contains(&text.len()),
        "{} bytes",
        text.len()
    );
    assert_done(function.invoke(text));
    let rows = query(
        &world.objects().await,
        "orders",
        "SELECT count(*) AS n, min(length(_rest::JSON->'blob'->>'S')) AS new, \
         min(length(_old::JSON->'blob'->>'S')) AS old, \
         count(DISTINCT left(_rest::JSON->'blob'->>'S', 1)) AS letters FROM changes",
    );
    assert_eq!(
        rows,
        [json!({"n": 7, "new": 390_000, "old": 390_000, "letters": 1})]
    );
}

#[tokio::test]
async fn changes_of_one_key_in_one_batch_keep_their_order() {
    let Some(world) = World::new("one-key") else {
        return;
    };
    let mut function = world.start();
    // 9…9 before 10…0: the shorter number is the older one.
    let mut records: Vec<Value> = [
        insert(1, user(1, "first")),
        modify(2, user(1, "first"), user(1, "second")),
        remove(3, user(1, "second")),
        insert(4, user(1, "third")),
    ]
    .iter()
    .map(Change::record)
    .collect();
    let numbers = [
        "99999999999999999999998",
        "99999999999999999999999",
        "100000000000000000000000",
    ];
    for (record, number) in records[1..].iter_mut().zip(numbers) {
        record["dynamodb"]["SequenceNumber"] = json!(number);
    }
    records[0]["dynamodb"]["SequenceNumber"] = json!("111");
    records.reverse();
    assert_done(function.invoke(event(records)));
    let rows = query(
        &world.objects().await,
        "users",
        "SELECT _op, name FROM changes ORDER BY _seq",
    );
    assert_eq!(
        rows,
        [
            json!({"_op": "INSERT", "name": "first"}),
            json!({"_op": "MODIFY", "name": "second"}),
            json!({"_op": "REMOVE", "name": null}),
            json!({"_op": "INSERT", "name": "third"}),
        ]
    );
}

#[tokio::test]
async fn object_names_hold_no_value_and_nothing_that_engines_hide() {
    let Some(world) = World::new("names") else {
        return;
    };
    let mut function = world.start();
    let mut poison = insert(3, user(3, "a")).record();
    poison["dynamodb"]["NewImage"]["x"] = json!({"Q": 1});
    let records = [
        insert(1, user(1, "a")).record(),
        insert(2, order(1, 2, "new")).record(),
        poison,
    ];
    assert_done(function.invoke(event(records)));
    let objects = world.objects().await;
    let keys: BTreeSet<&str> = objects.keys().map(String::as_str).collect();
    assert_eq!(keys.len(), 3);
    for key in keys {
        assert!(
            key.split('/')
                .all(|segment| !segment.starts_with(['_', '.'])),
            "{key}"
        );
        assert!(!key.contains("USER") && !key.contains('#'), "{key}");
        assert!(key.contains("/dt=2026-05-01/"), "{key}");
    }
    assert!(MORNING > 0 && ARN.ends_with(LABEL));
}
