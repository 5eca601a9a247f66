//! Names of tables: each entity has several in the catalog, and no two may meet.

use std::collections::BTreeMap;

use crate::load::{LoadedEntity, QUARANTINE, UNMATCHED};
use crate::naming::is_reserved_in_select;
use crate::problem::Problems;

/// Name of the table over a table's changes.
pub fn changes_table(table: &str) -> String {
    format!("{table}_changes")
}

/// Name of the table over a table's snapshots.
pub fn snapshot_table(table: &str) -> String {
    format!("{table}_snapshot")
}

/// Name of the view of one row per change.
pub fn history_view(table: &str) -> String {
    format!("{table}_history")
}

/// Name of the view of the current state without nested columns.
pub fn flat_view(table: &str) -> String {
    format!("{table}_flat")
}

/// The view of the current state has the table's own name.
fn catalog_names(table: &str) -> [String; 5] {
    [
        table.to_owned(),
        changes_table(table),
        snapshot_table(table),
        history_view(table),
        flat_view(table),
    ]
}

/// Entities and tables are named once, and no derived name meets another.
pub(crate) fn check_names(loaded: &[LoadedEntity], problems: &mut Problems) {
    let mut entities: BTreeMap<&str, &str> = BTreeMap::from([(UNMATCHED, "the built-in entity")]);
    let mut names: BTreeMap<String, String> = BTreeMap::from([(
        QUARANTINE.to_owned(),
        "the table of quarantined records".to_owned(),
    )]);
    for name in catalog_names(UNMATCHED) {
        names.insert(name, "the built-in table `unmatched`".to_owned());
    }
    for LoadedEntity { entity, places, .. } in loaded {
        if !entity.name.is_empty() {
            let before = entities.insert(&entity.name, &places.entity.file);
            if let Some(other) = before {
                problems.error(
                    &places.entity,
                    format!("entity `{}` is already described by {other}", entity.name),
                    "give every entity its own name",
                );
            }
        }
        if entity.table.is_empty() {
            continue;
        }
        for name in catalog_names(&entity.table) {
            let ours = format!("table `{}` of entity `{}`", entity.table, entity.name);
            if let Some(theirs) = names.get(&name) {
                problems.error(
                    &places.table,
                    format!(
                        "table `{}`: the name `{name}` is taken by {theirs}",
                        entity.table
                    ),
                    "choose another table name; `x_changes`, `x_snapshot`, `x_history` and \
                     `x_flat` belong to table `x`",
                );
                break;
            }
            names.insert(name, ours);
        }
        if is_reserved_in_select(&entity.table) {
            problems.warning(
                &places.table,
                format!("`{}` is a reserved word of SQL", entity.table),
                format!(
                    "queries must write \"{}\" in double quotes; a plural avoids it",
                    entity.table
                ),
            );
        }
    }
}
