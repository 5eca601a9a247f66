//! `lake.lock`: which columns the lake's files have, with their field ids.
//!
//! Written by [`lock()`], committed with the schemas and read by people in reviews: one line per
//! column and part of one. Loading takes field ids from it, and the evolution rules compare the
//! schemas with it. Columns and tables that are gone stay in it, so that neither their ids nor
//! their names come back with another meaning.

mod dropped;
mod ids;
mod matching;
mod nodes;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use dropped::{LockedDrop, dropped};
pub(crate) use ids::assign_ids;
pub(crate) use matching::matching;
pub(crate) use nodes::{Kind, Node, nodes};

use crate::load::{self, Found, LOCK_FILE, LoadedEntity};
use crate::problem::{Place, Problems};
use crate::row_columns::FIRST_TYPED_ID;

/// What `lake.lock` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) database: String,
    /// By name of the lake table.
    pub(crate) tables: BTreeMap<String, LockedTable>,
}

/// A table that the lake has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockedTable {
    pub(crate) entity: String,
    pub(crate) version: i32,
    /// The field id that the next new column gets.
    pub(crate) next_id: i32,
    /// No entity writes to it any more.
    pub(crate) retired: bool,
    /// How its items are recognised; locks of before the line have none.
    pub(crate) matching: Option<String>,
    /// In declared order, removed ones last.
    pub(crate) columns: Vec<LockedColumn>,
    /// Columns that are never stored, in declared order, those that are no longer so last.
    pub(crate) dropped: Vec<LockedDrop>,
}

/// A column, or a part of one, that some file of the lake may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockedColumn {
    pub(crate) node: Node,
    pub(crate) removed: bool,
}

/// What [`lock()`] did.
#[derive(Debug, Clone)]
pub struct Locked {
    /// The lock file.
    pub path: PathBuf,
    /// Whether its text is new.
    pub changed: bool,
    /// Its text.
    pub text: String,
    /// Warnings that remain.
    pub warnings: Problems,
}

/// Checks a schema folder and writes its `lake.lock`. Fails with all problems if there is an error,
/// a change that the evolution rules refuse included.
pub fn lock(folder: &Path) -> Result<Locked, Problems> {
    let load::Folder {
        loaded,
        lake,
        lock,
        problems,
        ..
    } = load::read(folder);
    let path = folder.join(LOCK_FILE);
    let place = Place {
        file: path.display().to_string().into(),
        line: 0,
    };
    let (Some(lake), false) = (lake, problems.has_errors()) else {
        return Err(problems);
    };
    let next = Lock::update(&lake.database, lock.as_ref(), &loaded);
    let text = next.to_text();
    let changed = fs::read_to_string(&path).ok().as_deref() != Some(text.as_str());
    if changed && let Err(error) = write(&path, &text) {
        let mut failed = Problems::default();
        failed.error(
            &place,
            format!("the file cannot be written: {error}"),
            "make the folder writable, and run it again",
        );
        return Err(failed);
    }
    // Checked again, so that what locking settles is no warning any more.
    let warnings = load::check(folder).problems;
    Ok(Locked {
        path,
        changed,
        text,
        warnings,
    })
}

/// To a temporary name first, so that a crash leaves the old lock.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = path.with_extension("lock.new");
    fs::write(&temporary, text)?;
    fs::rename(&temporary, path)
}

/// Reads `lake.lock`; `None` if there is none or it cannot be read.
pub(crate) fn read(found: &Found, problems: &mut Problems) -> Option<Lock> {
    let remedy = "restore it from version control; it is written by `dynalake schemas lock` only";
    let (line, what) = match found.text(LOCK_FILE)? {
        Err(error) => (0, format!("the lock cannot be read: {error}")),
        Ok(text) => match Lock::parse(text) {
            Ok(lock) => return Some(lock),
            Err((line, what)) => (line, format!("the lock cannot be read: {what}")),
        },
    };
    let place = Place {
        file: found.shown(LOCK_FILE).into(),
        line,
    };
    problems.error(&place, what, remedy);
    None
}

impl Lock {
    /// The lock after these entities.
    pub(crate) fn update(database: &str, before: Option<&Self>, loaded: &[LoadedEntity]) -> Self {
        let mut tables: BTreeMap<String, LockedTable> =
            before.map(|lock| lock.tables.clone()).unwrap_or_default();
        for table in tables.values_mut() {
            table.retired = true;
        }
        for LoadedEntity { entity, .. } in loaded {
            let nodes = nodes(entity);
            let paths: BTreeSet<&str> = nodes.iter().map(|node| node.path.as_str()).collect();
            let gone: Vec<LockedColumn> = tables
                .get(&entity.table)
                .into_iter()
                .flat_map(|table| &table.columns)
                .filter(|column| !paths.contains(column.node.path.as_str()))
                .map(|column| LockedColumn {
                    node: column.node.clone(),
                    removed: true,
                })
                .collect();
            let mut next_id = tables
                .get(&entity.table)
                .map_or(FIRST_TYPED_ID, |t| t.next_id);
            next_id = nodes
                .iter()
                .fold(next_id, |next, node| next.max(node.id.saturating_add(1)));
            let mut columns: Vec<LockedColumn> = nodes
                .iter()
                .map(|node| LockedColumn {
                    node: node.clone(),
                    removed: false,
                })
                .collect();
            columns.extend(gone);
            let before = tables
                .get(&entity.table)
                .map(|table| table.dropped.as_slice());
            let dropped = dropped::update(entity, before.unwrap_or_default());
            let locked = LockedTable {
                entity: entity.name.clone(),
                version: entity.version,
                next_id,
                retired: false,
                matching: Some(matching(entity)),
                columns,
                dropped,
            };
            tables.insert(entity.table.clone(), locked);
        }
        Self {
            database: database.to_owned(),
            tables,
        }
    }
}
