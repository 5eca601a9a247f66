//! What may change between `lake.lock` and the schemas, so that files already in the lake stay
//! readable: by Athena, which reads Parquet by name, and by our own rebuilding of items.
//!
//! | change | |
//! |---|---|
//! | new column or struct member behind the others | fine |
//! | `int` → `bigint`; `decimal(p,s)` → `decimal(q,s)` with q > p | fine: readers widen both |
//! | column or member gone that is listed in `removed`, or has become `transform = "drop"` | fine; name and id stay reserved |
//! | column with `transform = "drop"` stored or gone, and listed in `removed` | fine: somebody means it |
//! | other attribute or format, same type | warning: old rows keep what they were read with |
//! | other `[match]`, new or deleted entity | warning: items are in two tables until a new baseline |
//! | anything else | refused |
//!
//! Each of them needs a higher `version`. Not widened: `int` → `double` or `decimal` and other scales,
//! which Athena's Parquet reader does not (all) accept over old files.

mod dropped;
mod routes;

use std::collections::BTreeMap;

use crate::athena::declared_type;
use crate::load::{Folder, LoadedEntity};
use crate::lock::{Kind, Lock, LockedTable, Node, nodes};
use crate::model::Transform;
use crate::problem::{Place, Problems};

/// Compares the schemas with the lock.
pub(crate) fn check(folder: &mut Folder, lock_place: &Place) {
    let Folder {
        loaded,
        lake,
        lock,
        problems,
        ..
    } = folder;
    let Some(lake) = lake else { return };
    let Some(lock) = lock else {
        problems.warning(
            lock_place,
            "there is no lake.lock, so nobody notices a change that old files cannot follow",
            "run `dynalake schemas lock` and commit the file",
        );
        return;
    };
    for entity in loaded.iter() {
        // What could not be read is not gone.
        if problems.has_errors_in(&entity.places.entity.file) {
            continue;
        }
        if let Some(locked) = lock.tables.get(&entity.entity.table) {
            compare(entity, locked, problems);
        } else {
            let known = dropped::check_new_table(entity, loaded, lock, problems);
            unknown_removed(
                entity,
                &|name| known.iter().any(|known| known == name),
                problems,
            );
        }
    }
    routes::check(loaded, lock, problems);
    let is_written = |name: &str| loaded.iter().any(|loaded| loaded.entity.table == name);
    for (name, table) in &lock.tables {
        if table.retired || is_written(name) {
            continue;
        }
        // An entity with a new table has been asked already.
        let has_moved = loaded
            .iter()
            .any(|loaded| loaded.entity.name == table.entity);
        let in_the_clear = if has_moved {
            String::new()
        } else {
            dropped::in_the_clear(table)
        };
        problems.warning(
            lock_place,
            format!(
                "no entity writes to `{name}` any more; what is in the lake stays there, and items that \
                 still come go elsewhere{in_the_clear}"
            ),
            format!("restore the entity's file; or, if that is meant, {}", routes::NEW_BASELINE),
        );
    }
    if !problems.has_errors() && Lock::update(&lake.database, Some(lock), loaded) != *lock {
        problems.warning(
            lock_place,
            "lake.lock does not hold the latest changes of the schemas",
            "run `dynalake schemas lock` and commit the file",
        );
    }
}

fn compare(loaded: &LoadedEntity, locked: &LockedTable, problems: &mut Problems) {
    let LoadedEntity { entity, places, .. } = loaded;
    let current = nodes(entity);
    let mut changes = Vec::new();
    let known: BTreeMap<&str, &Node> = locked
        .columns
        .iter()
        .map(|column| (column.node.path.as_str(), &column.node))
        .collect();
    for node in &current {
        let parent = node.path.rsplit_once('.').map(|(parent, _)| parent);
        if parent.is_some_and(|parent| changed_kind(parent, locked, &current)) {
            continue;
        }
        match known.get(node.path.as_str()) {
            Some(before) => compare_node(loaded, before, node, &mut changes, problems),
            None => changes.push(format!("`{}` is new", node.path)),
        }
    }
    dropped::check(loaded, locked, &mut changes, problems);
    check_removed(loaded, locked, &current, &mut changes, problems);
    let is_known = |path: &str| known.contains_key(path) || was_dropped(path, locked);
    unknown_removed(loaded, &is_known, problems);
    check_order(loaded, locked, &current, problems);
    if entity.version < locked.version {
        problems.error(
            &places.version,
            format!(
                "version {} is below the locked version {}",
                entity.version, locked.version
            ),
            format!("write `version = {}` or higher", locked.version),
        );
    } else if let (Some(first), true) = (changes.first(), entity.version == locked.version) {
        let more = match changes.len() {
            1 => String::new(),
            count => format!(" (and {} more changes)", count - 1),
        };
        problems.error(
            &places.version,
            format!(
                "the columns differ from version {}: {first}{more}",
                locked.version
            ),
            format!("write `version = {}`", locked.version.saturating_add(1)),
        );
    }
}

