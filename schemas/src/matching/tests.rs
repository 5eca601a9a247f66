use proptest::prelude::*;

use super::*;

fn template(text: &str, separator: &str) -> (Template, usize) {
    let mut captures = Vec::new();
    let template = Template::parse(text, separator, &mut captures).unwrap();
    (template, captures.len())
}

fn captured<'k>(text: &str, key: &'k str) -> Option<Vec<Option<&'k str>>> {
    let (template, count) = template(text, "#");
    let mut captures = vec![None; count];
    template.matches(key, &mut captures).then_some(captures)
}

#[test]
fn templates_respect_separators() {
    assert_eq!(captured("sh#{n}", "shp#1"), None);
    assert_eq!(
        captured("EMPLOYEE#{id}", "EMPLOYEE#1"),
        Some(vec![Some("1")])
    );
    assert_eq!(captured("EMPLOYEE#{id}", "EMPLOYEE#1#PAYSLIP#1"), None);
    assert_eq!(
        captured("EMPLOYEE#{id*}", "EMPLOYEE#1#PAYSLIP#1"),
        Some(vec![Some("1#PAYSLIP#1")])
    );
    assert_eq!(
        captured("EMPLOYEE#{id}", "EMPLOYEE#"),
        None,
        "a capture is never empty"
    );
    assert_eq!(captured("#META#", "#META#"), Some(vec![]));
    assert_eq!(
        captured("#METADATA#{p}", "#METADATA#player001"),
        Some(vec![Some("player001")])
    );
    assert_eq!(captured("cus{n}", "cus12"), Some(vec![Some("12")]));
    assert_eq!(
        captured("{x}#follower", "ann#follower"),
        Some(vec![Some("ann")])
    );
    assert_eq!(captured("{x}#follower", "a#b#follower"), None);
    assert_eq!(
        captured("{a}-{b}#{_}", "x-y-z#q"),
        Some(vec![Some("x"), Some("y-z")])
    );
    assert_eq!(
        captured("{a*}-{b}#end", "x-y#q-z#end"),
        Some(vec![Some("x-y#q"), Some("z")])
    );
}

#[test]
fn kinds_restrict_the_text() {
    assert_eq!(captured("shard{n:int}", "shard07"), Some(vec![Some("07")]));
    assert_eq!(captured("shard{n:int}", "shard7a"), None);
    assert_eq!(
        captured("{d:date}T{t}", "2026-11-30T10:00"),
        Some(vec![Some("2026-11-30"), Some("10:00")])
    );
    assert_eq!(captured("{d:date}", "2026-11-3"), None);
    assert_eq!(captured("{d:date}", "2026-11-301"), None);
    assert!(captured("{u:uuid}", "123e4567-e89b-12d3-A456-426614174000").is_some());
    assert!(captured("{u:uuid}", "123e4567-e89b-12d3-A456-42661417400g").is_none());
    assert!(captured("{u:ulid}", "01ARZ3NDEKTSV4RRFFQ69G5FAV").is_some());
    assert!(captured("{u:ulid}", "81ARZ3NDEKTSV4RRFFQ69G5FAV").is_none());
    assert!(captured("{u:ulid}", "01ARZ3NDEKTSV4RRFFQ69G5FAU").is_none());
    assert_eq!(
        captured("{d:date}", "é026-11-3"),
        None,
        "no cut inside a character"
    );
}

#[test]
fn a_capture_in_both_keys_must_be_the_same_text() {
    let mut captures = Vec::new();
    let matcher = Matcher {
        partition_key: vec![
            Template::parse("A{id}", "#", &mut captures).unwrap(),
            Template::parse("{id}", "#", &mut captures).unwrap(),
        ],
        sort_key: vec![Template::parse("M#{id}", "#", &mut captures).unwrap()],
        captures,
        ..Matcher::default()
    };
    let mut found = Vec::new();
    assert!(matcher.matches_keys("A1", Some("M#1"), &mut found));
    assert_eq!(found, [Some("1")]);
    assert!(
        matcher.matches_keys("A1", Some("M#A1"), &mut found),
        "by the other alternative"
    );
    assert_eq!(found, [Some("A1")]);
    assert!(!matcher.matches_keys("A1", Some("M#2"), &mut found));
    assert!(!matcher.matches_keys("A1", None, &mut found));
}

