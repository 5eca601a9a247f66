//! Reading a schema folder: files in, a checked [`Catalog`] or all problems at once out.

mod columns;
mod entity;
mod files;
mod formats;
mod lake;
mod matcher;
mod source;

use std::path::Path;

use toml_edit::Document;

use crate::lock::Lock;
use crate::model::{Catalog, Entity, Matcher};
use crate::problem::{Place, Problems};
use crate::{evolution, lock, overlap, sensitive, tables};

pub(crate) use entity::LoadedEntity;
pub(crate) use files::Found;
pub use files::SchemaFiles;
use lake::Lake;
use source::SourceFile;

/// The file that describes the source table.
pub const LAKE_FILE: &str = "lake.toml";
/// The file that keeps field ids and what was deployed.
pub const LOCK_FILE: &str = "lake.lock";
/// Name of the built-in entity and of its table.
pub const UNMATCHED: &str = "unmatched";
/// Name of the table over quarantined records.
pub const QUARANTINE: &str = "quarantine";

/// The outcome of reading a schema folder.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The catalog, if there is no error.
    pub catalog: Option<Catalog>,
    /// Errors and warnings.
    pub problems: Problems,
}

impl Catalog {
    /// Reads and checks a schema folder: `lake.toml`, every other `*.toml` as an entity, and
    /// `lake.lock` if it is there. Other files are ignored. Gives all problems at once if any of
    /// them is an error; warnings alone do not stop it (see [`check`]).
    pub fn load(folder: &Path) -> Result<Self, Problems> {
        let Checked { catalog, problems } = check(folder);
        catalog.ok_or(problems)
    }

    /// The same for files that were kept somewhere, and are in use: `lake.lock` tells field ids, and
    /// whether it allows what they say is not asked any more. `shown` is what their folder is called
    /// in problems.
    pub fn from_files(files: &SchemaFiles, shown: &Path) -> Result<Self, Problems> {
        let found = Found::kept(files, shown);
        let Checked { catalog, problems } = checked(read_found(found, Compare::Nothing));
        catalog.ok_or(problems)
    }
}

/// Reads and checks a schema folder, and gives the warnings too.
pub fn check(folder: &Path) -> Checked {
    checked(read(folder))
}

fn checked(folder: Folder) -> Checked {
    let Folder {
        loaded,
        lake,
        problems,
        files,
        ..
    } = folder;
    let catalog = lake.filter(|_| !problems.has_errors()).map(|lake| {
        let mut entities: Vec<Entity> = loaded.into_iter().map(|loaded| loaded.entity).collect();
        entities.push(unmatched());
        Catalog {
            database: lake.database,
            source: lake.source,
            entities,
            files,
        }
    });
    Checked { catalog, problems }
}

/// A schema folder as far as it can be read.
pub(crate) struct Folder {
    /// In matching order.
    pub(crate) loaded: Vec<LoadedEntity>,
    pub(crate) lake: Option<Lake>,
    pub(crate) lock: Option<Lock>,
    pub(crate) files: SchemaFiles,
    /// All problems, in order of file and line.
    pub(crate) problems: Problems,
}

/// Reads and checks a schema folder.
pub(crate) fn read(folder: &Path) -> Folder {
    match Found::in_folder(folder) {
        Ok(found) => read_found(found, Compare::Lock),
        Err(error) => {
            let mut problems = Problems::default();
            let what = format!("the schema folder cannot be read: {error}");
            let remedy = "give a folder that holds lake.toml and entity files";
            problems.error(&folder_place(folder), what, remedy);
            Folder {
                loaded: Vec::new(),
                lake: None,
                lock: None,
                files: SchemaFiles::default(),
                problems,
            }
        }
    }
}

/// What schemas are compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    /// `lake.lock`.
    Lock,
    Nothing,
}

fn read_found(found: Found, compare: Compare) -> Folder {
    let mut problems = Problems::default();
    if found.text(LAKE_FILE).is_none() {
        problems.error(
            &folder_place(found.folder()),
            "the folder holds no lake.toml",
            "give the folder of one database (such as schemas/ecommerce), or add lake.toml with \
             `database` and `[source]`",
        );
    }
    let lake =
        open(&found, LAKE_FILE, &mut problems).and_then(|file| lake::read(&file, &mut problems));
    let mut loaded = Vec::new();
    for name in found.toml_names().filter(|name| *name != LAKE_FILE) {
        if let Some(file) = open(&found, name, &mut problems)
            && let Some(document) = parse(&file, &mut problems)
        {
            loaded.push(entity::read(
                &file,
                document.as_table(),
                lake.as_ref(),
                &mut problems,
            ));
        }
    }
    tables::check_names(&loaded, &mut problems);
    sensitive::check(&loaded, &mut problems);
    overlap::put_in_order(
        &mut loaded,
        lake.as_ref().map(|lake| &lake.source),
        &mut problems,
    );
    let lock = lock::read(&found, &mut problems);
    for entity in &mut loaded {
        lock::assign_ids(&mut entity.entity, lock.as_ref());
    }
    let place = Place {
        file: found.shown(LOCK_FILE).into(),
        line: 0,
    };
    let mut folder_read = Folder {
        loaded,
        lake,
        lock,
        files: found.into_files(),
        problems,
    };
    // A lock that is there but cannot be read is a problem already.
    if compare == Compare::Lock && !folder_read.problems.has_errors_in(&place.file) {
        evolution::check(&mut folder_read, &place);
    }
    folder_read.problems.sort();
    folder_read
}

fn unmatched() -> Entity {
    Entity {
        name: UNMATCHED.to_owned(),
        table: UNMATCHED.to_owned(),
        description: Some("items that no entity takes, whole in _rest".to_owned()),
        version: 1,
        matcher: Matcher::default(),
        columns: Vec::new(),
        keep_old_image: false,
    }
}

fn open(found: &Found, name: &str, problems: &mut Problems) -> Option<SourceFile> {
    let shown = found.shown(name);
    match found.text(name)? {
        Ok(text) => Some(SourceFile::new(&shown, text.to_owned())),
        Err(error) => {
            let place = Place {
                file: shown.into(),
                line: 0,
            };
            problems.error(
                &place,
                format!("the file cannot be read: {error}"),
                "make it a readable file of UTF-8 text",
            );
            None
        }
    }
}

/// Parses a file as TOML.
fn parse<'t>(file: &'t SourceFile, problems: &mut Problems) -> Option<Document<&'t str>> {
    match Document::parse(file.text()) {
        Ok(document) => Some(document),
        Err(error) => {
            problems.error(
                &file.place(error.span()),
                format!(
                    "the file is not TOML: {}",
                    error.message().replace('\n', ", ")
                ),
                "correct the syntax at this line; names with other characters than a-z, 0-9, _ \
                 and - need quotes",
            );
            None
        }
    }
}

fn folder_place(folder: &Path) -> Place {
    Place {
        file: folder.display().to_string().into(),
        line: 0,
    }
}

#[cfg(test)]
mod tests;
