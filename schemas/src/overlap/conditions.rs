//! Conditions on attributes: can two lists of them hold for one item, does one follow from another?

use crate::model::{AttributeCondition, AttributeTest, Scalar};

/// Whether no item can satisfy both lists.
pub(crate) fn are_disjoint(a: &[AttributeCondition], b: &[AttributeCondition]) -> bool {
    pairs(a, b).any(|(left, right)| excludes(left, right) || excludes(right, left))
}

/// Whether every item that satisfies `a` satisfies `b`.
pub(crate) fn implies_all(a: &[AttributeCondition], b: &[AttributeCondition]) -> bool {
    b.iter().all(|wanted| {
        a.iter()
            .any(|given| given.attribute == wanted.attribute && implies(&given.test, &wanted.test))
    })
}

fn pairs<'c>(
    a: &'c [AttributeCondition],
    b: &'c [AttributeCondition],
) -> impl Iterator<Item = (&'c AttributeTest, &'c AttributeTest)> {
    a.iter().flat_map(move |left| {
        b.iter()
            .filter(move |right| left.attribute == right.attribute)
            .map(move |right| (&left.test, &right.test))
    })
}

/// Tried both ways round by the caller.
fn excludes(a: &AttributeTest, b: &AttributeTest) -> bool {
    use AttributeTest::{Exists, OneOf, Prefix, Suffix};
    match (a, b) {
        (Exists(a), Exists(b)) => a != b,
        (Exists(false), OneOf(_) | Prefix(_) | Suffix(_)) => true,
        (OneOf(values), test @ (OneOf(_) | Prefix(_) | Suffix(_))) => {
            !values.iter().any(|value| value_passes(value, test))
        }
        (Prefix(a), Prefix(b)) => !a.starts_with(b.as_str()) && !b.starts_with(a.as_str()),
        (Suffix(a), Suffix(b)) => !a.ends_with(b.as_str()) && !b.ends_with(a.as_str()),
        _ => false,
    }
}

fn implies(a: &AttributeTest, b: &AttributeTest) -> bool {
    use AttributeTest::{Exists, OneOf, Prefix, Suffix};
    match (a, b) {
        (OneOf(_) | Prefix(_) | Suffix(_) | Exists(true), Exists(true))
        | (Exists(false), Exists(false)) => true,
        (OneOf(values), test) => values.iter().all(|value| value_passes(value, test)),
        (Prefix(a), Prefix(b)) => a.starts_with(b.as_str()),
        (Suffix(a), Suffix(b)) => a.ends_with(b.as_str()),
        _ => false,
    }
}

fn value_passes(value: &Scalar, test: &AttributeTest) -> bool {
    match (value, test) {
        (value, AttributeTest::OneOf(values)) => values.contains(value),
        (Scalar::S(text), AttributeTest::Prefix(prefix)) => text.starts_with(prefix.as_str()),
        (Scalar::S(text), AttributeTest::Suffix(suffix)) => text.ends_with(suffix.as_str()),
        (_, AttributeTest::Exists(exists)) => *exists,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AttributeView;
    use proptest::prelude::*;

    fn any_test() -> impl Strategy<Value = AttributeTest> {
        let scalar = prop_oneof![
            "[ab]{0,2}".prop_map(Scalar::S),
            "[12]".prop_map(Scalar::N),
            any::<bool>().prop_map(Scalar::Bool),
        ];
        prop_oneof![
            prop::collection::vec(scalar, 1..3).prop_map(AttributeTest::OneOf),
            any::<bool>().prop_map(AttributeTest::Exists),
            "[ab]{1,2}".prop_map(AttributeTest::Prefix),
            "[ab]{1,2}".prop_map(AttributeTest::Suffix),
        ]
    }

    fn any_conditions() -> impl Strategy<Value = Vec<AttributeCondition>> {
        let condition = ("[xy]", any_test())
            .prop_map(|(attribute, test)| AttributeCondition { attribute, test });
        prop::collection::vec(condition, 0..4)
    }

    fn any_value() -> impl Strategy<Value = Option<Scalar>> {
        prop::option::of(prop_oneof![
            4 => "[ab]{0,4}".prop_map(Scalar::S),
            1 => "[12]".prop_map(Scalar::N),
            1 => any::<bool>().prop_map(Scalar::Bool),
        ])
    }

    fn view(value: Option<&Scalar>) -> Option<AttributeView<'_>> {
        value.map(|value| match value {
            Scalar::S(text) => AttributeView::S(text),
            Scalar::N(number) => AttributeView::N(number),
            Scalar::Bool(value) => AttributeView::Bool(*value),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn what_is_said_of_conditions_holds_for_every_item(
            a in any_conditions(),
            b in any_conditions(),
            x in any_value(),
            y in any_value(),
        ) {
            let satisfies = |conditions: &[AttributeCondition]| {
                conditions.iter().all(|condition| {
                    let value = if condition.attribute == "x" { &x } else { &y };
                    condition.holds(view(value.as_ref()))
                })
            };
            if are_disjoint(&a, &b) {
                prop_assert!(!(satisfies(&a) && satisfies(&b)));
            }
            if implies_all(&a, &b) && satisfies(&a) {
                prop_assert!(satisfies(&b));
            }
        }
    }
}
