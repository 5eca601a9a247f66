use crate::world::small_lake;

const KEY: &str = "snapshot/orders/export=20260501T000000Z/a.parquet";

#[test]
fn an_object_is_described_without_its_values() {
    let world = small_lake();
    let run = world
        .run(&["inspect", &format!("lake/{KEY}"), "--format", "json"])
        .exits(0);
    let report = run.json();
    assert_eq!(report["rows"], 4);
    assert_eq!(report["created_by"], "test");
    assert_eq!(report["row_groups"].as_array().unwrap().len(), 2);
    let field = |path: &str| {
        let fields = report["schema"].as_array().unwrap();
        fields
            .iter()
            .find(|field| field["path"] == path)
            .unwrap()
            .clone()
    };
    assert_eq!(field("total")["logical_type"], "DECIMAL(12,2)");
    assert_eq!(field("_at")["logical_type"], "TIMESTAMP(MILLIS,UTC)");
    assert_eq!(field("_pk")["repetition"], "REQUIRED");
    let columns = report["columns"].as_array().unwrap();
    let rest = columns
        .iter()
        .find(|column| column["path"] == "_rest")
        .unwrap();
    assert_eq!(
        (&rest["nulls"], &rest["min_max"]),
        (&4.into(), &true.into())
    );
    assert!(
        !run.out.contains("ORDER#1") && !run.out.contains("shipped"),
        "{}",
        run.out
    );
}

#[test]
fn an_object_is_found_by_path_or_by_key_of_a_lake() {
    let world = small_lake();
    let by_path = world.run(&["inspect", &format!("lake/{KEY}")]).exits(0);
    let by_key = world.run(&["inspect", KEY, "--lake", "lake"]).exits(0);
    assert_eq!(
        by_path.out.lines().skip(1).collect::<Vec<_>>(),
        by_key.out.lines().skip(1).collect::<Vec<_>>()
    );
    assert!(by_path.out.contains("4 rows"), "{}", by_path.out);
    assert!(by_path.out.contains("DECIMAL(12,2)"));
}

#[test]
fn what_is_no_object_is_said() {
    let world = small_lake();
    let run = world.run(&["inspect", "lake/nothing.parquet"]).exits(2);
    assert!(run.err.contains("does not exist"), "{}", run.err);
    let run = world.run(&["inspect", "lake"]).exits(2);
    assert!(run.err.contains("dynalake tables"), "{}", run.err);
    world.write("x.parquet", "short");
    let run = world.run(&["inspect", "x.parquet"]).exits(1);
    assert!(run.err.contains("x.parquet"), "{}", run.err);
}
