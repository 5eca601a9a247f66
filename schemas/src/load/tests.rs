use std::fs;

use crate::fixture::{catalog, entity, errors, folder, warnings};
use crate::load::check;
use crate::model::*;

/// Errors of one entity file `x.toml` beside a usual `lake.toml`.
fn errors_of(text: &str) -> Vec<String> {
    errors(folder(&[("x.toml", text)]).path())
}

#[track_caller]
fn assert_says(said: &[String], parts: &[&str]) {
    let found = said
        .iter()
        .any(|text| parts.iter().all(|part| text.contains(part)));
    assert!(found, "nothing says {parts:?} among {said:#?}");
}

#[test]
fn every_key_of_the_language_is_read() {
    let folder = folder(&[(
        "order.toml",
        r#"
entity = "order"
table = "orders"
version = 3
keep_old_image = true
on_mismatch = "quarantine"
description = "an order"
[match]
separator = "|"
partition_key = ["USER|{user_id}", "GUEST|{user_id}"]
sort_key = "ORDER|{day:date}|{seq:int}"
attributes = { EntityType = ["Order", 2, true], v = { exists = true, prefix = "a" }, w = { suffix = "b" }, n = 1.50 }
priority = 2
[columns]
user_id = "string"
day = { type = "date" }
seq = "bigint"
placed_at = { type = "timestamp", attribute = "createdAt", format = "epoch_s", on_mismatch = "rest", lossless = false }
amount = { type = "string", format = "number" }
[columns.lines]
type = "array<struct<sku:string,at:timestamp,more:map<string,struct<x:date>>>>"
fields = { sku = "SKU€", "more.x" = "X X" }
formats = { at = "epoch_ms", more.x = "%Y%m%d" }
"#,
    )]);
    let catalog = catalog(folder.path());
    let order = &catalog.entities[0];
    assert_eq!(
        (order.name.as_str(), order.version, order.keep_old_image),
        ("order", 3, true)
    );
    assert_eq!(order.matcher.captures, ["user_id", "day", "seq"]);
    assert_eq!(order.matcher.priority, 2);
    assert_eq!(
        order.matcher.attributes[0].test,
        AttributeTest::OneOf(vec![
            Scalar::S("Order".to_owned()),
            Scalar::N("2".to_owned()),
            Scalar::Bool(true)
        ])
    );
    assert_eq!(order.matcher.attributes.len(), 5);
    assert_eq!(
        order.matcher.attributes[4].test,
        AttributeTest::OneOf(vec![Scalar::N("1.5".to_owned())])
    );
    let placed_at = &order.columns[3];
    assert_eq!(
        placed_at.source,
        ColumnSource::Attribute(AttributeName::Exact("createdAt".to_owned()))
    );
    assert_eq!(
        placed_at.ty,
        ColumnType::Timestamp(TimeFormat::EpochSeconds)
    );
    assert_eq!(
        (placed_at.on_mismatch, placed_at.lossless),
        (OnMismatch::Rest, false)
    );
    assert_eq!(order.columns[0].source, ColumnSource::Capture(0));
    assert_eq!(order.columns[0].on_mismatch, OnMismatch::Quarantine);
    assert_eq!(
        order.columns[4].ty,
        ColumnType::String(StringFormat::Number)
    );
    let ColumnType::Array(element) = &order.columns[5].ty else {
        panic!()
    };
    let ColumnType::Struct(members) = &element.ty else {
        panic!()
    };
    assert_eq!(
        members[0].attribute,
        AttributeName::Exact("SKU€".to_owned())
    );
    assert_eq!(
        members[1].ty,
        ColumnType::Timestamp(TimeFormat::EpochMillis)
    );
    let ColumnType::Map { value, .. } = &members[2].ty else {
        panic!()
    };
    let ColumnType::Struct(inner) = &value.ty else {
        panic!()
    };
    assert_eq!(inner[0].attribute, AttributeName::Exact("X X".to_owned()));
    assert_eq!(
        inner[0].ty,
        ColumnType::Date(TimeFormat::Pattern("%Y%m%d".to_owned()))
    );
    assert_eq!(catalog.entities[1].name, "unmatched");
}

