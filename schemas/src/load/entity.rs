//! An entity file: its names, how its items are recognised, its columns.

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::TableLike;

use super::lake::{Lake, example_name};
use super::source::{Section, SourceFile};
use super::{columns, matcher};
use crate::model::{Entity, OnMismatch};
use crate::naming::is_table_name;
use crate::problem::{Place, Problems};

/// An entity and where its parts stand.
pub(crate) struct LoadedEntity {
    pub(crate) entity: Entity,
    pub(crate) places: Places,
    /// Columns (or struct members, by path) that are knowingly gone.
    pub(crate) removed: Vec<(String, Place)>,
    /// Columns whose transform is for this entity's items only, as somebody says.
    pub(crate) clear_elsewhere: BTreeSet<String>,
    /// `[match]` could be read whole.
    pub(crate) matcher_is_whole: bool,
}

/// Where the parts of an entity stand in its file.
pub(crate) struct Places {
    pub(crate) entity: Place,
    pub(crate) table: Place,
    pub(crate) version: Place,
    pub(crate) matching: Place,
    pub(crate) columns: BTreeMap<String, Place>,
}

impl Places {
    /// Where a column stands; the entity itself when it has none.
    pub(crate) fn column(&self, name: &str) -> &Place {
        self.columns.get(name).unwrap_or(&self.entity)
    }
}

pub(crate) fn read(
    file: &SourceFile,
    table: &dyn TableLike,
    lake: Option<&Lake>,
    problems: &mut Problems,
) -> LoadedEntity {
    let mut root = Section::new(file, table, "an entity file", file.whole());
    let (name, entity_place) = name(&mut root, "entity", problems);
    let (table, table_place) = name_of_table(&mut root, &name, problems);
    let (version, version_place) = version(&mut root, &entity_place, problems);
    let description = description(&mut root, problems);
    let keep_old_image = root
        .boolean("keep_old_image", problems)
        .is_some_and(|(value, _)| value);
    let on_mismatch = on_mismatch(&mut root, OnMismatch::Rest, problems);
    let removed = root
        .strings("removed", problems)
        .into_iter()
        .map(|(path, place)| (path.to_owned(), place))
        .collect();
    let errors = problems.error_count();
    let (matcher, matching) = matcher::read(&mut root, lake, &entity_place, problems);
    let matcher_is_whole = problems.error_count() == errors;
    let read = columns::read(&mut root, &matcher, lake, on_mismatch, &matching, problems);
    root.finish(problems);
    let entity = Entity {
        name,
        table,
        description,
        version,
        matcher,
        columns: read.columns,
        keep_old_image,
    };
    let places = Places {
        entity: entity_place,
        table: table_place,
        version: version_place,
        matching,
        columns: read.places,
    };
    LoadedEntity {
        entity,
        places,
        removed,
        clear_elsewhere: read.clear_elsewhere,
        matcher_is_whole,
    }
}

fn name(root: &mut Section<'_>, key: &'static str, problems: &mut Problems) -> (String, Place) {
    let Some(entry) = root.get(key) else {
        problems.error(
            root.place(),
            "the file names no entity",
            "add `entity = \"order\"`; every *.toml beside lake.toml describes one entity",
        );
        return (String::new(), root.place().clone());
    };
    match root.string(key, problems) {
        Some((name, place)) => {
            check_name(name, key, &place, problems);
            (name.to_owned(), place)
        }
        None => (String::new(), entry.place),
    }
}

fn name_of_table(root: &mut Section<'_>, entity: &str, problems: &mut Problems) -> (String, Place) {
    if root.get("table").is_none() {
        problems.error(
            root.place(),
            "the file names no lake table",
            format!(
                "add `table = \"{}\"`",
                if entity.is_empty() { "orders" } else { entity }
            ),
        );
    }
    match root.string("table", problems) {
        Some((name, place)) => {
            check_name(name, "table", &place, problems);
            (name.to_owned(), place)
        }
        None => (String::new(), root.place().clone()),
    }
}

fn check_name(name: &str, key: &str, place: &Place, problems: &mut Problems) {
    if !is_table_name(name) {
        problems.error(
            place,
            format!("`{name}` is not a name for `{key}`"),
            format!(
                "names begin with a-z and go on with a-z, 0-9 and _ (at most 200), for example `{}`",
                example_name(name, "orders")
            ),
        );
    }
}

fn version(root: &mut Section<'_>, otherwise: &Place, problems: &mut Problems) -> (i32, Place) {
    match root.integer("version", problems) {
        Some((version, place)) => {
            if version < 1 {
                problems.error(
                    &place,
                    format!("version {version} is below 1"),
                    "begin at `version = 1` and raise it by one with every change of columns",
                );
            }
            (version, place)
        }
        None => (1, otherwise.clone()),
    }
}

fn description(root: &mut Section<'_>, problems: &mut Problems) -> Option<String> {
    let (text, place) = root.string("description", problems)?;
    // Athena keeps a table's comment in a parameter; Glue's description holds 2,048 bytes.
    if text.len() > 2048 || text.contains(['\n', '\r']) {
        problems.error(
            &place,
            "the description is longer than 2,048 bytes or has several lines",
            "shorten it to one line; comments in the file may be as long as you like",
        );
        return None;
    }
    Some(text.to_owned())
}

/// `on_mismatch` of an entity or column.
pub(crate) fn on_mismatch(
    section: &mut Section<'_>,
    otherwise: OnMismatch,
    problems: &mut Problems,
) -> OnMismatch {
    match section.string("on_mismatch", problems) {
        None => otherwise,
        Some(("rest", _)) => OnMismatch::Rest,
        Some(("quarantine", _)) => OnMismatch::Quarantine,
        Some((other, place)) => {
            problems.error(
                &place,
                format!("`on_mismatch` cannot be `{other}`"),
                "write \"rest\" (NULL in the column, the attribute kept in _rest) or \
                 \"quarantine\" (the whole record)",
            );
            otherwise
        }
    }
}
