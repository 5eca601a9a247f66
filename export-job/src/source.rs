//! Where an export is: a local folder, or a prefix of a bucket, seen through a [`Store`].

use std::path::Path;

use dynalake_pipeline::store::Store;

use crate::error::{ExportError, RefusalKind};
use crate::manifest::SUMMARY_NAME;

/// An export's place. For `s3://bucket/…/AWSDynamoDB/<id>/` the caller makes a [`Store`] of the
/// whole bucket (no prefix), so that data files are found wherever they are, and calls
/// [`Source::in_store`].
#[derive(Debug, Clone)]
pub struct Source {
    store: Store,
    /// Key of the folder with the manifests, without a slash at the end; empty: the store's root.
    folder: String,
}

impl Source {
    /// The export in a local folder, given by the folder or its `manifest-summary.json`.
    pub fn local(path: &Path) -> Result<Self, ExportError> {
        let folder = match path.file_name() {
            Some(name) if name == SUMMARY_NAME => path.parent().unwrap_or(path),
            _ => path,
        };
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let folder = folder.canonicalize().map_err(|error| {
            ExportError::refused(
                RefusalKind::NoExport,
                path.display().to_string(),
                error.to_string(),
                "give the folder that holds manifest-summary.json (…/AWSDynamoDB/<export id>/)",
            )
        })?;
        let (root, key) = root_of(&folder).unwrap_or((folder.as_path(), String::new()));
        Ok(Self {
            store: Store::local(root),
            folder: key,
        })
    }

    /// The export under `key` of a store: the folder or its `manifest-summary.json`.
    pub fn in_store(store: Store, key: &str) -> Self {
        let key = key.strip_suffix(SUMMARY_NAME).unwrap_or(key);
        Self {
            store,
            folder: key.trim_matches('/').to_owned(),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Key of a file in the manifests' folder.
    pub(crate) fn key(&self, name: &str) -> String {
        if self.folder.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.folder)
        }
    }

    /// Key of a file named from `AWSDynamoDB/` on, where the manifests are below such a folder.
    pub(crate) fn beside(&self, key: &str) -> Option<String> {
        let at = self.folder.rfind("AWSDynamoDB/")?;
        let tail = key.get(key.find("AWSDynamoDB/")?..)?;
        Some(format!("{}{tail}", self.folder.get(..at)?))
    }

    /// Path or address of a key, for messages.
    pub(crate) fn address(&self, key: &str) -> String {
        self.store.address(key)
    }
}

/// Splits `…/AWSDynamoDB/<id>` so that files beside the export's folder can be reached too.
fn root_of(folder: &Path) -> Option<(&Path, String)> {
    let id = folder.file_name()?.to_str()?;
    let parent = folder.parent()?;
    let name = parent.file_name()?.to_str()?;
    (name == "AWSDynamoDB").then_some((parent.parent()?, format!("{name}/{id}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_and_its_summary_are_the_same_source() {
        let folder = tempfile::tempdir().unwrap();
        let export = folder.path().join("x/AWSDynamoDB/01-ab");
        std::fs::create_dir_all(&export).unwrap();
        let by_folder = Source::local(&export).unwrap();
        let by_summary = Source::local(&export.join(SUMMARY_NAME)).unwrap();
        assert_eq!(by_folder.key("f"), "AWSDynamoDB/01-ab/f");
        assert_eq!(by_folder.address("f"), by_summary.address("f"));
        assert_eq!(by_folder.key("f"), by_summary.key("f"));
        let absent = Source::local(&export.join("no")).unwrap_err();
        assert_eq!(absent.refusal(), Some(RefusalKind::NoExport));
    }

    #[test]
    fn keys_of_a_bucket_may_be_folder_or_summary() {
        let store = Store::local("unused");
        for key in [
            "p/AWSDynamoDB/1",
            "p/AWSDynamoDB/1/",
            "p/AWSDynamoDB/1/manifest-summary.json",
        ] {
            let source = Source::in_store(store.clone(), key);
            assert_eq!(source.key("x"), "p/AWSDynamoDB/1/x", "{key}");
            let beside = source.beside("other/AWSDynamoDB/data/y");
            assert_eq!(beside.as_deref(), Some("p/AWSDynamoDB/data/y"));
        }
        assert_eq!(Source::in_store(store.clone(), "").key("x"), "x");
        assert_eq!(
            Source::in_store(store, "copy").beside("AWSDynamoDB/data/y"),
            None
        );
    }
}