#[test]
fn keys_may_be_numbers_and_the_sort_key_may_be_missing() {
    let folder = folder(&[("x.toml", &entity("x", "attributes = { t = \"X\" }", ""))]);
    fs::write(
        folder.path().join("lake.toml"),
        "database = \"d\"\n[source]\npartition_key = { name = \"id\", type = \"N\" }\n\
         separator = \":\"\nignore = [\"a*\"]",
    )
    .unwrap();
    let source = catalog(folder.path()).source;
    assert_eq!(source.partition_key.key_type, KeyType::N);
    assert_eq!(
        (source.sort_key, source.ignore),
        (None, vec!["a*".to_owned()])
    );
    let with_sort_key = entity("y", "sort_key = \"Y\"", "");
    fs::write(folder.path().join("y.toml"), with_sort_key).unwrap();
    assert_says(
        &errors(folder.path()),
        &["y.toml:4", "has no sort key", "lake.toml"],
    );
}

#[test]
fn all_problems_of_all_files_come_at_once_with_file_line_and_remedy() {
    let folder = folder(&[
        (
            "a.toml",
            "entity = \"a\"\ntabel = \"as\"\n[match]\npartition_key = \"A#{id\"\n",
        ),
        (
            "b.toml",
            "entity = \"b\"\ntable = \"bs\"\n[match]\n[columns]\nx = \"strin\"\n",
        ),
        ("c.toml", "entity = \"c\ntable"),
        ("notes.txt", "not a schema"),
        (
            "lake.toml",
            "databse = \"shop\"\n[source]\npartition_key = \"PK\"\nsort_key = \"SK\"\n",
        ),
    ]);
    let said = errors(folder.path());
    assert_says(
        &said,
        &["a.toml:2", "no key `tabel`", "did you mean `table`?"],
    );
    assert_says(&said, &["a.toml:0", "names no lake table", "table = \"a\""]);
    assert_says(&said, &["a.toml:4", "`{` is not closed"]);
    assert_says(
        &said,
        &[
            "b.toml:3",
            "says nothing about which items",
            "partition_key",
        ],
    );
    assert_says(
        &said,
        &["b.toml:5", "`strin` is not a type", "write `string`"],
    );
    assert_says(&said, &["c.toml:", "is not TOML"]);
    assert_says(&said, &["lake.toml:1", "no key `databse`", "`database`"]);
    assert_says(&said, &["lake.toml:0", "names no database"]);
    assert_eq!(said.len(), 8, "{said:#?}");
    let sorted = check(folder.path()).problems;
    assert!(
        sorted
            .iter()
            .is_sorted_by_key(|problem| (&problem.file, problem.line))
    );
}

#[test]
fn a_folder_that_is_none_says_so() {
    let empty = tempfile::tempdir().unwrap();
    assert_says(
        &errors(empty.path()),
        &["holds no lake.toml", "schemas/ecommerce"],
    );
    assert_says(&errors(&empty.path().join("no")), &["cannot be read"]);
}

#[test]
fn what_lake_toml_may_not_say() {
    let folder = folder(&[]);
    for (text, parts) in [
        (
            "database = \"Shop\"",
            vec!["`Shop` is not a database name", "`shop`"],
        ),
        (
            "database = 1",
            vec!["a whole number, not a string", "\"…\""],
        ),
        ("database = \"a\"", vec!["no [source]", "partition_key"]),
        (
            "[source]\nsort_key = \"SK\"",
            vec!["no partition key", "PK"],
        ),
        (
            "[source]\npartition_key = \"A\"\nsort_key = \"A\"",
            vec!["both `A`", "leave"],
        ),
        (
            "[source]\npartition_key = { name = \"A\", type = \"X\" }",
            vec!["`X`", "\"S\""],
        ),
        (
            "[source]\npartition_key = { type = \"S\" }",
            vec!["names no attribute", "name"],
        ),
        (
            "[source]\npartition_key = 3",
            vec!["a whole number, not an attribute"],
        ),
        ("[source]\npartition_key = \"\"", vec!["empty name"]),
        (
            "[source]\npartition_key = \"A\"\nignore = [\"a*b\"]",
            vec!["`a*b`", "prefix"],
        ),
        (
            "[source]\npartition_key = \"A\"\nignore = [1]",
            vec!["array of strings"],
        ),
    ] {
        fs::write(folder.path().join("lake.toml"), text).unwrap();
        assert_says(&errors(folder.path()), &parts);
    }
}

