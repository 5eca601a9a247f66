//! Templates as automata: can two sets of them match one key text, and does one take all that the
//! other takes?
//!
//! The language of a list of templates is the union of theirs; an empty list is every non-empty
//! text. A capture that stands in both keys counts as any text of its kind here, so the automaton
//! may say that texts are possible which are not, never the reverse.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::matching::is_crockford;
use crate::model::{CaptureKind, Segment, Template};

/// Steps of a search before it gives up; far more than templates of real keys need.
const MAX_STATES: usize = 50_000;

/// A nondeterministic automaton over characters.
#[derive(Debug)]
pub(crate) struct Automaton {
    states: Vec<State>,
    start: Vec<usize>,
    accept: usize,
}

#[derive(Debug, Default)]
struct State {
    edges: Vec<(Class, usize)>,
    /// Ways on without a character.
    free: Vec<usize>,
}

/// A class of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Class {
    Is(char),
    NoneOf(Vec<char>),
    Digit,
    Octal,
    Hex,
    Crockford,
}

impl Class {
    fn holds(&self, character: char) -> bool {
        match self {
            Self::Is(wanted) => *wanted == character,
            Self::NoneOf(unwanted) => !unwanted.contains(&character),
            Self::Digit => character.is_ascii_digit(),
            Self::Octal => matches!(character, '0'..='7'),
            Self::Hex => character.is_ascii_hexdigit(),
            Self::Crockford => u8::try_from(character).is_ok_and(is_crockford),
        }
    }
}

impl Automaton {
    /// The automaton of alternatives.
    pub(crate) fn new(templates: &[Template]) -> Self {
        let mut automaton = Self {
            states: vec![State::default()],
            start: Vec::new(),
            accept: 0,
        };
        if templates.is_empty() {
            let any = automaton.capture(CaptureKind::Rest, "", 0);
            automaton.start.push(any);
        }
        for template in templates {
            let mut entry = automaton.accept;
            for segment in template.segments.iter().rev() {
                entry = match segment {
                    Segment::Literal(text) => text.chars().rev().fold(entry, |next, character| {
                        automaton.step(Class::Is(character), next)
                    }),
                    Segment::Capture { kind, .. } => {
                        automaton.capture(*kind, &template.separator, entry)
                    }
                };
            }
            automaton.start.push(entry);
        }
        automaton
    }

    fn add(&mut self, state: State) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    fn step(&mut self, class: Class, next: usize) -> usize {
        self.add(State {
            edges: vec![(class, next)],
            free: Vec::new(),
        })
    }

    /// A capture that goes on to `next`; gives its entry.
    fn capture(&mut self, kind: CaptureKind, separator: &str, next: usize) -> usize {
        match kind {
            CaptureKind::Rest => self.repeat(Class::NoneOf(Vec::new()), next),
            CaptureKind::Int => self.repeat(Class::Digit, next),
            CaptureKind::Any => self.without(&separator.chars().collect::<Vec<_>>(), next),
            CaptureKind::Date => self.shape("dddd-dd-dd", next),
            CaptureKind::Uuid => self.shape("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", next),
            CaptureKind::Ulid => self.shape("occccccccccccccccccccccccc", next),
        }
    }

    fn shape(&mut self, shape: &str, next: usize) -> usize {
        shape.chars().rev().fold(next, |next, character| {
            let class = match character {
                'd' => Class::Digit,
                'h' => Class::Hex,
                'o' => Class::Octal,
                'c' => Class::Crockford,
                other => Class::Is(other),
            };
            self.step(class, next)
        })
    }

    /// One or more of a class.
    fn repeat(&mut self, class: Class, next: usize) -> usize {
        let again = self.add(State {
            edges: Vec::new(),
            free: vec![next],
        });
        if let Some(state) = self.states.get_mut(again) {
            state.edges.push((class.clone(), again));
        }
        self.step(class, again)
    }

    /// One or more characters that do not hold the separator: one state for every number of its
    /// characters that have just been seen.
    fn without(&mut self, separator: &[char], next: usize) -> usize {
        if separator.is_empty() {
            return self.repeat(Class::NoneOf(Vec::new()), next);
        }
        let first = self.states.len();
        for _ in separator {
            self.add(State {
                edges: Vec::new(),
                free: vec![next],
            });
        }
        let mut distinct: Vec<char> = separator.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        for seen in 0..separator.len() {
            let mut edges = vec![(Class::NoneOf(distinct.clone()), first)];
            for &character in &distinct {
                let now = longest_seen(separator, seen, character);
                if now < separator.len() {
                    edges.push((Class::Is(character), first + now));
                }
            }
            if let Some(state) = self.states.get_mut(first + seen) {
                state.edges = edges;
            }
        }
        let edges = self
            .states
            .get(first)
            .map(|state| state.edges.clone())
            .unwrap_or_default();
        self.add(State {
            edges,
            free: Vec::new(),
        })
    }

    /// The states and all that can be reached from them without a character.
    fn closure(&self, states: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut closed = BTreeSet::new();
        let mut open: Vec<usize> = states.into_iter().collect();
        while let Some(state) = open.pop() {
            if closed.insert(state) {
                open.extend(self.free(state));
            }
        }
        closed
    }

