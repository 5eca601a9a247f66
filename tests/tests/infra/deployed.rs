//! One deployment from its creation to its removal.

use std::process::Command;

use dynalake_tests::{python, repository};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use crate::world::{World, replace_line, until};

const STACK: &str = "demo-lake";
const TABLE: &str = "demo-lake-table";

/// An output of the stack.
fn output(world: &World, name: &str) -> String {
    let mut aws = Command::new(python().unwrap().with_file_name("aws"));
    aws.args(["cloudformation", "describe-stacks", "--stack-name", STACK])
        .args(["--output", "text", "--query"])
        .arg(format!(
            "Stacks[0].Outputs[?OutputKey=='{name}'].OutputValue"
        ));
    world.aws(&mut aws).exits(0).out.trim().to_owned()
}

fn order(number: u32, gift: Option<&str>) -> Value {
    let mut item = json!({
        "PK": {"S": "USER#7"},
        "SK": {"S": format!("ORDER#2026-05-01#{number}")},
        "EntityType": {"S": "Order"},
        "userId": {"S": "7"},
        "orderDate": {"S": "2026-05-01"},
        "orderId": {"S": number.to_string()},
        "status": {"S": "PLACED"},
        "total": {"N": "12.50"},
    });
    if let Some(text) = gift {
        item["giftText"] = json!({"S": text});
    }
    item
}

fn put(world: &World, item: &Value) {
    world
        .client()
        .call(
            "DynamoDB_20120810.PutItem",
            &json!({"TableName": TABLE, "Item": item}),
        )
        .unwrap();
}

/// A table or view, as Glue knows it.
fn table(world: &World, name: &str) -> Value {
    let answer = world.client().call(
        "AWSGlue.GetTable",
        &json!({"DatabaseName": "ecommerce", "Name": name}),
    );
    answer.unwrap()["Table"].clone()
}

fn columns(world: &World, name: &str) -> Vec<String> {
    let table = table(world, name);
    let columns = table["StorageDescriptor"]["Columns"].as_array();
    columns
        .unwrap()
        .iter()
        .map(|column| column["Name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_table_gets_a_lake_that_fills_changes_with_its_schemas_and_outlives_its_stack() {
    let Some(world) = World::new() else { return };
    let schemas = world.schemas();
    let deploy = || {
        world.deploy(&[
            "--stack",
            STACK,
            "--demo",
            "--schemas",
            schemas.to_str().unwrap(),
            "--parameter",
            "BatchWindowSeconds=0",
            "--tag",
            "team=orders",
        ])
    };
    let said = deploy().exits(0);
    assert!(said.err.contains("point-in-time recovery"), "{}", said.err);
    assert!(
        said.out.contains("SELECT * FROM \"ecommerce\"."),
        "{}",
        said.out
    );
    let workgroup = output(&world, "WorkGroupName");
    assert_eq!(workgroup, STACK);
    for view in ["orders", "orders_history", "orders_flat", "unmatched"] {
        assert_eq!(table(&world, view)["TableType"], "VIRTUAL_VIEW", "{view}");
    }

    // The items of the demo come through the mapping and the real function into the lake.
    let rows = |sql: &str| world.query(&workgroup, sql);
    let count = |table: &str| {
        rows(&format!("SELECT count(*) FROM \"ecommerce\".\"{table}\""))
            .map_or(0, |rows| rows[0][0].parse().unwrap())
    };
    until("the demo's orders are in the lake", || {
        (count("orders_changes") > 0).then_some(())
    });
    put(&world, &order(1, None));
    let sql = "SELECT total FROM \"ecommerce\".\"orders_changes\" WHERE user_id = '7'";
    let first = until("the order is in the lake", || {
        rows(sql).ok().filter(|rows| !rows.is_empty())
    });
    assert_eq!(first, [["12.50"]]);

    // What Athena reads is what lies in the bucket.
    let bucket = output(&world, "LakeBucketName");
    let store = world.store(&bucket);
    let mut stored = 0;
    for object in store.list("changes/orders/").await.unwrap() {
        let bytes = store.get(&object.key).await.unwrap().unwrap();
        let reader = SerializedFileReader::new(bytes).unwrap();
        stored += reader.metadata().file_metadata().num_rows();
    }
    assert!(stored > 1);
    assert_eq!(stored, count("orders_changes"));

    // Nothing changed, nothing happens.
    let said = deploy().exits(0);
    assert!(
        said.err
            .contains("No changes to deploy. Stack demo-lake is"),
        "{}",
        said.err
    );

    // A schema change: layer and columns in one update; old and new objects are read together.
    assert!(!columns(&world, "orders_changes").contains(&"gift_text".to_owned()));
    replace_line(&schemas.join("order.toml"), "version = 1", "version = 2");
    replace_line(
        &schemas.join("order.toml"),
        "note = ",
        "note = \"string\"\ngift_text = \"string\"",
    );
    let said = deploy().exits(0);
    assert!(
        said.err
            .contains("Successfully created/updated stack - demo-lake"),
        "{}",
        said.err
    );
    for table in ["orders_changes", "orders_snapshot", "orders"] {
        let columns = columns(&world, table);
        assert!(columns.contains(&"gift_text".to_owned()), "{table}");
    }
    put(&world, &order(2, Some("for you")));
    let sql = "SELECT order_id, gift_text FROM \"ecommerce\".\"orders_changes\" \
               WHERE user_id = '7' ORDER BY order_id";
    let both = until("both orders are in the lake", || {
        rows(sql).ok().filter(|rows| rows.len() == 2)
    });
    assert_eq!(both, [["1", ""], ["2", "for you"]]);

    // Removed: functions, tables and views are gone, rows are not.
    let before = store.list("").await.unwrap().len();
    let mut aws = Command::new(python().unwrap().with_file_name("aws"));
    aws.args(["cloudformation", "delete-stack", "--stack-name", STACK]);
    world.aws(&mut aws).exits(0);
    until("the stack is gone", || {
        let answer = world
            .client()
            .call("AWSGlue.GetDatabase", &json!({"Name": "ecommerce"}));
        answer.err()
    });
    assert_eq!(store.list("").await.unwrap().len(), before);
}

#[test]
fn a_table_that_cannot_feed_a_lake_is_refused_with_the_command_that_helps() {
    let Some(world) = World::new() else { return };
    let mut client = world.client();
    let mut make = |name: &str, stream: &Value| {
        client
            .call(
                "DynamoDB_20120810.CreateTable",
                &json!({
                    "TableName": name,
                    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                    "StreamSpecification": stream,
                }),
            )
            .unwrap();
    };
    make("without-stream", &json!({"StreamEnabled": false}));
    make(
        "keys-only",
        &json!({"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}),
    );
    let schemas = repository().join("schemas/ecommerce");
    let refused = |table: &str| {
        let arguments = ["--stack", "refused", "--schemas", schemas.to_str().unwrap()];
        let said = world.deploy(&[&arguments[..], &["--table", table]].concat());
        said.exits(2).err
    };
    let said = refused("without-stream");
    assert!(
        said.contains(
            "aws dynamodb update-table --region eu-west-1 --table-name without-stream \
             --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES"
        ),
        "{said}"
    );
    let said = refused("keys-only");
    assert!(
        said.contains("KEYS_ONLY") && said.contains("StreamEnabled=false"),
        "{said}"
    );
    let said = refused("not-there");
    assert!(said.contains("cannot be looked at"), "{said}");
}