#[test]
fn what_an_entity_may_not_say() {
    let good = "partition_key = \"A#{id}\"";
    for (text, parts) in [
        (
            "table = \"x\"",
            vec!["names no entity", "entity = \"order\""],
        ),
        (
            "entity = \"Order\"\ntable = \"orders\"",
            vec![":1", "`Order`", "`order`"],
        ),
        (
            "entity = \"x\"\ntable = \"_x\"",
            vec![":2", "`_x` is not a name", "begin with a-z"],
        ),
        (
            "entity = \"x\"\ntable = \"xs\"\nversion = 0",
            vec![":3", "below 1"],
        ),
        (
            "entity = \"x\"\ntable = \"xs\"\nversion = \"1\"",
            vec!["a string, not a whole number"],
        ),
        (
            "entity = \"x\"\ntable = \"xs\"\non_mismatch = \"drop\"",
            vec!["cannot be `drop`"],
        ),
        (
            "entity = \"x\"\ntable = \"xs\"\nkeep_old_image = 1",
            vec!["true or false"],
        ),
        (
            "entity = \"x\"\ntable = \"xs\"\ndescription = \"a\\nb\"",
            vec!["several lines"],
        ),
        (
            "entity = \"x\"\ntable = \"unmatched\"",
            vec!["`unmatched` is taken"],
        ),
        (
            "entity = \"x\"\ntable = \"quarantine\"",
            vec!["`quarantine` is taken"],
        ),
        (
            "entity = \"unmatched\"\ntable = \"xs\"",
            vec!["already described by the built-in"],
        ),
        (
            "entity = \"x\"\ntable = \"xs\"\nmatch = 1",
            vec!["a whole number, not a table"],
        ),
    ] {
        assert_says(&errors_of(text), &parts);
    }
    for (matching, parts) in [
        (
            "attributes = { PK = \"x\" }",
            vec!["`PK` is a key attribute", "partition_key"],
        ),
        (
            "attributes = { SK = \"x\" }",
            vec!["`SK` is a key attribute", "sort_key"],
        ),
        (
            "attributes = { t = [] }",
            vec!["compared with an array", "non-empty"],
        ),
        ("attributes = { t = {} }", vec!["says nothing", "exists"]),
        (
            "attributes = { t = { begins = \"x\" } }",
            vec!["no key `begins`", "prefix"],
        ),
        (
            "attributes = { t = { prefix = \"\" } }",
            vec!["`prefix` of `t` is empty"],
        ),
        (
            "attributes = { t = { exists = false, prefix = \"a\" } }",
            vec!["cannot be absent"],
        ),
        ("partition_key = [\"A\", \"A\"]", vec!["given twice"]),
        (
            "partition_key = \"A#{id:num}\"",
            vec!["`num` is not a kind"],
        ),
    ] {
        assert_says(&errors_of(&entity("x", matching, "")), &parts);
    }
    for (columns, parts) in [
        (
            "",
            vec![
                ":3",
                "capture `id` has no column",
                "add `id = \"string\"`",
                "`{_}`",
            ],
        ),
        (
            "id = { type = \"string\", attribute = \"Id\" }",
            vec!["`id` reads an attribute"],
        ),
        ("id = \"json\"", vec!["captured from a key", "use string"]),
        (
            "id = { type = \"string\", transform = \"mask\" }",
            vec!["key stays clear"],
        ),
        (
            "id = { type = \"string\", lossless = false }",
            vec!["`lossless` says nothing"],
        ),
        ("id = 1", vec!["a whole number, not a type"]),
        (
            "orderId = \"string\"",
            vec![":6", "`orderId` is not a column name", "`order_id = …`"],
        ),
        (
            "order_id = \"string\"\norderId = \"string\"",
            vec![":7", "`order_id` and `orderId`"],
        ),
        (
            "\"名前\" = \"string\"",
            vec!["not a column name", "attribute = \"名前\""],
        ),
        ("_pk = \"string\"", vec!["begins with `_`", "`pk = "]),
        (
            "dt = \"date\"",
            vec!["partition column", "dt_value", "attribute = \"dt\""],
        ),
        ("x = {}", vec!["`x` has no type"]),
        (
            "x = { type = \"int\", formt = \"y\" }",
            vec!["no key `formt`", "`format`"],
        ),
        (
            "x = { type = \"int\", format = \"epoch_s\" }",
            vec!["int has no format"],
        ),
        (
            "x = { type = \"timestamp\", format = \"iso\" }",
            vec!["`iso` is not a format"],
        ),
        (
            "x = { type = \"date\", format = \"%Q\" }",
            vec!["no strftime specifier", "%%"],
        ),
        (
            "x = { type = \"string\", transform = \"hash\" }",
            vec!["`hash`", "hmac_sha256"],
        ),
        (
            "x = { type = \"int\", transform = \"mask\" }",
            vec!["transformed to text"],
        ),
        (
            "x = { type = \"string\", transform = \"mask\", attribute = \"SK\" }",
            vec!["transforms the key attribute `SK`"],
        ),
        (
            "sk = { type = \"string\", transform = \"mask\" }",
            vec!["key attribute `SK`"],
        ),
        (
            "x = { type = \"struct<a:int>\", fields = { b = \"B\" } }",
            vec!["no member `b`", "`a`"],
        ),
        (
            "x = { type = \"int\", fields = { b = \"B\" } }",
            vec!["there is no struct"],
        ),
        (
            "x = { type = \"struct<a:int>\", formats = { a = 1 } }",
            vec!["holds a whole number"],
        ),
        (
            "x = { type = \"struct<a:int,b:int>\", fields = { a = \"C\", b = \"C\" } }",
            vec!["both take the attribute `C`"],
        ),
        (
            "a = { type = \"int\", attribute = \"n\" }\nb = { type = \"int\", attribute = \"n\" }",
            vec![":7", "`a` and `b` both take the attribute `n`"],
        ),
        (
            "a = { type = \"int\", attribute = \"n\" }\nn = \"int\"",
            vec!["both take", "`n`"],
        ),
        ("a = \"struct<>\"", vec!["a struct without members", "json"]),
    ] {
        let said = errors_of(&entity("x", good, columns));
        assert_says(&said, &parts);
    }
}

