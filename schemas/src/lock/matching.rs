//! How an entity recognises its items, as one line of text: the same text for the same `[match]`.

use std::fmt::Write;

use crate::model::{AttributeCondition, AttributeTest, Entity, Scalar, Template};
use crate::template::DEFAULT_SEPARATOR;

/// What `lake.lock` keeps of `[match]`.
pub(crate) fn matching(entity: &Entity) -> String {
    let matcher = &entity.matcher;
    let mut parts = Vec::new();
    for (key, templates) in [
        ("partition_key", &matcher.partition_key),
        ("sort_key", &matcher.sort_key),
    ] {
        if !templates.is_empty() {
            let all: Vec<String> = templates.iter().map(template).collect();
            parts.push(format!("{key} {}", all.join(" or ")));
        }
    }
    let mut conditions: Vec<String> = matcher.attributes.iter().map(condition).collect();
    conditions.sort();
    parts.extend(conditions);
    if matcher.priority != 0 {
        parts.push(format!("priority {}", matcher.priority));
    }
    parts.join(", ")
}

fn template(template: &Template) -> String {
    if template.separator == DEFAULT_SEPARATOR {
        format!("{:?}", template.text)
    } else {
        format!("{:?} by {:?}", template.text, template.separator)
    }
}

fn condition(condition: &AttributeCondition) -> String {
    let mut text = condition.attribute.clone();
    // Writing to a String cannot fail.
    _ = match &condition.test {
        AttributeTest::OneOf(values) => {
            let values: Vec<String> = values.iter().map(scalar).collect();
            write!(text, " = {}", values.join(" or "))
        }
        AttributeTest::Exists(true) => write!(text, " exists"),
        AttributeTest::Exists(false) => write!(text, " is absent"),
        AttributeTest::Prefix(prefix) => write!(text, " begins with {prefix:?}"),
        AttributeTest::Suffix(suffix) => write!(text, " ends in {suffix:?}"),
    };
    text
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::S(value) => format!("{value:?}"),
        Scalar::N(value) => value.clone(),
        Scalar::Bool(value) => value.to_string(),
    }
}
