//! What was dropped stays dropped, unless somebody says that it is meant otherwise.

use crate::load::LoadedEntity;
use crate::lock::{Lock, LockedDrop, LockedTable, dropped};
use crate::problem::{Problems, list_names};

/// Refuses that the attribute of a dropped column gets into the lake unnoticed.
pub(super) fn check(
    loaded: &LoadedEntity,
    locked: &LockedTable,
    changes: &mut Vec<String>,
    problems: &mut Problems,
) {
    let LoadedEntity {
        entity,
        places,
        removed,
        ..
    } = loaded;
    let now = dropped(entity);
    for before in locked.dropped.iter().filter(|column| !column.removed) {
        if now.contains(before) {
            if let Some((path, place)) = removed.iter().find(|(name, _)| *name == before.path) {
                problems.warning(
                    place,
                    format!(
                        "`{path}` is in `removed`, but it is dropped as before: with this entry it could \
                         be stored one day without a word"
                    ),
                    format!("take `{path}` out of `removed`"),
                );
            }
            continue;
        }
        let path = before.path.as_str();
        if removed.iter().any(|(name, _)| name == path) {
            changes.push(format!("`{path}` is not dropped any more"));
            continue;
        }
        let attribute = before.reads.as_deref().unwrap_or(path);
        let what = if now.iter().any(|column| column.path == path) {
            format!(
                "`{path}` drops another attribute than before: `{attribute}` would go to `_rest` \
                 in the clear"
            )
        } else if entity.columns.iter().any(|column| column.name == path) {
            format!(
                "`{path}` was dropped and would be stored: attribute `{attribute}` is kept out of the \
                 lake so far"
            )
        } else {
            format!(
                "`{path}` was dropped and is gone: attribute `{attribute}` would go to `_rest` in \
                 the clear"
            )
        };
        problems.error(places.column(path), what, remedy(before));
    }
    for column in &now {
        let is_listed = |listed: &LockedDrop| listed.path == column.path && !listed.removed;
        if !locked.dropped.iter().any(is_listed) {
            problems.warning(
                places.column(&column.path),
                format!(
                    "lake.lock does not know that `{}` is dropped, so nobody would notice if it were \
                     stored one day",
                    column.path
                ),
                "run `dynalake schemas lock` and commit the file",
            );
        }
    }
}

/// The same for an entity that writes to a new table: what its table of before left out. Gives the
/// names that `removed` may hold because of it.
pub(super) fn check_new_table(
    loaded: &LoadedEntity,
    all: &[LoadedEntity],
    lock: &Lock,
    problems: &mut Problems,
) -> Vec<String> {
    let LoadedEntity {
        entity,
        places,
        removed,
        ..
    } = loaded;
    let now = dropped(entity);
    let is_left = |name: &str, table: &LockedTable| {
        !table.retired
            && table.entity == entity.name
            && !all.iter().any(|loaded| loaded.entity.table == name)
    };
    let mut known = Vec::new();
    for (name, table) in lock
        .tables
        .iter()
        .filter(|(name, table)| is_left(name, table))
    {
        for before in table.dropped.iter().filter(|column| !column.removed) {
            let path = &before.path;
            known.push(path.clone());
            if now.contains(before) || removed.iter().any(|(name, _)| name == path) {
                continue;
            }
            let attribute = before.reads.as_deref().unwrap_or(path);
            problems.error(
                places.column(path),
                format!(
                    "`{path}` was dropped in `{name}`, the table of `{}` before: attribute \
                     `{attribute}` would come into `{}` in the clear",
                    entity.name, entity.table
                ),
                remedy(before),
            );
        }
    }
    known
}

/// Says of a table without an entity which attributes its entity hid.
pub(super) fn in_the_clear(table: &LockedTable) -> String {
    let dropped = table.dropped.iter().filter(|column| !column.removed);
    let dropped = dropped.map(|column| column.reads.as_deref().unwrap_or(&column.path));
    let hidden = table
        .columns
        .iter()
        .filter(|column| !column.removed && column.node.transform.is_some())
        .map(|column| column.node.reads.as_deref().unwrap_or(&column.node.path));
    let names: Vec<&str> = dropped.chain(hidden).collect();
    match names.len() {
        0 => String::new(),
        _ => format!(", with {} in the clear", list_names(&names)),
    }
}

fn remedy(before: &LockedDrop) -> String {
    let path = &before.path;
    let column = match &before.reads {
        None => format!("`{path} = {{ transform = \"drop\" }}`"),
        Some(reads) => format!("`{path} = {{ attribute = {reads:?}, transform = \"drop\" }}`"),
    };
    format!(
        "keep {column}; or, if its values are meant to be stored from now on, write \
         `removed = [\"{path}\"]` (beside the column, if there is one), and run \
         `dynalake schemas lock` after a review"
    )
}
