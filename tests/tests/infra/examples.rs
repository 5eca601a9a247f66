//! Examples for other tools, and the guide for operators, against the template that they are about.

use std::collections::BTreeMap;

use dynalake_tests::repository;

use crate::facts::infra;

/// Parameters of the base; whether each must be given.
fn parameters() -> BTreeMap<String, bool> {
    let base = infra("base.yaml");
    let (_, rest) = base.split_once("\nParameters:\n").unwrap();
    let (section, _) = rest.split_once("\nConditions:\n").unwrap();
    let mut found = BTreeMap::new();
    let mut name = String::new();
    for line in section.lines() {
        if let Some(one) = line
            .strip_prefix("  ")
            .and_then(|line| line.strip_suffix(':'))
        {
            one.clone_into(&mut name);
            found.insert(name.clone(), true);
        } else if line.starts_with("    Default:") {
            found.insert(name.clone(), false);
        }
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

/// The names that are set in the lines around `StreamArn`, as deep as it.
fn given(text: &str) -> Vec<String> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.trim_start().starts_with("StreamArn"))
        .unwrap();
    lines[at..]
        .iter()
        .take_while(|line| depth(line) == depth(lines[at]))
        .map(|line| {
            let end = line.find([':', '=']).unwrap();
            line[..end].trim().to_owned()
        })
        .collect()
}

#[test]
fn examples_give_what_must_be_given_and_nothing_that_is_not_there() {
    let parameters = parameters();
    for file in [
        "cdk/lake.ts",
        "sam/template.yaml",
        "terraform/lake.tf",
        "serverless/serverless.yml",
    ] {
        let given = given(&infra(&format!("examples/{file}")));
        for name in &given {
            assert!(parameters.contains_key(name), "{file}: no parameter {name}");
        }
        for (name, required) in &parameters {
            let there = given.contains(name);
            assert!(there || !required, "{file}: {name} is missing");
        }
    }
}

#[test]
fn operators_find_each_alarm_and_parameter_in_the_guides() {
    let read = |name: &str| std::fs::read_to_string(repository().join(name)).unwrap();
    let (operations, deploy) = (read("docs/operations.md"), read("docs/deploy.md"));
    let base = infra("base.yaml");
    let alarms: Vec<&str> = base
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix("AlarmName: !Sub ${AWS::StackName}-")
        })
        .collect();
    assert!(alarms.len() > 10);
    for alarm in alarms {
        assert!(
            operations.contains(&format!("### `{alarm}`")),
            "docs/operations.md does not tell of the alarm {alarm}"
        );
    }
    for name in parameters().keys() {
        assert!(
            deploy.contains(&format!("`{name}`")),
            "docs/deploy.md does not tell of the parameter {name}"
        );
    }
}
