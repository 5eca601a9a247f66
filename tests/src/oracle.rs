//! What an item is, by `serde_dynamo` and the rules of DynamoDB: numbers by value, sets and maps
//! without order.

use std::collections::BTreeMap;

use serde_dynamo::AttributeValue;

/// An AttributeValue that compares as DynamoDB compares.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plain {
    /// Number: sign, digits and exponent.
    N(String),
    /// String.
    S(String),
    /// Binary.
    B(Vec<u8>),
    /// Boolean.
    Bool(bool),
    /// NULL.
    Null(bool),
    /// List.
    L(Vec<Plain>),
    /// Map.
    M(BTreeMap<String, Plain>),
    /// String set.
    Ss(Vec<String>),
    /// Number set.
    Ns(Vec<String>),
    /// Binary set.
    Bs(Vec<Vec<u8>>),
}

/// The item in this text, as `serde_dynamo` reads it.
pub fn item(text: &str) -> BTreeMap<String, Plain> {
    let item: BTreeMap<String, AttributeValue> = serde_json::from_str(text).unwrap();
    item.into_iter()
        .map(|(name, value)| (name, plain(value)))
        .collect()
}

fn plain(value: AttributeValue) -> Plain {
    fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
        values.sort();
        values
    }
    match value {
        AttributeValue::N(text) => Plain::N(normal(&text)),
        AttributeValue::S(text) => Plain::S(text),
        AttributeValue::B(bytes) => Plain::B(bytes),
        AttributeValue::Bool(value) => Plain::Bool(value),
        AttributeValue::Null(value) => Plain::Null(value),
        AttributeValue::L(values) => Plain::L(values.into_iter().map(plain).collect()),
        AttributeValue::M(members) => Plain::M(
            members
                .into_iter()
                .map(|(name, value)| (name, plain(value)))
                .collect(),
        ),
        AttributeValue::Ss(values) => Plain::Ss(sorted(values)),
        AttributeValue::Ns(values) => Plain::Ns(sorted(values.iter().map(|n| normal(n)).collect())),
        AttributeValue::Bs(values) => Plain::Bs(sorted(values)),
    }
}

/// A number as sign, digits and exponent, worked out on the text alone: no code of the pipeline.
fn normal(text: &str) -> String {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.trim_start_matches('+')),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let mut exponent = exponent.parse::<i64>().unwrap() - i64::try_from(fraction.len()).unwrap();
    let digits = digits.trim_start_matches('0');
    let trimmed = digits.trim_end_matches('0');
    exponent += i64::try_from(digits.len() - trimmed.len()).unwrap();
    if trimmed.is_empty() {
        "0".to_owned()
    } else {
        format!("{sign}{trimmed}e{exponent}")
    }
}
