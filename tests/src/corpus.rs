//! Real-world files that stand beside the repository, where somebody has them.

use std::path::{Path, PathBuf};

/// The corpus: `DYNALAKE_CORPUS`, else `../shared/corpus` beside the repository. It is no part of
/// the repository, so its absence is never a failure.
pub fn corpus() -> Option<PathBuf> {
    let path = std::env::var_os("DYNALAKE_CORPUS").map_or_else(
        || {
            crate::repository()
                .parent()
                .map(|parent| parent.join("shared/corpus"))
        },
        |path| Some(PathBuf::from(path)),
    )?;
    if path.is_dir() {
        return Some(path);
    }
    eprintln!(
        "skipped: no corpus at `{}`; DYNALAKE_CORPUS names another place",
        path.display()
    );
    None
}

/// All files of the corpus below a folder (`streams`), sorted; `None` without a corpus.
pub fn corpus_files(folder: &str) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(&corpus()?.join(folder), &mut files);
    files.sort();
    Some(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path);
        }
    }
}
