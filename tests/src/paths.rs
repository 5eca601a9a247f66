//! Where things are: the repository, the tools of the tests' environment, the binaries under test.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Python with the packages of `tests/requirements.txt`: `DYNALAKE_PYTHON`, else the one in `tests/.venv`.
pub fn python() -> Option<PathBuf> {
    tool("DYNALAKE_PYTHON", "python")
}

/// SeaweedFS: `DYNALAKE_WEED`, else the one in `tests/.venv`.
pub fn weed() -> Option<PathBuf> {
    tool("DYNALAKE_WEED", "weed")
}

/// MiniStack: `DYNALAKE_MINISTACK`, else the one in `tests/.venv`.
pub fn ministack() -> Option<PathBuf> {
    tool("DYNALAKE_MINISTACK", "ministack")
}

fn tool(variable: &str, name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map_or_else(
        || repository().join("tests/.venv/bin").join(name),
        PathBuf::from,
    );
    path.is_file().then_some(path)
}

/// A binary of the workspace (`stream`, `dynalake`), built as the tests are.
///
/// `DYNALAKE_BIN_DIR` names a folder with ready binaries. Otherwise cargo builds them once per test
/// process; it shares the build folder of the running `cargo test` and tells where they are.
pub fn binary(name: &str) -> PathBuf {
    static BUILT: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    if let Some(folder) = std::env::var_os("DYNALAKE_BIN_DIR") {
        return PathBuf::from(folder).join(name);
    }
    let built = BUILT.get_or_init(build);
    built
        .get(name)
        .unwrap_or_else(|| panic!("the workspace has no binary `{name}`"))
        .clone()
}

fn build() -> HashMap<String, PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // The whole workspace, so that its features are those of `cargo test --workspace`.
    command.args([
        "build",
        "--workspace",
        "--bins",
        "--message-format=json-render-diagnostics",
    ]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    // What cargo told this test about its package is not true of that build; build scripts that
    // watch these variables (ring's does) would be run and compiled anew, here and the next time.
    let ours = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_",
    ];
    for (name, _) in std::env::vars_os() {
        if ours
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    let output = command
        .current_dir(repository())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo cannot build the binaries under test"
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| {
            let name = message.pointer("/target/name")?.as_str()?.to_owned();
            Some((name, PathBuf::from(message.get("executable")?.as_str()?)))
        })
        .collect()
}
