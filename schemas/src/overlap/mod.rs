//! Which entities could take one item, and which of them does: the matching order.
//!
//! Two entities overlap if some partition key text, some sort key text and some attributes satisfy
//! both. Then one of them must come first:
//! 1. the one of higher `priority`;
//! 2. at equal priority, the one with more literal key parts;
//! 3. with equally many, the one whose keys and conditions are strictly narrower: every item of it
//!    satisfies the other's too, but not the reverse.
//!
//! Otherwise the schema is ambiguous, which is an error. So is an entity that never comes into play
//! because an earlier one takes all of its items.

mod automaton;
mod conditions;

use std::cmp::Ordering;

use automaton::{Automaton, common_text, is_within};
use conditions::{are_disjoint, implies_all};

use crate::load::LoadedEntity;
use crate::model::{Matcher, Source, Template};
use crate::problem::Problems;

/// Puts entities into matching order and reports those that cannot be told apart.
pub(crate) fn put_in_order(
    loaded: &mut Vec<LoadedEntity>,
    source: Option<&Source>,
    problems: &mut Problems,
) {
    let keys: Vec<Keys> = loaded
        .iter()
        .map(|loaded| Keys::new(&loaded.entity.matcher))
        .collect();
    let count = loaded.len();
    // precedes[a][b]: where both could take an item, a does.
    let mut precedes = vec![vec![false; count]; count];
    for (a, left) in loaded.iter().enumerate() {
        for (b, right) in loaded.iter().enumerate().skip(a + 1) {
            let (Some(left_keys), Some(right_keys)) = (keys.get(a), keys.get(b)) else {
                continue;
            };
            // What could not be read takes nothing; that is a problem already.
            if !left.matcher_is_whole || !right.matcher_is_whole {
                continue;
            }
            let (one, other) = (&left.entity.matcher, &right.entity.matcher);
            let Some(example) = overlap(one, left_keys, other, right_keys) else {
                continue;
            };
            let order = compare(one, left_keys, other, right_keys);
            let (first, second) = match order {
                Some(Ordering::Less) => (a, b),
                Some(_) => (b, a),
                None => {
                    ambiguous(left, right, &example, source, problems);
                    continue;
                }
            };
            if let Some(cell) = precedes.get_mut(first).and_then(|row| row.get_mut(second)) {
                *cell = true;
            }
            if let (Some(first), Some(first_keys), Some(second), Some(second_keys)) = (
                loaded.get(first),
                keys.get(first),
                loaded.get(second),
                keys.get(second),
            ) && takes_all(first, first_keys, second, second_keys)
            {
                never(second, first, problems);
            }
        }
    }
    reorder(loaded, &precedes);
}

/// The key conditions of an entity as automata.
struct Keys {
    partition_key: Automaton,
    sort_key: Automaton,
    literal_parts: usize,
    /// Some capture stands in both keys, so that not every pair of texts goes together.
    is_bound: bool,
}

impl Keys {
    fn new(matcher: &Matcher) -> Self {
        let literal_parts = |templates: &[Template]| {
            templates
                .iter()
                .map(Template::literal_parts)
                .min()
                .unwrap_or_default()
        };
        let in_both = (0..matcher.captures.len()).any(|index| {
            [&matcher.partition_key, &matcher.sort_key]
                .iter()
                .all(|templates| templates.iter().any(|template| template.captures(index)))
        });
        Self {
            partition_key: Automaton::new(&matcher.partition_key),
            sort_key: Automaton::new(&matcher.sort_key),
            literal_parts: literal_parts(&matcher.partition_key) + literal_parts(&matcher.sort_key),
            is_bound: in_both,
        }
    }
}

/// Example keys that both could take.
struct Example {
    partition_key: String,
    sort_key: String,
}

fn overlap(a: &Matcher, a_keys: &Keys, b: &Matcher, b_keys: &Keys) -> Option<Example> {
    if are_disjoint(&a.attributes, &b.attributes)
        || begin_apart(&a.partition_key, &b.partition_key)
        || begin_apart(&a.sort_key, &b.sort_key)
    {
        return None;
    }
    Some(Example {
        partition_key: common_text(&a_keys.partition_key, &b_keys.partition_key)?,
        sort_key: common_text(&a_keys.sort_key, &b_keys.sort_key)?,
    })
}

