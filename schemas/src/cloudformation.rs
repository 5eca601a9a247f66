//! The catalog's tables as resources of a CloudFormation template.
//!
//! Columns, properties and locations are those of [`crate::ddl`]; only the form is another one
//! (`AWS::Glue::Table` of the CloudFormation template reference). The template that takes them has a
//! bucket [`LAKE_BUCKET`] and a Glue database [`DATABASE`].

use serde_json::{Map, Value, json};

use crate::ddl::{self, TableDefinition};
use crate::model::{Catalog, Transform};

/// Logical id of the lake's bucket.
pub const LAKE_BUCKET: &str = "LakeBucket";
/// Logical id of the Glue database.
pub const DATABASE: &str = "Database";

/// Longest description of a table that Glue takes.
const MAX_DESCRIPTION: usize = 2048;

/// A resource of a template.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Logical id, `[A-Za-z0-9]+`.
    pub id: String,
    /// Type and properties.
    pub body: Value,
}

/// The tables over changes, snapshots and the quarantine, in order of name.
///
/// The logical id of a table depends on its name alone, so that adding a table never replaces
/// another one.
pub fn table_resources(catalog: &Catalog) -> Vec<Resource> {
    let location = format!("s3://${{{LAKE_BUCKET}}}");
    ddl::tables(catalog, &location)
        .iter()
        .map(|table| Resource {
            id: logical_id(&table.name),
            body: body(table, &location),
        })
        .collect()
}

/// What a template asks about the schemas, for its section `Mappings`.
pub fn mappings(catalog: &Catalog) -> Value {
    let uses_hmac = catalog
        .entities
        .iter()
        .flat_map(|entity| &entity.columns)
        .any(|column| column.transform == Some(Transform::HmacSha256));
    json!({
        "Generated": {
            "Database": catalog.database,
            "UsesHmac": if uses_hmac { "true" } else { "false" },
        },
    })
}

fn body(table: &TableDefinition, location: &str) -> Value {
    let columns: Vec<Value> = table
        .columns
        .iter()
        .map(|column| {
            let mut member = Map::new();
            member.insert("Name".to_owned(), column.name.as_str().into());
            member.insert("Type".to_owned(), column.glue_type.as_str().into());
            if let Some(comment) = column.comment {
                member.insert("Comment".to_owned(), comment.into());
            }
            Value::Object(member)
        })
        .collect();
    let parameters: Map<String, Value> = table
        .properties
        .iter()
        .map(|(name, value)| (name.clone(), substituted(value, location)))
        .collect();
    let description: String = table.comment.chars().take(MAX_DESCRIPTION).collect();
    json!({
        "Type": "AWS::Glue::Table",
        "Properties": {
            "CatalogId": {"Ref": "AWS::AccountId"},
            "DatabaseName": {"Ref": DATABASE},
            "TableInput": {
                "Name": table.name,
                "Description": description,
                "TableType": "EXTERNAL_TABLE",
                "Parameters": parameters,
                "PartitionKeys": [{"Name": table.partition_column, "Type": "string"}],
                "StorageDescriptor": {
                    "Columns": columns,
                    "Location": substituted(&table.location, location),
                    "InputFormat": table.format.input_format(),
                    "OutputFormat": table.format.output_format(),
                    "SerdeInfo": {
                        "SerializationLibrary": table.format.serde(),
                        "Parameters": {"serialization.format": "1"},
                    },
                },
            },
        },
    })
}

/// A text that begins with the lake's location, which CloudFormation fills in; any other stands as it
/// is. What else looks like a variable of `Fn::Sub` (`${dt}` of a partition's location) is not one.
fn substituted(text: &str, location: &str) -> Value {
    match text.strip_prefix(location) {
        Some(rest) => json!({"Fn::Sub": format!("{location}{}", rest.replace("${", "${!"))}),
        None => text.into(),
    }
}

