//! The CloudFormation template of a deployment: what was written by hand, and what the schemas say.
//!
//! `infra/base.yaml` ends in its section `Resources`, and JSON is YAML: the Glue tables are appended
//! as one line each, and a section `Mappings` after them. Nothing here knows YAML.

use std::fmt::Write;

use dynalake_schemas::cloudformation::{mappings, table_resources};
use dynalake_schemas::{Catalog, QUARANTINE};
use serde_json::Value;

use crate::exit::{Failure, Outcome};

/// Everything that does not depend on the schemas.
const BASE: &str = include_str!("../../infra/base.yaml");
/// The workflow of exports, in Amazon States Language.
const WORKFLOW: &str = include_str!("../../infra/export.asl.json");

/// Where the base takes the workflow.
const WORKFLOW_PLACE: &str = "\"@WORKFLOW@\"";
/// Where the dashboard's query takes what to count per table.
const ROWS_PLACE: &str = "@ROWS_PER_TABLE@";

/// Bytes of a template that lies in S3 ("CloudFormation quotas": 1 MB).
const MAX_BYTES: usize = 1_000_000;
/// Resources of a template (same page).
const MAX_RESOURCES: usize = 500;
/// Tables in the dashboard's query; more would be no picture.
const MAX_CHARTED: usize = 40;

/// The template of a catalog's deployment.
///
/// # Errors
/// It would be larger than CloudFormation takes.
pub(crate) fn render(catalog: &Catalog) -> Outcome<String> {
    let workflow: Value = serde_json::from_str(WORKFLOW)
        .map_err(|error| Failure::findings(format!("infra/export.asl.json: {error}")))?;
    // A JSON string is a YAML string in double quotes.
    let workflow = Value::from(workflow.to_string()).to_string();
    let mut text = BASE
        .replace(WORKFLOW_PLACE, &workflow)
        .replace(ROWS_PLACE, &rows_per_table(catalog));
    let tables = table_resources(catalog);
    let resources = base_resources() + tables.len();
    // Writing to a String cannot fail.
    for table in tables {
        _ = writeln!(text, "  {}: {}", table.id, table.body);
    }
    _ = writeln!(text, "\nMappings:\n  Schemas: {}", mappings(catalog));
    check_size(&text, resources, catalog)?;
    Ok(text)
}

/// `sum(tables.orders.rows) as orders, …`: members of the stream function's log line.
fn rows_per_table(catalog: &Catalog) -> String {
    let mut tables: Vec<&str> = catalog
        .entities
        .iter()
        .map(|entity| entity.table.as_str())
        .collect();
    tables.sort_unstable();
    tables.truncate(MAX_CHARTED);
    let sums: Vec<String> = tables
        .iter()
        .map(|table| format!("sum(tables.{table}.rows) as {table}"))
        .collect();
    sums.join(", ")
}

/// Resources of the base: the names two spaces deep in its last section.
fn base_resources() -> usize {
    let resources = BASE.rsplit_once("\nResources:\n").map(|(_, rest)| rest);
    resources
        .unwrap_or_default()
        .lines()
        .filter(|line| {
            line.strip_prefix("  ")
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphabetic()))
        })
        .count()
}

fn check_size(text: &str, resources: usize, catalog: &Catalog) -> Outcome<()> {
    let remedy = "divide the table's entities among several schema folders, and deploy a stack for each \
                  of them";
    if resources > MAX_RESOURCES {
        return Err(Failure::findings(format!(
            "the template would have {resources} resources, and CloudFormation takes {MAX_RESOURCES}: \
             each of the {} entities has two tables, besides `{QUARANTINE}`",
            catalog.entities.len()
        ))
        .hint(remedy));
    }
    if text.len() > MAX_BYTES {
        return Err(Failure::findings(format!(
            "the template would have {} bytes, and CloudFormation takes {MAX_BYTES}: most of them are \
             columns of the {} entities",
            text.len(),
            catalog.entities.len()
        ))
        .hint(remedy));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn ecommerce() -> Catalog {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas/ecommerce");
        Catalog::load(&folder).unwrap()
    }

    #[test]
    fn what_the_base_leaves_open_is_filled_in() {
        assert_eq!(BASE.matches(WORKFLOW_PLACE).count(), 1);
        assert_eq!(BASE.matches(ROWS_PLACE).count(), 1);
        let text = render(&ecommerce()).unwrap();
        assert!(!text.contains("@WORKFLOW@\"") && !text.contains(ROWS_PLACE));
        assert!(text.contains("sum(tables.orders.rows) as orders"));
        assert!(text.contains("\n  TableOrdersChanges: {"));
        assert!(
            text.contains("\nMappings:\n  Schemas: {\"Generated\":{\"Database\":\"ecommerce\"")
        );
        assert_eq!(text, render(&ecommerce()).unwrap());
    }

    #[test]
    fn the_base_counts_its_resources() {
        let types = BASE.matches("\n    Type: AWS::").count();
        assert!(types > 30);
        assert_eq!(base_resources(), types);
    }

    #[test]
    fn a_template_that_is_too_large_is_refused() {
        let mut catalog = ecommerce();
        let order = catalog.entities.first().unwrap().clone();
        let grown = |catalog: &mut Catalog, tables: usize| {
            for number in 0..tables {
                let mut entity = order.clone();
                entity.table = format!("{}_{number}_x", entity.table);
                catalog.entities.push(entity);
            }
        };
        grown(&mut catalog, 250);
        let failure = render(&catalog).unwrap_err();
        assert!(failure.message.contains("takes 500"), "{}", failure.message);
        let mut catalog = ecommerce();
        for entity in &mut catalog.entities {
            entity.description = Some("x".repeat(2_000));
        }
        let wide = catalog.entities.first_mut().unwrap();
        let column = wide.columns.first().unwrap().clone();
        for number in 0..20_000 {
            let mut column = column.clone();
            column.name = format!("a_long_name_of_a_column_{number}");
            wide.columns.push(column);
        }
        let failure = render(&catalog).unwrap_err();
        assert!(failure.message.contains("1000000"), "{}", failure.message);
    }
}
