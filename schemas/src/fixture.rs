//! Schema folders for tests.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::load::check;
use crate::model::Catalog;
use crate::problem::{Problem, Severity};

/// A usual `lake.toml`.
pub(crate) const LAKE: &str = "
database = \"shop\"
[source]
partition_key = \"PK\"
sort_key = \"SK\"
";

/// A folder with a usual `lake.toml` and these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lake.toml"), LAKE).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// An entity file with this name, `[match]` and `[columns]`.
pub(crate) fn entity(name: &str, matching: &str, columns: &str) -> String {
    format!("entity = \"{name}\"\ntable = \"{name}s\"\n[match]\n{matching}\n[columns]\n{columns}\n")
}

/// Errors as `file:line what | remedy`.
pub(crate) fn errors(folder: &Path) -> Vec<String> {
    said(folder, Severity::Error)
}

/// Warnings in the same form, but for the one about a missing lock.
pub(crate) fn warnings(folder: &Path) -> Vec<String> {
    let mut said = said(folder, Severity::Warning);
    said.retain(|text| !text.contains("there is no lake.lock"));
    said
}

fn said(folder: &Path, severity: Severity) -> Vec<String> {
    let show = |problem: &Problem| {
        let file = Path::new(&problem.file)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        format!(
            "{file}:{} {} | {}",
            problem.line, problem.what, problem.remedy
        )
    };
    let problems = check(folder).problems;
    problems
        .iter()
        .filter(|problem| problem.severity == severity)
        .map(show)
        .collect()
}

/// The catalog of a folder that must be good.
pub(crate) fn catalog(folder: &Path) -> Catalog {
    Catalog::load(folder)
        .map_err(|problems| problems.to_string())
        .unwrap()
}

/// The folder of the example.
pub(crate) fn ecommerce() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ecommerce")
}
