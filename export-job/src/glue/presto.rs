//! A view as Athena stores it in Glue.
//!
//! Athena keeps views as Trino's Hive connector does (`HiveViewCodec`, `ViewReaderUtil` in its sources):
//! a table of type `VIRTUAL_VIEW` whose original text is a comment around base64 of a JSON object with the
//! query and its columns in Trino's types. AWS documents none of it; templates of CloudFormation and
//! Terraform have relied on it for years.

use aws_sdk_glue::types::{
    Column, SerDeInfo, StorageDescriptor, Table, TableInput, builders::TableInputBuilder,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dynalake_schemas::views::View;
use serde_json::{Value, json};

/// What tells our views from others: `dynalake = view`.
const MARK: (&str, &str) = ("dynalake", "view");
const TYPE: &str = "VIRTUAL_VIEW";
const EXPANDED: &str = "/* Presto View */";
/// Longest comment of a table that Glue takes, in bytes.
const MAX_DESCRIPTION: usize = 2048;

/// A view as it shall be in Glue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) name: String,
    about: String,
    text: String,
    columns: Vec<(String, String)>,
}

impl Definition {
    pub(super) fn new(database: &str, view: &View) -> Self {
        Self {
            name: view.name.clone(),
            about: view.about.chars().take(MAX_DESCRIPTION / 4).collect(),
            text: original_text(database, view),
            columns: view
                .columns
                .iter()
                .map(|column| (column.name.clone(), column.glue_type.clone()))
                .collect(),
        }
    }

    /// Whether a table of Glue is this very view.
    pub(super) fn is(&self, table: &Table) -> bool {
        let columns = table.storage_descriptor().map(StorageDescriptor::columns);
        let columns = columns.unwrap_or_default().iter();
        let columns = columns.map(|column| (column.name(), column.r#type().unwrap_or_default()));
        is_ours(table)
            && table.table_type() == Some(TYPE)
            && table.view_original_text() == Some(&self.text)
            && table.view_expanded_text() == Some(EXPANDED)
            && table.description().unwrap_or_default() == self.about
            && columns.eq(self
                .columns
                .iter()
                .map(|(name, glue_type)| (name.as_str(), glue_type.as_str())))
    }

    pub(super) fn input(&self) -> TableInputBuilder {
        let columns = self.columns.iter().filter_map(|(name, glue_type)| {
            let column = Column::builder().name(name).r#type(glue_type).build();
            column.ok()
        });
        let mark = (MARK.0.to_owned(), MARK.1.to_owned());
        let parameters = [("presto_view", "true"), ("comment", "Presto View")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        TableInput::builder()
            .name(&self.name)
            .description(&self.about)
            .table_type(TYPE)
            .set_parameters(Some(parameters.into_iter().chain([mark]).collect()))
            // Readers expect the list to be there.
            .set_partition_keys(Some(Vec::new()))
            .storage_descriptor(
                StorageDescriptor::builder()
                    .set_columns(Some(columns.collect()))
                    .location("")
                    .serde_info(SerDeInfo::builder().build())
                    .build(),
            )
            .view_original_text(&self.text)
            .view_expanded_text(EXPANDED)
    }
}

/// Whether a table of Glue is a view of ours.
pub(super) fn is_ours(table: &Table) -> bool {
    let mark = table.parameters().and_then(|all| all.get(MARK.0));
    mark.is_some_and(|value| value == MARK.1)
}

fn original_text(database: &str, view: &View) -> String {
    let columns = view
        .columns
        .iter()
        .map(|column| json!({"name": column.name, "type": trino_type(&column.glue_type)}));
    let definition = json!({
        "originalSql": view.query,
        "catalog": "awsdatacatalog",
        "schema": database,
        "columns": columns.collect::<Vec<Value>>(),
    });
    format!(
        "/* Presto View: {} */",
        STANDARD.encode(definition.to_string())
    )
}

/// Trino's type for a Glue type string.
pub(super) fn trino_type(glue: &str) -> String {
    let mut text = String::new();
    let mut rest = glue;
    write_type(&mut rest, &mut text);
    text
}

/// Takes one type off the front of a Glue type string.
fn write_type(rest: &mut &str, text: &mut String) {
    let end = rest.find(['<', '>', ',', '(']).unwrap_or(rest.len());
    let name = take(rest, end);
    match name {
        "array" => {
            text.push_str("array(");
            skip(rest);
            write_type(rest, text);
            skip(rest);
            text.push(')');
        }
        "map" => {
            text.push_str("map(");
            skip(rest);
            write_type(rest, text);
            skip(rest);
            text.push_str(", ");
            write_type(rest, text);
            skip(rest);
            text.push(')');
        }
        "struct" => {
            text.push_str("row(");
            skip(rest);
            write_members(rest, text);
            text.push(')');
        }
        "decimal" => {
            let end = rest.find(')').map_or(rest.len(), |at| at + 1);
            text.push_str("decimal");
            text.push_str(take(rest, end));
        }
        "int" => text.push_str("integer"),
        "string" => text.push_str("varchar"),
        "binary" => text.push_str("varbinary"),
        "timestamp" => text.push_str("timestamp(3)"),
        other => text.push_str(other),
    }
}

fn write_members(rest: &mut &str, text: &mut String) {
    loop {
        let end = rest.find(':').unwrap_or(rest.len());
        // Names may be words of SQL, so they are quoted; ours hold no quotes.
        text.push('"');
        text.push_str(take(rest, end));
        text.push_str("\" ");
        skip(rest);
        write_type(rest, text);
        let next = rest.chars().next();
        skip(rest);
        if next != Some(',') {
            return;
        }
        text.push_str(", ");
    }
}

fn take<'a>(rest: &mut &'a str, end: usize) -> &'a str {
    let (head, tail) = rest.split_at_checked(end).unwrap_or((*rest, ""));
    *rest = tail;
    head
}

/// One character, if there is one.
fn skip(rest: &mut &str) {
    let mut chars = rest.chars();
    chars.next();
    *rest = chars.as_str();
}

#[cfg(test)]
mod tests {
    use dynalake_schemas::views::ViewColumn;

