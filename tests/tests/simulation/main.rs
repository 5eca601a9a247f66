//! The rule for the current state (design: "baseline plus changes") against tens of thousands of
//! short random histories, without processes: writes, a stream that repeats, fails, reorders shards
//! and loses records, clocks that differ by up to half the margin either way, times in whole seconds
//! that do not rise with sequence numbers, exports converted before, during and after newer changes.
//!
//! Right readings must survive all of them; each broken one must be caught by some. `traps` has the
//! smallest lake of each known way to break the rule.
//! `DYNALAKE_SIMULATION_SEEDS` and `DYNALAKE_SIMULATION_FIRST_SEED` choose which histories are played.

mod history;
mod lake;
mod play;
mod traps;

use history::History;
use lake::Reading;

/// Histories that are played by default.
const SEEDS: u64 = 40_000;
/// Each mutant must fail within so many.
const PATIENCE: u64 = 20_000;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var_os(variable).map_or(default, |value| {
        let text = value.to_str().unwrap_or_default();
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}: `{text}` is not a number"))
    })
}

fn survives(reading: &Reading) {
    let first = number("DYNALAKE_SIMULATION_FIRST_SEED", 0);
    let seeds = number("DYNALAKE_SIMULATION_SEEDS", SEEDS);
    for seed in first..first + seeds {
        let history = History::new(seed);
        if let Err(found) = play::play(&history, reading) {
            panic!(
                "{}, history {seed}: {found}\n{history}\nrepeat it: \
                 DYNALAKE_SIMULATION_FIRST_SEED={seed} DYNALAKE_SIMULATION_SEEDS=1 \
                 cargo test -p dynalake-tests --test simulation",
                reading.name
            );
        }
    }
}

#[test]
fn the_rule_as_written_down_survives_every_history() {
    survives(&Reading::right(lake::reference));
}

#[test]
fn the_pipelines_rule_on_the_days_that_it_reads_survives_every_history() {
    survives(&Reading::pipeline());
}

#[test]
fn a_baseline_rolled_forward_by_every_window_is_the_full_export_of_its_end() {
    let (mut windows, mut told_by_a_missing_one) = (0, 0);
    for seed in 0..SEEDS / 4 {
        let history = History::new(seed);
        let Some(first) = history.exports.first() else {
            continue;
        };
        let mut rolled = first.items.clone();
        for export in &history.exports[1..] {
            let before = rolled.clone();
            for (key, item) in &export.changed {
                match item {
                    Some(item) => rolled.insert(*key, *item),
                    None => rolled.remove(key),
                };
            }
            assert_eq!(rolled, export.items, "history {seed}\n{history}");
            windows += 1;
            told_by_a_missing_one += usize::from(before != export.items);
        }
    }
    assert!(windows > 1_000 && told_by_a_missing_one > windows / 4);
}

#[test]
fn every_mutant_of_the_rule_is_caught() {
    let mut missed = Vec::new();
    for mutant in Reading::mutants() {
        let caught = (0..PATIENCE).find(|seed| play::play(&History::new(*seed), &mutant).is_err());
        match caught {
            Some(seed) => println!("{}: caught by history {seed}", mutant.name),
            None => missed.push(mutant.name),
        }
    }
    assert!(
        missed.is_empty(),
        "not caught by {PATIENCE} histories: {missed:?}"
    );
}
