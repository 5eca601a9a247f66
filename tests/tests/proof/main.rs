//! The lake equals the table: random operations on a real DynamoDB engine, its stream fed to the real
//! function as AWS may feed it, full exports converted and incremental ones
//! rolled at any time, and then item for item and
//! attribute for attribute the same as a scan.
//!
//! `DYNALAKE_PROOF_SEEDS` says how many seeds are played and `DYNALAKE_PROOF_FIRST_SEED` the first
//! one; `DYNALAKE_PROOF_OPERATIONS` how many operations each has. A seed repeats everything that the
//! table goes through. What it cannot repeat is where in its work a function is when it is killed, and
//! so which deliveries come after it.

mod check;
mod export;
mod lake;
mod model;
mod source;
mod sql;
mod story;
mod values;
mod windows;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dynalake_tests::ministack;

/// Seeds by default; each takes some seconds.
const SEEDS: u64 = 2;
/// Operations per seed by default.
const OPERATIONS: u64 = 600;
/// Seeds that are played at the same time.
const THREADS: usize = 2;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var_os(variable).map_or(default, |value| {
        let text = value.to_str().unwrap_or_default();
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}: `{text}` is not a number"))
    })
}

/// Says how to play a seed again when it has failed.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "seed {seed} failed; repeat it: DYNALAKE_PROOF_SEEDS=1 \
                 DYNALAKE_PROOF_FIRST_SEED={seed} DYNALAKE_PROOF_OPERATIONS={operations} \
                 tests/run --test proof",
                seed = self.0,
                operations = number("DYNALAKE_PROOF_OPERATIONS", OPERATIONS),
            );
        }
    }
}

/// Every fourth seed has its lake in an S3 server, the others on the local disk.
#[test]
fn the_lake_equals_the_table() {
    let Some(server) = ministack() else {
        return;
    };
    let first = number("DYNALAKE_PROOF_FIRST_SEED", 0);
    let end = first + number("DYNALAKE_PROOF_SEEDS", SEEDS);
    let operations = number("DYNALAKE_PROOF_OPERATIONS", OPERATIONS);
    let next = AtomicU64::new(first);
    let told = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let _repeat = Repeat(seed);
                    let story = story::play(server, seed, operations);
                    println!("seed {seed}: {story}");
                    told.lock().unwrap().push(story);
                }
            });
        }
    });
    println!("{} seeds", told.lock().unwrap().len());
}