fn compare_node(
    loaded: &LoadedEntity,
    before: &Node,
    now: &Node,
    changes: &mut Vec<String>,
    problems: &mut Problems,
) {
    let place = loaded.places.column(top(&now.path));
    let path = &now.path;
    if before.kind != now.kind {
        if widens(before.kind, now.kind) {
            changes.push(format!("`{path}` is wider"));
        } else {
            problems.error(
                place,
                format!(
                    "`{path}` was {} and is {}: old files cannot be read so",
                    before.kind, now.kind
                ),
                another_column(loaded, path),
            );
            return;
        }
    }
    if before.transform != now.transform {
        let clear = "none".to_owned();
        problems.error(
            place,
            format!(
                "the transform of `{path}` was {} and is {}: old and new values are not comparable",
                before.transform.as_ref().unwrap_or(&clear),
                now.transform.as_ref().unwrap_or(&clear)
            ),
            another_column(loaded, path),
        );
    }
    if before.reads != now.reads || before.format != now.format {
        let show = |node: &Node| match (&node.reads, &node.format) {
            (None, None) => "its defaults".to_owned(),
            (Some(reads), None) => format!("attribute `{reads}`"),
            (None, Some(format)) => format!("format `{format}`"),
            (Some(reads), Some(format)) => format!("attribute `{reads}`, format `{format}`"),
        };
        changes.push(format!("`{path}` is read otherwise"));
        problems.warning(
            place,
            format!(
                "`{path}` was read from {}, now from {}",
                show(before),
                show(now)
            ),
            "rows written before keep the values they have; take a new full export to re-read all",
        );
    }
}

fn another_column(loaded: &LoadedEntity, path: &str) -> String {
    let name = top(path);
    let column = loaded
        .entity
        .columns
        .iter()
        .find(|column| column.name == name);
    let ty = column.map_or_else(|| "…".to_owned(), |column| declared_type(&column.ty));
    format!(
        "add a new column (`{name}_2 = {{ type = \"{ty}\", attribute = \"…\" }}`) instead of \
         `{name}` and write `removed = [\"{name}\"]`; or re-base: give the entity a new `table` \
         and take a full export"
    )
}

fn top(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// Whether readers of the new type take files of the old one (facts of Athena's Parquet reader:
/// INT32 under bigint; DECIMAL of any physical type under a wider decimal).
fn widens(before: Kind, now: Kind) -> bool {
    match (before, now) {
        (Kind::Int, Kind::Bigint) => true,
        (
            Kind::Decimal {
                precision: old,
                scale: old_scale,
            },
            Kind::Decimal {
                precision: new,
                scale: new_scale,
            },
        ) => new > old && new_scale == old_scale,
        _ => false,
    }
}

/// What was there and is not.
fn check_removed(
    loaded: &LoadedEntity,
    locked: &LockedTable,
    current: &[Node],
    changes: &mut Vec<String>,
    problems: &mut Problems,
) {
    let LoadedEntity {
        entity,
        places,
        removed,
        ..
    } = loaded;
    let is_there = |path: &str| current.iter().any(|node| node.path == path);
    for column in locked.columns.iter().filter(|column| !column.removed) {
        let path = column.node.path.as_str();
        let parent = path.rsplit_once('.').map(|(parent, _)| parent);
        // Where the parent is gone or of another type, that has been said already.
        if is_there(path) || parent.is_some_and(|parent| changed_kind(parent, locked, current)) {
            continue;
        }
        let is_dropped = entity
            .columns
            .iter()
            .any(|column| column.name == path && column.transform == Some(Transform::Drop));
        if is_dropped || removed.iter().any(|(name, _)| name == path) {
            changes.push(format!("`{path}` is gone"));
            continue;
        }
        problems.error(
            places.column(top(path)),
            format!("`{path}` is gone, but files in the lake have it"),
            format!(
                "restore it, or write `removed = [\"{path}\"]` to say that it is meant (its name \
                 and field id stay reserved)"
            ),
        );
    }
    for (name, place) in removed {
        if is_there(name) && !was_dropped(name, locked) {
            problems.error(
                place,
                format!("`{name}` is in `removed` and among the columns"),
                "take it out of one of them",
            );
        }
    }
}

fn was_dropped(path: &str, locked: &LockedTable) -> bool {
    locked.dropped.iter().any(|column| column.path == path)
}

/// Whether the parts of this node have nothing in common with what the lock says of them.
fn changed_kind(path: &str, locked: &LockedTable, current: &[Node]) -> bool {
    let before = locked
        .columns
        .iter()
        .find(|column| column.node.path == path);
    let now = current.iter().find(|node| node.path == path);
    match (before, now) {
        (Some(before), Some(now)) => before.node.kind != now.kind,
        _ => true,
    }
}

fn unknown_removed(
    loaded: &LoadedEntity,
    is_known: &dyn Fn(&str) -> bool,
    problems: &mut Problems,
) {
    for (name, place) in loaded.removed.iter().filter(|(name, _)| !is_known(name)) {
        problems.warning(
            place,
            format!("`{name}` is in `removed`, but lake.lock knows no such column"),
            "correct the name, or take it out",
        );
    }
}

/// New columns and members stand behind the old ones, and those keep their order.
fn check_order(
    loaded: &LoadedEntity,
    locked: &LockedTable,
    current: &[Node],
    problems: &mut Problems,
) {
    let rank: BTreeMap<&str, usize> = locked
        .columns
        .iter()
        .filter(|column| !column.removed)
        .enumerate()
        .map(|(rank, column)| (column.node.path.as_str(), rank))
        .collect();
    // Per parent.
    let mut last_old: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let mut first_new: BTreeMap<&str, &str> = BTreeMap::new();
    for node in current {
        let parent = node.path.rsplit_once('.').map_or("", |(parent, _)| parent);
        let Some(&rank) = rank.get(node.path.as_str()) else {
            first_new.entry(parent).or_insert(&node.path);
            continue;
        };
        let place = loaded.places.column(top(&node.path));
        if let Some(new) = first_new.remove(parent) {
            problems.error(
                place,
                format!("`{new}` is new and stands before `{}`", node.path),
                format!("move `{new}` behind the columns that were there before"),
            );
        }
        match last_old.get(parent) {
            Some((before, path)) if *before > rank => problems.error(
                place,
                format!("`{}` stood before `{path}`", node.path),
                "keep the order of the columns; new ones go to the end",
            ),
            _ => {
                last_old.insert(parent, (rank, &node.path));
            }
        }
    }
}

#[cfg(test)]
mod tests;