    use super::*;

    #[test]
    fn types_become_those_of_trino() {
        for (glue, trino) in [
            ("boolean", "boolean"),
            ("int", "integer"),
            ("bigint", "bigint"),
            ("double", "double"),
            ("string", "varchar"),
            ("binary", "varbinary"),
            ("date", "date"),
            ("timestamp", "timestamp(3)"),
            ("decimal(12,2)", "decimal(12,2)"),
            ("array<string>", "array(varchar)"),
            ("map<string,decimal(38,0)>", "map(varchar, decimal(38,0))"),
            (
                "array<struct<sku:string,qty:int,price:decimal(12,2),tags:array<string>>>",
                "array(row(\"sku\" varchar, \"qty\" integer, \"price\" decimal(12,2), \"tags\" array(varchar)))",
            ),
            (
                "struct<a:struct<b:map<string,struct<c:date>>>,d:binary>",
                "row(\"a\" row(\"b\" map(varchar, row(\"c\" date))), \"d\" varbinary)",
            ),
        ] {
            assert_eq!(trino_type(glue), trino, "{glue}");
        }
    }

    fn view() -> View {
        View {
            name: "orders".to_owned(),
            about: "orders: now".to_owned(),
            columns: vec![ViewColumn {
                name: "total".to_owned(),
                glue_type: "decimal(12,2)".to_owned(),
            }],
            query: "SELECT 1".to_owned(),
        }
    }

    fn stored(input: &TableInput) -> Table {
        Table::builder()
            .name(input.name())
            .set_description(input.description.clone())
            .set_table_type(input.table_type.clone())
            .set_parameters(input.parameters.clone())
            .set_storage_descriptor(input.storage_descriptor.clone())
            .set_view_original_text(input.view_original_text.clone())
            .set_view_expanded_text(input.view_expanded_text.clone())
            .build()
            .unwrap()
    }

    #[test]
    fn a_view_is_what_trino_reads_and_known_again() {
        let definition = Definition::new("shop", &view());
        let input = definition.input().build().unwrap();
        let text = input.view_original_text().unwrap();
        let encoded = text
            .strip_prefix("/* Presto View: ")
            .and_then(|text| text.strip_suffix(" */"));
        let decoded = STANDARD.decode(encoded.unwrap()).unwrap();
        let decoded: Value = serde_json::from_slice(&decoded).unwrap();
        assert_eq!(
            decoded,
            json!({
                "originalSql": "SELECT 1",
                "catalog": "awsdatacatalog",
                "schema": "shop",
                "columns": [{"name": "total", "type": "decimal(12,2)"}],
            })
        );
        let mut table = stored(&input);
        assert!(is_ours(&table) && definition.is(&table));
        let mut other = view();
        other.query.push(' ');
        assert!(!Definition::new("shop", &other).is(&table));
        other = view();
        other.columns[0].glue_type = "double".to_owned();
        assert!(!Definition::new("shop", &other).is(&table));
        table.parameters.as_mut().unwrap().remove("dynalake");
        assert!(!is_ours(&table) && !definition.is(&table));
    }
}
