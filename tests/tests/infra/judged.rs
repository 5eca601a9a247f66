//! The template before cfn-lint, parliament and our own judges; and the judges before mistakes.

use dynalake_tests::{judge_template, unnoticed_mistakes};

use crate::facts::{facts, infra, judges, template};

#[test]
fn nothing_is_wrong_with_the_template() {
    if !judges() {
        return;
    }
    let others = [
        infra("demo-table.yaml"),
        infra("examples/sam/template.yaml"),
        infra("examples/serverless/serverless.yml"),
    ];
    let others = others.each_ref().map(String::as_str);
    let said = judge_template(&template(), &others, &facts());
    assert!(said.is_empty(), "{}", said.join("\n"));
}

#[test]
fn every_seeded_mistake_is_noticed() {
    if !judges() {
        return;
    }
    let (count, missed) = unnoticed_mistakes(&template(), &facts());
    assert!(count >= 30, "only {count} mistakes");
    assert!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
}
