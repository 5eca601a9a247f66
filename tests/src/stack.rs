//! Templates before judges that know CloudFormation: cfn-lint, parliament, and what both leave out.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// What the judges say of a template: sentences, none when it is good.
///
/// `facts` is what the binaries say of themselves: names of `metrics`, `handlers`, and `variables` by
/// binary. `others` are further templates, which only cfn-lint looks at.
pub fn judge_template(template: &str, others: &[&str], facts: &Value) -> Vec<String> {
    let job = json!({"template": template, "others": others, "facts": facts});
    serde_json::from_value(judge(&[], &job)).expect("sentences")
}

/// Makes mistakes in a template, each of which one judge must notice: how many there are, and those
/// that were not noticed.
pub fn unnoticed_mistakes(template: &str, facts: &Value) -> (usize, Vec<String>) {
    let answer = judge(&["mutants"], &json!({"template": template, "facts": facts}));
    let count = answer["mistakes"].as_u64().expect("a number");
    let missed = serde_json::from_value(answer["missed"].clone()).expect("names");
    (usize::try_from(count).unwrap(), missed)
}

/// The Glue tables of a template, with all functions worked out: `TableInput` of each.
pub fn glue_tables(template: &str) -> Vec<Value> {
    match judge(&["tables"], &json!({"template": template, "facts": {}})) {
        Value::Array(tables) => tables,
        other => panic!("no list of tables: {other}"),
    }
}

fn judge(arguments: &[&str], job: &Value) -> Value {
    let python = crate::python().expect("Python is there: ask python first");
    let mut child = Command::new(python)
        .args(["-m", "stack"])
        .args(arguments)
        .current_dir(crate::repository().join("tests/py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python runs");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(job.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "the judges stopped:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}
