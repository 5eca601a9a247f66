use proptest::prelude::*;

use super::automaton::{Automaton, common_text, is_within};
use crate::matching::tests::any_template;
use crate::model::Template;

fn templates(texts: &[&str]) -> Vec<Template> {
    texts
        .iter()
        .map(|text| Template::parse(text, "#", &mut Vec::new()).unwrap())
        .collect()
}

fn common(a: &[&str], b: &[&str]) -> Option<String> {
    common_text(
        &Automaton::new(&templates(a)),
        &Automaton::new(&templates(b)),
    )
}

fn within(a: &[&str], b: &[&str]) -> bool {
    is_within(
        &Automaton::new(&templates(a)),
        &Automaton::new(&templates(b)),
    )
}

#[test]
fn templates_that_can_match_one_text_are_found_with_an_example() {
    assert_eq!(common(&["USER#{id}"], &["ORDER#{id}"]), None);
    assert_eq!(common(&["sh#{id}"], &["shp#{id}"]), None);
    assert_eq!(
        common(&["EMPLOYEE#{id}"], &["EMPLOYEE#{id}#PAYSLIP#{n}"]),
        None
    );
    assert_eq!(common(&["A#{id}"], &["{x}#B"]).as_deref(), Some("A#B"));
    assert_eq!(common(&["METADATA"], &["{x}"]).as_deref(), Some("METADATA"));
    assert_eq!(
        common(&["A", "B#{n:int}"], &["B#{x}"]).as_deref(),
        Some("B#0")
    );
    assert_eq!(common(&["{d:date}"], &["{n:int}"]), None);
    assert_eq!(
        common(&["{d:date}"], &["2026-{x}"]).as_deref(),
        Some("2026-11-11")
    );
    assert_eq!(common(&["{u:uuid}"], &["{u:ulid}"]), None);
    assert_eq!(common(&["é{x}"], &["{y}ü"]).as_deref(), Some("éü"));
    assert_eq!(common(&[], &["A"]).as_deref(), Some("A"));
}

#[test]
fn narrower_templates_are_recognised() {
    assert!(within(&["A#{x}"], &["A#{x*}"]) && !within(&["A#{x*}"], &["A#{x}"]));
    assert!(within(&["A#{n:int}"], &["A#{x}"]) && !within(&["A#{x}"], &["A#{n:int}"]));
    assert!(within(&["A#{x}"], &[]) && !within(&[], &["A#{x}"]));
    assert!(within(&["A", "B"], &["A", "B", "C"]) && !within(&["A", "D"], &["A", "B"]));
    assert!(within(&["{u:uuid}"], &["{x}"]) && within(&["{d:date}"], &["{y}-{m}-{d}"]));
    assert!(within(&["cus{n}"], &["{x}"]) && within(&["#META#"], &["#{x}#"]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn automata_agree_with_matching(
        (a, a_separator) in any_template(),
        (b, b_separator) in any_template(),
        keys in prop::collection::vec("[ab1#:é]{1,6}", 64),
    ) {
        let (Ok(a), Ok(b)) = (
            Template::parse(&a, a_separator, &mut Vec::new()),
            Template::parse(&b, b_separator, &mut Vec::new()),
        ) else { return Ok(()) };
        let matches = |template: &Template, key: &str| template.matches(key, &mut [None; 8]);
        let left = Automaton::new(std::slice::from_ref(&a));
        let right = Automaton::new(std::slice::from_ref(&b));
        match common_text(&left, &right) {
            Some(example) => {
                prop_assert!(matches(&a, &example), "{:?} {}", a, example);
                prop_assert!(matches(&b, &example), "{:?} {}", b, example);
            }
            None => for key in &keys {
                prop_assert!(!(matches(&a, key) && matches(&b, key)), "{}", key);
            }
        }
        if is_within(&left, &right) {
            for key in &keys {
                prop_assert!(!matches(&a, key) || matches(&b, key), "{}", key);
            }
        }
    }
}
