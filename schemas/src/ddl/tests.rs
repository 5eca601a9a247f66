use arrow::datatypes::DataType;

use super::*;
use crate::fixture::{catalog, ecommerce};

fn example() -> Catalog {
    catalog(&ecommerce())
}

/// Athena's type for an Arrow type, written without looking at ours.
fn athena_of(ty: &DataType) -> String {
    match ty {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Utf8 => "string".to_owned(),
        DataType::Binary => "binary".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(_, _) => "timestamp".to_owned(),
        DataType::List(element) => format!("array<{}>", athena_of(element.data_type())),
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else {
                panic!()
            };
            let types: Vec<_> = fields
                .iter()
                .map(|field| athena_of(field.data_type()))
                .collect();
            format!("map<{}>", types.join(","))
        }
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|field| format!("{}:{}", field.name(), athena_of(field.data_type())))
                .collect();
            format!("struct<{}>", fields.join(","))
        }
        other => panic!("{other} is in no table"),
    }
}

#[test]
fn tables_have_the_columns_of_the_files_in_their_order() {
    let catalog = example();
    let tables = tables(&catalog, "s3://bucket/lake/");
    for entity in &catalog.entities {
        let expected: Vec<(String, String)> = entity
            .arrow_schema()
            .fields()
            .iter()
            .map(|field| (field.name().clone(), athena_of(field.data_type())))
            .collect();
        for name in [changes_table(&entity.table), snapshot_table(&entity.table)] {
            let table = tables.iter().find(|table| table.name == name).unwrap();
            let columns: Vec<_> = table
                .columns
                .iter()
                .map(|column| (column.name.clone(), column.glue_type.clone()))
                .collect();
            assert_eq!(columns, expected, "{name}");
            assert!(
                columns
                    .iter()
                    .all(|(column, _)| column != table.partition_column)
            );
        }
    }
    assert_eq!(tables.len(), catalog.entities.len() * 2 + 1);
}

#[test]
fn dropped_columns_are_in_no_table() {
    let text = create_tables(&example(), "s3://bucket/lake");
    assert!(!text.contains("password_hash") && text.contains("`email` string"));
}

#[test]
fn partitions_are_projected_where_the_writer_puts_them() {
    let tables = tables(&example(), "s3://bucket/lake/");
    let of = |name: &str| tables.iter().find(|table| table.name == name).unwrap();
    let property = |table: &TableDefinition, name: &str| {
        table
            .properties
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    };
    let changes = of("orders_changes");
    assert_eq!(changes.location, "s3://bucket/lake/changes/orders/");
    assert_eq!(
        property(changes, "projection.dt.type").as_deref(),
        Some("date")
    );
    assert_eq!(
        property(changes, "projection.dt.format").as_deref(),
        Some("yyyy-MM-dd")
    );
    assert_eq!(
        property(changes, "storage.location.template").as_deref(),
        Some("s3://bucket/lake/changes/orders/dt=${dt}/")
    );
    let snapshot = of("orders_snapshot");
    assert_eq!(
        property(snapshot, "projection.export.type").as_deref(),
        Some("injected")
    );
    assert_eq!(
        property(snapshot, "storage.location.template").as_deref(),
        Some("s3://bucket/lake/snapshot/orders/export=${export}/")
    );
    assert_eq!(of("quarantine").format, FileFormat::JsonLines);
    assert_eq!(of("quarantine").location, "s3://bucket/lake/quarantine/");
}

#[test]
fn a_statement_quotes_every_identifier_and_escapes_text() {
    let mut catalog = example();
    let order = catalog
        .entities
        .iter_mut()
        .find(|entity| entity.table == "orders")
        .unwrap();
    order.description = Some("the shop's \\ orders".to_owned());
    let table = tables(&catalog, "s3://bucket/lake")
        .into_iter()
        .find(|table| table.name == "orders_changes")
        .unwrap();
    let text = table.create_statement("ecommerce");
    assert!(
        text.starts_with("CREATE EXTERNAL TABLE IF NOT EXISTS `ecommerce`.`orders_changes` (\n")
    );
    assert!(
        text.contains("COMMENT 'the shop\\'s \\\\ orders: one row per change'"),
        "{text}"
    );
    assert!(text.contains(
        "  `lines` array<struct<`sku`:string,`name`:string,`qty`:int,`price`:decimal(12,2),\
         `options`:map<string,string>>>,\n"
    ));
    assert!(text.contains("PARTITIONED BY (`dt` string)\nROW FORMAT SERDE"));
    assert!(text.is_ascii(), "DDL comments are best kept to ASCII");
}
