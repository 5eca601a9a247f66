//! The repository's scripts before `ShellCheck`.

use std::process::Command;

use dynalake_tests::{python, repository};

use crate::facts::judges;

#[test]
fn nothing_is_wrong_with_the_scripts() {
    if !judges() {
        return;
    }
    let output = Command::new(python().unwrap().with_file_name("shellcheck"))
        .args([
            "infra/deploy.sh",
            "infra/release.sh",
            "tests/run",
            ".ci/run",
        ])
        .current_dir(repository())
        .output()
        .expect("ShellCheck runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}
