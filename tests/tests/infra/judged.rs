//! The template before cfn-lint, parliament and our own judges; and the judges before mistakes.

use dynalake_tests::{judge_template, unnoticed_mistakes};

use crate::facts::{facts, infra, judges, template};

#[test]
fn nothing_is_wrong_with_the_template() {
    if !judges() {
        return;
    }
    let said = judge_template(&template(), &[&infra("demo-table.yaml")], &facts());
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