/// `order_items_changes` → `TableOrderItemsChanges`. Different names give different ids: a capital
/// stands for `_` and the letter after it, and where no such letter follows, or the letter is the `x`
/// whose capital marks it, `X` and two hexadecimal digits do.
fn logical_id(name: &str) -> String {
    let mut id = "Table".to_owned();
    let mut after_underscore = true;
    for character in name.chars() {
        match (after_underscore, character) {
            (true, 'x') => id.push_str("X78"),
            (true, 'a'..='z') => id.push(character.to_ascii_uppercase()),
            (true, _) => {
                id.push_str("X5f");
                if character != '_' {
                    id.push(character);
                }
            }
            (false, '_') => {}
            (false, _) => id.push(character),
        }
        after_underscore = character == '_';
    }
    if after_underscore {
        id.push_str("X5f");
    }
    id
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::fixture::{catalog, ecommerce};

    #[test]
    fn each_table_is_a_resource_with_the_columns_of_its_definition() {
        let catalog = catalog(&ecommerce());
        let tables = ddl::tables(&catalog, "s3://${LakeBucket}");
        let resources = table_resources(&catalog);
        assert_eq!(tables.len(), resources.len());
        for (table, resource) in tables.iter().zip(&resources) {
            let input = &resource.body["Properties"]["TableInput"];
            assert_eq!(input["Name"], table.name.as_str());
            let columns: Vec<(&str, &str)> = input["StorageDescriptor"]["Columns"]
                .as_array()
                .unwrap()
                .iter()
                .map(|column| {
                    (
                        column["Name"].as_str().unwrap(),
                        column["Type"].as_str().unwrap(),
                    )
                })
                .collect();
            let expected: Vec<(&str, &str)> = table
                .columns
                .iter()
                .map(|column| (column.name.as_str(), column.glue_type.as_str()))
                .collect();
            assert_eq!(columns, expected, "{}", table.name);
        }
    }

    #[test]
    fn locations_are_filled_in_and_partitions_are_not() {
        let resources = table_resources(&catalog(&ecommerce()));
        let find = |id: &str| &resources.iter().find(|one| one.id == id).unwrap().body;
        let input = &find("TableOrdersSnapshot")["Properties"]["TableInput"];
        assert_eq!(
            input["StorageDescriptor"]["Location"]["Fn::Sub"],
            "s3://${LakeBucket}/snapshot/orders/"
        );
        assert_eq!(
            input["Parameters"]["storage.location.template"]["Fn::Sub"],
            "s3://${LakeBucket}/snapshot/orders/export=${!export}/"
        );
        assert_eq!(input["Parameters"]["projection.export.type"], "injected");
        let input = &find("TableQuarantine")["Properties"]["TableInput"];
        assert_eq!(
            input["Parameters"]["storage.location.template"]["Fn::Sub"],
            "s3://${LakeBucket}/quarantine/dt=${!dt}/"
        );
        assert_eq!(input["Parameters"]["projection.dt.range"], "2020-01-01,NOW");
    }

    #[test]
    fn a_template_is_told_whether_there_are_digests() {
        let generated = |catalog: &Catalog| mappings(catalog)["Generated"].clone();
        let mut catalog = catalog(&ecommerce());
        assert_eq!(
            generated(&catalog),
            json!({"Database": "ecommerce", "UsesHmac": "true"})
        );
        for column in catalog.entities.iter_mut().flat_map(|one| &mut one.columns) {
            column.transform = column.transform.and(Some(Transform::Mask));
        }
        assert_eq!(generated(&catalog)["UsesHmac"], "false");
    }

    #[test]
    fn ids_are_readable_and_told_apart() {
        assert_eq!(logical_id("order_items_changes"), "TableOrderItemsChanges");
        let names = [
            "a_1", "a1", "a__1", "a_", "a", "_a", "1a", "_1a", "x", "_x", "a_x", "ax", "a_x5f1",
            "a_x5f", "__a", "a_b", "ab", "_", "__",
        ];
        let mut ids = BTreeMap::new();
        for name in names {
            let other = ids.insert(logical_id(name), name);
            assert_eq!(other, None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_two_names_share_an_id(a in "[a-cx5f1_]{1,6}", b in "[a-cx5f1_]{1,6}") {
            let (first, second) = (logical_id(&a), logical_id(&b));
            prop_assert!(first.chars().all(|character| character.is_ascii_alphanumeric()));
            prop_assert_eq!(a == b, first == second);
        }
    }
}