#[test]
fn names_that_surprise_later_are_warnings() {
    let columns = "id = \"string\"\norder = \"string\"\n1st = \"int\"\n\
                   a = { type = \"string\", attribute = \"unitPrice\" }\nunit_price = \"string\"";
    let folder = folder(&[(
        "x.toml",
        &entity("group", "partition_key = \"A#{id}\"", columns),
    )]);
    let said = warnings(folder.path());
    assert_says(&said, &["x.toml:7", "`order` is a reserved word"]);
    assert_says(&said, &["x.toml:8", "begins with a digit"]);
    assert_says(
        &said,
        &[
            "x.toml:10",
            "`unitPrice` goes to column `a`",
            "`unit_price`",
        ],
    );
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(
        check(folder.path()).catalog.is_some(),
        "warnings do not stop it"
    );
}

#[test]
fn names_of_tables_and_of_what_belongs_to_them_do_not_meet() {
    let one = entity("a", "partition_key = \"A\"", "");
    let two = entity("b", "partition_key = \"B\"", "").replace("bs", "as_history");
    let three = entity("a", "partition_key = \"C\"", "").replace("\"as\"", "\"cs\"");
    let folder = folder(&[("a.toml", &one), ("b.toml", &two), ("c.toml", &three)]);
    let said = errors(folder.path());
    assert_says(
        &said,
        &[
            "b.toml:2",
            "`as_history` is taken by table `as` of entity `a`",
        ],
    );
    assert_says(
        &said,
        &["c.toml:1", "entity `a` is already described by", "a.toml"],
    );
}

#[test]
fn entities_that_cannot_be_told_apart_are_an_error_with_example_keys() {
    let columns = "x = \"string\"";
    for (one, other, parts) in [
        (
            "partition_key = \"A#{x}\"",
            "sort_key = \"B#{x}\"",
            vec![
                "`a` and `b` could both take",
                "PK = `A#0`, SK = `B#0`",
                "priority",
            ],
        ),
        (
            "partition_key = \"A#{x}\"\nattributes = { t = \"1\" }",
            "partition_key = \"A#{x}\"\nattributes = { u = \"1\" }",
            vec!["could both take"],
        ),
        (
            "partition_key = \"A#{x}\"",
            "partition_key = \"A#{x}\"",
            vec!["could both take"],
        ),
        (
            "partition_key = \"A#{x}\"\nsort_key = \"B\"\npriority = 1",
            "partition_key = \"A#{x}\"\nsort_key = \"B\"\nattributes = { t = \"1\" }",
            vec!["`b` never gets an item: `a` comes first"],
        ),
    ] {
        let folder = folder(&[
            ("a.toml", &entity("a", one, columns)),
            ("b.toml", &entity("b", other, columns)),
        ]);
        assert_says(&errors(folder.path()), &parts);
    }
}

