use std::io::Read;
use std::process::Stdio;

use serde_json::json;

use crate::world::{MAY_1, Order, World, orders, small_lake};

#[test]
fn the_current_baseline_is_shown_with_exact_values() {
    let world = small_lake();
    let run = world
        .run(&[
            "show",
            "lake",
            "orders",
            "--format",
            "json",
            "--columns",
            "_pk,total,quantity,paid,_at,_rest",
        ])
        .exits(0);
    assert_eq!(
        run.json()[0],
        json!({"_pk": "ORDER#1", "total": "12.50", "quantity": 9_007_199_254_740_993_i64, "paid": true,
               "_at": "2026-05-01T00:00:00Z", "_rest": null})
    );
    assert_eq!(run.json().as_array().unwrap().len(), 4);
    assert!(run.out.contains("9007199254740993"));
    assert_eq!(run.err, "");
    // All columns, in the order of the file.
    let all = world
        .run(&["show", "lake", "orders", "--format", "csv"])
        .exits(0);
    assert_eq!(
        all.out.lines().next().unwrap(),
        "_pk,_sk,_op,_at,_stream,_seq,_rest,status,total,quantity,paid"
    );
}

#[test]
fn csv_is_quoted_and_tells_null_from_empty() {
    let world = small_lake();
    let run = world
        .run(&[
            "show",
            "lake",
            "orders",
            "--format",
            "csv",
            "--columns",
            "status,total,_rest",
            "--limit",
            "0",
        ])
        .exits(0);
    assert_eq!(
        run.out,
        "status,total,_rest\npaid,12.50,\nopen,0.05,\nshipped,999999.99,\n\"緑茶,\"\"x\"\"\",-1.00,\n"
    );
}

#[test]
fn a_table_hides_plumbing_and_says_what_it_shows() {
    let world = small_lake();
    let run = world.run(&["show", "lake", "orders", "-n", "2"]).exits(0);
    let header = run.out.lines().next().unwrap();
    assert!(header.contains("status") && !header.contains("_seq") && !header.contains("_rest"));
    assert_eq!(run.out.lines().count(), 4, "{}", run.out);
    assert!(
        run.err.contains("as of baseline 20260501T000000Z"),
        "{}",
        run.err
    );
    assert!(run.err.contains("the first 2 rows"), "{}", run.err);
    assert!(
        !world
            .run(&["show", "lake", "orders", "-n", "4"])
            .exits(0)
            .err
            .contains("first")
    );
}

#[test]
fn conditions_compare_typed_values_exactly() {
    let world = small_lake();
    let keys = |conditions: &[&str]| {
        let mut args = vec![
            "show",
            "lake",
            "orders",
            "--format",
            "json",
            "--columns",
            "_pk",
        ];
        for condition in conditions {
            args.extend(["--where", condition]);
        }
        let rows = world.run(&args).exits(0).json();
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| row["_pk"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&["status=open"]), ["ORDER#2"]);
    assert_eq!(keys(&["total=12.5"]), ["ORDER#1"]);
    assert_eq!(keys(&["total=12.500"]), ["ORDER#1"]);
    assert_eq!(keys(&["total=12.501"]), Vec::<String>::new());
    assert_eq!(keys(&["quantity=9007199254740992"]), Vec::<String>::new());
    assert_eq!(keys(&["paid=false", "status=shipped"]), ["ORDER#3"]);
    assert_eq!(keys(&["_at=2026-05-01T09:00:00+09:00"]).len(), 4);
    assert_eq!(
        keys(&["_sk="]),
        Vec::<String>::new(),
        "NULL is not the empty text"
    );

    let run = world
        .run(&["show", "lake", "orders", "--where", "total=cheap"])
        .exits(2);
    assert!(
        run.err.contains("`cheap` is not a value of column `total`"),
        "{}",
        run.err
    );
    let run = world
        .run(&["show", "lake", "orders", "--where", "status"])
        .exits(2);
    assert!(run.err.contains("column=value"), "{}", run.err);
}

#[test]
fn names_that_are_not_there_bring_the_nearest() {
    let world = small_lake();
    let run = world.run(&["show", "lake", "order"]).exits(2);
    assert!(run.err.contains("has no table `order`") && run.err.contains("did you mean `orders`?"));
    let run = world.run(&["show", "lake", "invoices"]).exits(2);
    assert!(
        run.err.contains("its tables are: orders, users"),
        "{}",
        run.err
    );
    for args in [["--columns", "staus"], ["--where", "staus=paid"]] {
        let run = world
            .run(&[&["show", "lake", "orders"], args.as_slice()].concat())
            .exits(2);
        assert!(run.err.contains("no column `staus`"), "{}", run.err);
        assert!(run.err.contains("did you mean `status`?"), "{}", run.err);
    }
}

