//! The text of a schema folder, apart from where it lies.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::LOCK_FILE;

/// The files of a schema folder that mean something, by name: `*.toml` and `lake.lock`.
///
/// They hold names and types, no secrets: a key of theirs that the language does not know is an error.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SchemaFiles(BTreeMap<String, String>);

impl SchemaFiles {
    /// Name and text of each, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

impl FromIterator<(String, String)> for SchemaFiles {
    /// Files of other names are left out.
    fn from_iter<I: IntoIterator<Item = (String, String)>>(files: I) -> Self {
        let meant = files.into_iter().filter(|(name, _)| is_meant(name));
        Self(meant.collect())
    }
}

/// Names alone: the texts are long, and what they mean is in the catalog.
impl fmt::Debug for SchemaFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Files as they were found, readable or not.
pub(crate) struct Found {
    /// How the folder is called in messages.
    folder: PathBuf,
    texts: BTreeMap<String, io::Result<String>>,
}

impl Found {
    /// Reads a folder.
    pub(crate) fn in_folder(folder: &Path) -> io::Result<Self> {
        let mut texts = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if is_meant(&name) {
                let text = fs::read_to_string(folder.join(&name));
                texts.insert(name, text);
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            texts,
        })
    }

    /// Files that somebody kept, called in messages as if they lay in this folder.
    pub(crate) fn kept(files: &SchemaFiles, folder: &Path) -> Self {
        let own = |(name, text): (&str, &str)| (name.to_owned(), Ok(text.to_owned()));
        Self {
            folder: folder.to_owned(),
            texts: files.iter().map(own).collect(),
        }
    }

    /// The folder, as it is called in messages.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file as it is called in messages.
    pub(crate) fn shown(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// The text of a file; `None` where there is no such file.
    pub(crate) fn text(&self, name: &str) -> Option<Result<&str, &io::Error>> {
        let text = self.texts.get(name)?;
        Some(text.as_ref().map(String::as_str))
    }

    /// Names of the `*.toml` files, sorted.
    pub(crate) fn toml_names(&self) -> impl Iterator<Item = &str> {
        let names = self.texts.keys().map(String::as_str);
        names.filter(|name| *name != LOCK_FILE)
    }

    /// What could be read.
    pub(crate) fn into_files(self) -> SchemaFiles {
        let readable = |(name, text): (String, io::Result<String>)| Some((name, text.ok()?));
        self.texts.into_iter().filter_map(readable).collect()
    }
}

fn is_meant(name: &str) -> bool {
    let is_toml = Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "toml");
    name == LOCK_FILE || (is_toml && !name.starts_with('.'))
}