#[test]
fn the_more_specific_entity_comes_first_whatever_its_file_is_called() {
    let columns = "x = \"string\"";
    for (later, first) in [
        (
            "partition_key = \"A#{x}\"",
            "partition_key = \"A#{x}\"\nsort_key = \"META\"",
        ),
        ("partition_key = \"{x*}\"", "partition_key = \"A#{x}\""),
        (
            "partition_key = \"A#{x*}\"",
            "partition_key = \"A#{x}#{_}\"",
        ),
        ("partition_key = \"{x}\"", "partition_key = \"cus{x}\""),
        (
            "partition_key = \"#{x}#\"",
            "partition_key = \"#META#\"\nsort_key = \"{x}\"",
        ),
        (
            "partition_key = \"A#{x}\"",
            "partition_key = \"A#{x}\"\nattributes = { t = \"1\" }",
        ),
        (
            "partition_key = \"{x}\"\nsort_key = \"{_}\"",
            "partition_key = \"{x}\"\nsort_key = \"{x}\"",
        ),
        (
            "partition_key = \"A#{x}\"\nattributes = { t = { exists = true } }",
            "partition_key = \"A#{x}\"\nattributes = { t = \"1\" }",
        ),
        (
            "partition_key = \"A#{x}\"\nattributes = { t = \"1\" }",
            "partition_key = \"A#{x}\"\nattributes = { u = \"1\" }\npriority = 1",
        ),
    ] {
        let folder = folder(&[
            ("a.toml", &entity("later", later, columns)),
            ("b.toml", &entity("first", first, columns)),
        ]);
        let names: Vec<String> = catalog(folder.path())
            .entities
            .into_iter()
            .map(|entity| entity.name)
            .collect();
        assert_eq!(names, ["first", "later", "unmatched"], "{later} / {first}");
    }
}

#[test]
fn types_told_apart_by_an_attribute_need_no_priority() {
    let folder = folder(&[
        ("a.toml", &entity("a", "attributes = { type = \"a\" }", "")),
        (
            "b.toml",
            &entity("b", "attributes = { type = [\"b\", \"c\"] }", ""),
        ),
        (
            "c.toml",
            &entity("c", "attributes = { type = { exists = false } }", ""),
        ),
    ]);
    let catalog = catalog(folder.path());
    let mut captures = Vec::new();
    let mut route = |ty: Option<&'static str>| {
        let index = catalog.route(
            "x",
            Some("y"),
            &mut |name| ty.filter(|_| name == "type").map(AttributeView::S),
            &mut captures,
        );
        catalog.entities[index].name.clone()
    };
    assert_eq!(route(Some("a")), "a");
    assert_eq!(route(Some("c")), "b");
    assert_eq!(route(None), "c");
    assert_eq!(route(Some("z")), "unmatched");
    assert_eq!(catalog.possible_by_keys("x", Some("y")), [0, 1, 2, 3]);
}

#[test]
fn columns_and_members_stand_for_attributes_in_the_case_of_the_table() {
    let lake = |case: &str| {
        format!(
            "database = \"shop\"\n[source]\npartition_key = \"PK\"\nattribute_case = \"{case}\"\n"
        )
    };
    let order = "entity = \"order\"\ntable = \"orders\"\nversion = 1\n[match]\npartition_key = \"O#{order_id}\"\n\
        [columns]\norder_id = \"string\"\nplaced_by = \"string\"\n\
        lines = { type = \"array<struct<unit_price:int,sku_code:string>>\", fields = { sku_code = \"SKU\" } }\n\
        at = { type = \"string\", attribute = \"created_at\" }\n";
    let names = |case: &str| {
        let folder = folder(&[("lake.toml", lake(case).as_str()), ("order.toml", order)]);
        let order = &catalog(folder.path()).entities[0];
        let attribute = |column: &Column| match &column.source {
            ColumnSource::Attribute(name) => name.as_str().to_owned(),
            ColumnSource::Capture(_) => "(capture)".to_owned(),
        };
        let mut names: Vec<_> = order.columns.iter().map(attribute).collect();
        if let ColumnType::Array(child) = &order.columns[2].ty
            && let ColumnType::Struct(members) = &child.ty
        {
            names.extend(
                members
                    .iter()
                    .map(|member| member.attribute.as_str().to_owned()),
            );
        }
        names.join(" ")
    };
    assert_eq!(
        names("snake"),
        "(capture) placed_by lines created_at unit_price SKU"
    );
    assert_eq!(
        names("camel"),
        "(capture) placedBy lines created_at unitPrice SKU"
    );
    assert_eq!(
        names("pascal"),
        "(capture) PlacedBy Lines created_at UnitPrice SKU"
    );
    let folder = folder(&[("lake.toml", lake("kebab").as_str()), ("order.toml", order)]);
    assert_says(&errors(folder.path()), &["`kebab`", "camel"]);
}