#[test]
fn conditions_compare_type_and_value() {
    let condition = |test| AttributeCondition {
        attribute: "t".to_owned(),
        test,
    };
    let one_of = condition(AttributeTest::OneOf(vec![
        Scalar::S("a".to_owned()),
        Scalar::N("1".to_owned()),
        Scalar::Bool(true),
    ]));
    assert!(one_of.holds(Some(AttributeView::S("a"))));
    assert!(one_of.holds(Some(AttributeView::N("1"))));
    assert!(!one_of.holds(Some(AttributeView::S("1"))));
    assert!(one_of.holds(Some(AttributeView::Bool(true))));
    assert!(!one_of.holds(Some(AttributeView::Other)) && !one_of.holds(None));
    let absent = condition(AttributeTest::Exists(false));
    assert!(absent.holds(None) && !absent.holds(Some(AttributeView::Other)));
    let prefix = condition(AttributeTest::Prefix("ab".to_owned()));
    assert!(prefix.holds(Some(AttributeView::S("abc"))) && !prefix.holds(None));
    let suffix = condition(AttributeTest::Suffix("bc".to_owned()));
    assert!(suffix.holds(Some(AttributeView::S("abc"))));
    assert!(!suffix.holds(Some(AttributeView::N("bc"))));
}

#[test]
fn hostile_keys_do_not_make_matching_slow() {
    let (template, count) = template("{a}-{b}-{c}-{d}-{e}-{f}#x{g}!", "#");
    let key = "-".repeat(2048);
    let mut captures = vec![None; count];
    // Without remembering failures this is some 2048^5 steps.
    assert!(!template.matches(&key, &mut captures));
    assert!(captures.iter().all(Option::is_none));
}

/// All ways to cut the text, shortest captures first; no cleverness.
fn oracle<'k>(template: &Template, segments: &[Segment], text: &'k str) -> Option<Vec<&'k str>> {
    let Some((first, others)) = segments.split_first() else {
        return text.is_empty().then(Vec::new);
    };
    match first {
        Segment::Literal(literal) => oracle(template, others, text.strip_prefix(literal.as_str())?),
        Segment::Capture { kind, .. } => {
            let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
            ends.into_iter().find_map(|end| {
                let (taken, rest) = text.split_at(end);
                let mut captures = oracle(template, others, rest)?;
                fits(template, *kind, taken).then(|| {
                    captures.insert(0, taken);
                    captures
                })
            })
        }
    }
}

fn fits(template: &Template, kind: CaptureKind, text: &str) -> bool {
    match kind {
        CaptureKind::Rest => true,
        CaptureKind::Any => {
            template.separator.is_empty() || !text.contains(template.separator.as_str())
        }
        CaptureKind::Int => text.chars().all(|c| c.is_ascii_digit()),
        CaptureKind::Date => {
            let shape: String = text
                .chars()
                .map(|c| if c.is_ascii_digit() { '9' } else { c })
                .collect();
            shape == "9999-99-99"
        }
        // Not generated.
        CaptureKind::Uuid | CaptureKind::Ulid => false,
    }
}

/// Templates over a small alphabet, so that they meet.
pub(crate) fn any_template() -> impl Strategy<Value = (String, &'static str)> {
    let segment = prop_oneof![
        3 => "[ab1#:é]{1,2}".prop_map(|text| text),
        3 => Just("{}".to_owned()),
        1 => Just("{*}".to_owned()),
        1 => Just("{:int}".to_owned()),
        1 => Just("{:date}".to_owned()),
    ];
    let separator = prop_oneof![4 => Just("#"), 1 => Just(""), 1 => Just("::"), 1 => Just("é")];
    (prop::collection::vec(segment, 1..6), separator).prop_map(|(segments, separator)| {
        let named =
            segments
                .iter()
                .enumerate()
                .map(|(at, segment)| match segment.strip_prefix('{') {
                    Some(rest) => format!("{{c{at}{rest}"),
                    None => segment.clone(),
                });
        (named.collect(), separator)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn matching_equals_trying_all_ways(
        (text, separator) in any_template(),
        key in prop_oneof![
            4 => "[ab1#:é]{0,10}",
            1 => "[ab#]{0,2}2026-11-30[ab#:]{0,3}",
        ],
    ) {
        let mut names = Vec::new();
        let Ok(template) = Template::parse(&text, separator, &mut names) else { return Ok(()) };
        let mut captures = vec![None; names.len()];
        let matched = template.matches(&key, &mut captures);
        match oracle(&template, &template.segments, &key) {
            Some(expected) => {
                prop_assert!(matched, "{} {}", text, key);
                prop_assert_eq!(captures.into_iter().flatten().collect::<Vec<_>>(), expected);
            }
            None => prop_assert!(!matched, "{} {}", text, key),
        }
    }
}