/// Whether the first literals already tell all alternatives apart: what most entities differ in,
/// without a search.
fn begin_apart(a: &[Template], b: &[Template]) -> bool {
    let meet = |one: &str, other: &str| one.starts_with(other) || other.starts_with(one);
    !a.is_empty()
        && !b.is_empty()
        && !a.iter().any(|one| {
            b.iter()
                .any(|other| meet(one.beginning(), other.beginning()))
        })
}

/// Which of two overlapping entities comes first; `None` if neither is strictly more specific.
fn compare(a: &Matcher, a_keys: &Keys, b: &Matcher, b_keys: &Keys) -> Option<Ordering> {
    let by_rank = b
        .priority
        .cmp(&a.priority)
        .then_with(|| b_keys.literal_parts.cmp(&a_keys.literal_parts));
    if by_rank != Ordering::Equal {
        return Some(by_rank);
    }
    match (
        narrower(a, a_keys, b, b_keys),
        narrower(b, b_keys, a, a_keys),
    ) {
        (true, false) => Some(Ordering::Less),
        (false, true) => Some(Ordering::Greater),
        _ => None,
    }
}

/// Whether every item of `a` satisfies `b` too.
fn narrower(a: &Matcher, a_keys: &Keys, b: &Matcher, b_keys: &Keys) -> bool {
    implies_all(&a.attributes, &b.attributes) && keys_within(a, a_keys, b, b_keys)
}

fn keys_within(a: &Matcher, a_keys: &Keys, b: &Matcher, b_keys: &Keys) -> bool {
    if b_keys.is_bound {
        // What the automata cannot tell: which texts go together.
        return a.partition_key == b.partition_key && a.sort_key == b.sort_key;
    }
    is_within(&a_keys.partition_key, &b_keys.partition_key)
        && is_within(&a_keys.sort_key, &b_keys.sort_key)
}

fn takes_all(
    first: &LoadedEntity,
    first_keys: &Keys,
    second: &LoadedEntity,
    second_keys: &Keys,
) -> bool {
    narrower(
        &second.entity.matcher,
        second_keys,
        &first.entity.matcher,
        first_keys,
    )
}

fn ambiguous(
    a: &LoadedEntity,
    b: &LoadedEntity,
    example: &Example,
    source: Option<&Source>,
    problems: &mut Problems,
) {
    let mut keys = Vec::new();
    if let Some(source) = source {
        keys.push(format!(
            "{} = `{}`",
            source.partition_key.name, example.partition_key
        ));
        if let Some(sort_key) = &source.sort_key {
            keys.push(format!("{} = `{}`", sort_key.name, example.sort_key));
        }
    }
    problems.error(
        &b.places.matching,
        format!(
            "entities `{}` and `{}` could both take one item (such as {}), and neither is strictly \
             more specific",
            a.entity.name,
            b.entity.name,
            keys.join(", ")
        ),
        "tell them apart with literal key text or an attribute (`attributes = { EntityType = \
         \"…\" }`), or say with `priority = 1` in [match] which one wins",
    );
}

fn never(loser: &LoadedEntity, winner: &LoadedEntity, problems: &mut Problems) {
    problems.error(
        &loser.places.matching,
        format!(
            "entity `{}` never gets an item: `{}` comes first and takes all of them",
            loser.entity.name, winner.entity.name
        ),
        format!(
            "make `{}` narrower, or give `{}` a higher `priority` in [match]",
            winner.entity.name, loser.entity.name
        ),
    );
}

/// Keeps the order of the files as far as `precedes` leaves it open.
fn reorder(loaded: &mut Vec<LoadedEntity>, precedes: &[Vec<bool>]) {
    let mut left: Vec<(usize, LoadedEntity)> = loaded.drain(..).enumerate().collect();
    while !left.is_empty() {
        let free = left.iter().position(|(candidate, _)| {
            !left.iter().any(|(other, _)| {
                precedes
                    .get(*other)
                    .and_then(|row| row.get(*candidate))
                    .copied()
                    == Some(true)
            })
        });
        // Rank and inclusion have no circles, so that there always is a free one.
        loaded.push(left.remove(free.unwrap_or_default()).1);
    }
}

#[cfg(test)]
mod tests;