    fn free(&self, state: usize) -> &[usize] {
        self.states
            .get(state)
            .map_or(&[], |state| state.free.as_slice())
    }

    fn next(&self, state: usize, character: char) -> impl Iterator<Item = usize> {
        let edges = self
            .states
            .get(state)
            .map_or(&[][..], |state| state.edges.as_slice());
        edges
            .iter()
            .filter(move |(class, _)| class.holds(character))
            .map(|(_, next)| *next)
    }

    /// Characters that some edge singles out.
    fn named_characters(&self, into: &mut BTreeSet<char>) {
        for (class, _) in self.states.iter().flat_map(|state| &state.edges) {
            match class {
                Class::Is(character) => {
                    into.insert(*character);
                }
                Class::NoneOf(characters) => into.extend(characters),
                _ => {}
            }
        }
    }
}

/// How many characters of the separator have been seen after one more.
fn longest_seen(separator: &[char], seen: usize, character: char) -> usize {
    let mut text: Vec<char> = separator.iter().take(seen).copied().collect();
    text.push(character);
    (0..=text.len().min(separator.len()))
        .rev()
        .find(|&length| text.ends_with(separator.get(..length).unwrap_or_default()))
        .unwrap_or_default()
}

/// One character of every kind that either automaton can tell from the others, readable ones first.
fn alphabet(a: &Automaton, b: &Automaton) -> Vec<char> {
    let mut named = BTreeSet::new();
    a.named_characters(&mut named);
    b.named_characters(&mut named);
    let crockford = |c: &char| u8::try_from(*c).is_ok_and(is_crockford);
    let classes: [Box<dyn Iterator<Item = char>>; 6] = [
        Box::new('0'..='7'),
        Box::new('8'..='9'),
        Box::new(('a'..='f').chain('A'..='F')),
        Box::new(('g'..='z').chain('G'..='Z').filter(crockford)),
        Box::new("uUlLoOiI_.:/|~".chars()),
        Box::new('\u{a1}'..='\u{ffff}'),
    ];
    let mut alphabet: Vec<char> = classes
        .into_iter()
        .filter_map(|mut class| class.find(|character| !named.contains(character)))
        .collect();
    alphabet.extend(named);
    alphabet
}

/// A state of each automaton.
type Pair = (usize, usize);

/// How a search came to a pair: from which one, by which character.
type Origins = HashMap<Pair, Option<(Pair, char)>>;

/// A shortest text that both match; `None` if there is none.
pub(crate) fn common_text(a: &Automaton, b: &Automaton) -> Option<String> {
    let alphabet = alphabet(a, b);
    let mut from: Origins = HashMap::new();
    let mut open = VecDeque::new();
    let closed = |left: Vec<usize>, right: Vec<usize>| {
        let right = b.closure(right);
        a.closure(left)
            .into_iter()
            .flat_map(move |left| right.clone().into_iter().map(move |right| (left, right)))
    };
    for pair in closed(a.start.clone(), b.start.clone()) {
        from.insert(pair, None);
        open.push_back(pair);
    }
    while let Some(pair) = open.pop_front() {
        if pair == (a.accept, b.accept) {
            return Some(spell(&from, pair));
        }
        for &character in &alphabet {
            let left: Vec<usize> = a.next(pair.0, character).collect();
            let right: Vec<usize> = b.next(pair.1, character).collect();
            if left.is_empty() || right.is_empty() {
                continue;
            }
            for next in closed(left, right) {
                if let Entry::Vacant(slot) = from.entry(next) {
                    slot.insert(Some((pair, character)));
                    open.push_back(next);
                }
            }
        }
    }
    None
}

fn spell(from: &Origins, mut pair: Pair) -> String {
    let mut reversed = Vec::new();
    while let Some(Some((before, character))) = from.get(&pair) {
        reversed.push(*character);
        pair = *before;
    }
    reversed.iter().rev().collect()
}

/// Whether every text that `a` matches is matched by `b`. `false` also when that is too hard to
/// tell.
pub(crate) fn is_within(a: &Automaton, b: &Automaton) -> bool {
    let alphabet = alphabet(a, b);
    let mut known: HashSet<(usize, BTreeSet<usize>)> = HashSet::new();
    let mut open = Vec::new();
    let start = b.closure(b.start.iter().copied());
    for state in a.closure(a.start.iter().copied()) {
        open.push((state, start.clone()));
    }
    while let Some((state, others)) = open.pop() {
        if state == a.accept && !others.contains(&b.accept) {
            return false;
        }
        if !known.insert((state, others.clone())) {
            continue;
        }
        if known.len() > MAX_STATES {
            return false;
        }
        for &character in &alphabet {
            let next = a.closure(a.next(state, character));
            if next.is_empty() {
                continue;
            }
            let others = b.closure(others.iter().flat_map(|&other| b.next(other, character)));
            open.extend(next.into_iter().map(|state| (state, others.clone())));
        }
    }
    true
}
