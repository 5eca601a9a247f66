//! The function's folder on the local disk.
//!
//! A sandbox lives on after an invocation that was ended, and its disk with it: what that one left behind
//! would fill the disk. Each process has a folder of its own, since in tests several share a disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::StepError;

const PREFIX: &str = "dynalake-";

/// A folder of this process.
#[derive(Debug, Clone)]
pub(super) struct Spool {
    folder: PathBuf,
}

impl Spool {
    /// The folder of process `id` in `root`; those of processes that are no more are removed.
    pub(super) fn new(root: &Path, id: u32) -> Self {
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let owner = owner.and_then(|id| id.parse::<u32>().ok());
            if owner.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
                // What cannot be removed is in nobody's way but the disk's.
                drop(fs::remove_dir_all(entry.path()));
            }
        }
        Self {
            folder: root.join(format!("{PREFIX}{id}")),
        }
    }

    /// Makes the folder, empty.
    pub(super) fn clear(&self) -> Result<(), StepError> {
        let cleared = match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir_all(&self.folder),
        };
        cleared.map_err(|source| StepError::Spool {
            path: self.folder.display().to_string(),
            source,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_processes_left_is_removed_and_what_others_have_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let own = std::process::id();
        for name in ["dynalake-999999999", "dynalake-x", "other"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::create_dir(root.path().join(format!("dynalake-{own}"))).unwrap();
        let spool = Spool::new(root.path(), 999_999_998);
        spool.clear().unwrap();
        fs::write(spool.folder().join("x"), "left over").unwrap();
        spool.clear().unwrap();
        let mut names: Vec<String> = fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut expected = vec![
            format!("dynalake-{own}"),
            "dynalake-999999998".to_owned(),
            "dynalake-x".to_owned(),
            "other".to_owned(),
        ];
        expected.sort();
        assert_eq!(names, expected);
        assert_eq!(fs::read_dir(spool.folder()).unwrap().count(), 0);
    }
}