#[test]
fn an_incomplete_export_is_shown_only_when_asked_for() {
    let world = small_lake();
    let run = world
        .run(&[
            "show",
            "lake",
            "orders",
            "--export",
            "20260502T000000Z",
            "--format",
            "json",
        ])
        .exits(0);
    assert_eq!(run.json()[0]["_pk"], "ORDER#9");
    assert!(run.err.contains("not complete"), "{}", run.err);
    let run = world
        .run(&["show", "lake", "orders", "--export", "20260503T000000Z"])
        .exits(2);
    assert!(
        run.err
            .contains("its exports are: 20260501T000000Z, 20260502T000000Z"),
        "{}",
        run.err
    );
    std::fs::remove_dir_all(world.path("lake/state")).unwrap();
    let run = world.run(&["show", "lake", "orders"]).exits(2);
    assert!(
        run.err.contains("no baseline of `lake` is committed yet"),
        "{}",
        run.err
    );
    let run = world.run(&["show", "lake", "users"]).exits(2);
    assert!(run.err.contains("add `--changes`"), "{}", run.err);
}

#[test]
fn changes_are_one_row_per_change_in_order_of_time() {
    let world = small_lake();
    let show = |more: &[&str]| {
        let args = [
            "show",
            "lake",
            "orders",
            "--changes",
            "--format",
            "json",
            "--columns",
            "_op,_seq",
        ];
        let run = world.run(&[&args[..], more].concat()).exits(0);
        let json = run.json();
        json.as_array()
            .unwrap()
            .iter()
            .map(|row| {
                assert_eq!(
                    row.as_object().unwrap().len(),
                    2,
                    "only the columns asked for"
                );
                (
                    row["_op"].as_str().unwrap().to_owned(),
                    row["_seq"].as_str().unwrap().parse().unwrap(),
                )
            })
            .collect::<Vec<(String, u64)>>()
    };
    let all = [
        ("INSERT", 11),
        ("INSERT", 9),
        ("MODIFY", 10),
        ("REMOVE", 12),
    ]
    .map(|(op, seq)| (op.to_owned(), seq));
    assert_eq!(show(&[]), all);
    assert_eq!(show(&["--limit", "0"]), all);
    assert_eq!(show(&["--limit", "2"]), all[2..], "the newest");
    assert_eq!(
        show(&["--where", "_pk=ORDER#2"]),
        [all[0].clone(), all[3].clone()]
    );
}

#[test]
fn text_from_the_lake_cannot_drive_the_terminal() {
    let world = small_lake();
    let run = world.run(&["show", "lake", "users", "--changes"]).exits(0);
    assert!(
        run.out.contains("USER#\\u{202e}\\u{1b}[31m1"),
        "{}",
        run.out
    );
    assert!(!run.out.contains(['\u{1b}', '\u{202e}']));
    // Programs get what is there.
    let run = world
        .run(&["show", "lake", "users", "--changes", "--format", "json"])
        .exits(0);
    assert_eq!(run.json()[0]["_pk"], "USER#\u{202e}\u{1b}[31m1");
}

#[test]
fn objects_of_an_older_schema_version_give_null() {
    let world = small_lake();
    let old = orders(&[Order {
        pk: "ORDER#0",
        op: "INSERT",
        at: 0,
        seq: Some(1),
        ..Order::default()
    }]);
    let old = old.project(&[0, 1, 2, 3, 4, 5, 6]).unwrap();
    world.parquet("lake/changes/orders/dt=1970-01-01/a.parquet", &[old]);
    for limit in ["0", "20"] {
        let run = world
            .run(&[
                "show",
                "lake",
                "orders",
                "--changes",
                "--format",
                "csv",
                "--columns",
                "_pk,status",
                "--limit",
                limit,
            ])
            .exits(0);
        assert_eq!(run.out.lines().nth(1), Some("ORDER#0,"), "{}", run.out);
    }
}

#[test]
fn a_reader_that_stops_is_success() {
    let world = World::new();
    let rows: Vec<Order> = (0..50_000)
        .map(|_| Order {
            pk: "ORDER#1",
            op: "SNAPSHOT",
            ..Order::default()
        })
        .collect();
    world.parquet(
        "lake/snapshot/orders/export=20260501T000000Z/a.parquet",
        &[orders(&rows)],
    );
    world.baseline("lake", "20260501T000000Z", MAY_1, &["orders"]);
    let mut command =
        world.command(&["show", "lake", "orders", "--limit", "0", "--format", "json"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 1]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
