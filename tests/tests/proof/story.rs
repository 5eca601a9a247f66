//! One seed: what happens, in which order.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use dynalake_pipeline::baseline::{self, RETAIN_GRACE_MS, Retention, retain, unlock};
use dynalake_pipeline::compact::{CompactOptions, Unwatched, compact};
use dynalake_pipeline::layout::day_of;
use dynalake_tests::{MiniStack, Random};
use tokio::runtime::Runtime;

use crate::check;
use crate::export::Export;
use crate::lake::Lake;
use crate::model::Model;
use crate::source::Source;
use crate::sql;
use crate::windows::Windows;

/// What came of a seed.
#[derive(Debug, Default)]
pub struct Story {
    s3: bool,
    operations: usize,
    told: usize,
    lost: usize,
    shards: usize,
    succeeded: usize,
    failed: usize,
    baselines: usize,
    rolled: usize,
    dropped: usize,
    compactions: usize,
    comparisons: usize,
    audits: usize,
    seconds: f32,
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} operations, {} records and {} lost in {} shards, {} invocations and {} failed, \
             {} baselines, {} rolled and {} dropped, {} compactions, {} comparisons, {} audits, {:.1} s",
            if self.s3 { "S3" } else { "local" },
            self.operations,
            self.told,
            self.lost,
            self.shards,
            self.succeeded,
            self.failed,
            self.baselines,
            self.rolled,
            self.dropped,
            self.compactions,
            self.comparisons,
            self.audits,
            self.seconds
        )
    }
}

/// Plays a seed.
pub fn play(server: &MiniStack, seed: u64, operations: u64) -> Story {
    let began = Instant::now();
    let mut random = Random::new(seed);
    // Of its own: when a kill strikes changes what is drawn here, but not what the table goes through.
    let mut delivery = random.fork("delivery");
    let s3 = seed % 4 == 3;
    let functions = 1 + random.below(3);
    let Some(mut lake) = Lake::new(s3, functions) else {
        return Story::default();
    };
    let table = server.table(&format!("proof-{seed}"));
    let mut source = Source::new(table, seed, &mut random);
    let mut model = Model::new(Arc::clone(&lake.catalog), &mut random);
    let runtime = Runtime::new().unwrap();
    let mut exports: Vec<Export> = Vec::new();
    let mut windows = Windows::default();
    let mut story = Story {
        s3,
        ..Story::default()
    };
    let mut gap_was = false;
    for _ in 0..operations {
        source.wait(&mut random);
        let operation = model.next(&mut random);
        source.apply(&mut model, &operation, &mut random);
        match random.below(1_000) {
            0..=79 => lake.deliver(&mut source, &mut delivery),
            80..=89 => exports.push(Export::take(&mut source, &lake, &mut random)),
            90..=104 if !exports.is_empty() => {
                let export = exports.swap_remove(random.below(exports.len()));
                export.commit(&lake, source.now, &runtime, &mut random);
                story.baselines += 1;
            }
            105..=107 => source.split(&mut random),
            108 if !source.losing => source.losing = true,
            109..=128 if source.losing => {
                source.losing = false;
                gap_was = true;
                if random.chance(30) {
                    source.begin_stream(&mut random);
                }
            }
            129..=130 if gap_was => {
                exports.push(Export::take_after_gap(&mut source, &lake, &mut random));
            }
            131..=132 => {
                drain(&mut lake, &mut source, &mut delivery);
                story.compare(&mut source, &lake, &runtime);
            }
            133..=140 => {
                compact_changes(&lake, &source, &mut random, &runtime);
                story.compactions += 1;
            }
            141..=143 => story.dropped += retain_baselines(&lake, &source, &mut random, &runtime),
            144..=155 => windows.take(&mut source, &lake, &mut random),
            156..=163 => {
                let rolled = windows.roll(&lake, source.now, &runtime, &mut random);
                story.rolled += usize::from(rolled);
            }
            _ => {}
        }
    }
    source.losing = false;
    if source.last_lost.is_some() {
        exports.push(Export::take_after_gap(&mut source, &lake, &mut random));
    }
    // The last exports are converted before, during and after the delivery of newer changes.
    for _ in 0..operations / 20 {
        source.wait(&mut random);
        let operation = model.next(&mut random);
        source.apply(&mut model, &operation, &mut random);
        if random.chance(8) {
            lake.deliver(&mut source, &mut delivery);
        }
    }
    random.shuffle(&mut exports);
    while let Some(export) = exports.pop() {
        for _ in 0..random.below(4) {
            lake.deliver(&mut source, &mut delivery);
        }
        export.commit(&lake, source.now, &runtime, &mut random);
        story.baselines += 1;
    }
    // The newest baseline may be a rolled one.
    for _ in 0..random.below(3) {
        windows.take(&mut source, &lake, &mut random);
        let rolled = windows.roll(&lake, source.now, &runtime, &mut random);
        story.rolled += usize::from(rolled);
    }
    drain(&mut lake, &mut source, &mut delivery);
    let before = story.comparisons;
    story.compare(&mut source, &lake, &runtime);
    assert_eq!(story.comparisons, before + 1, "the end is exact");
    check::nothing_is_lost_or_made_up(&source, &lake, &runtime);
    sql::views_equal_rust(&source, &lake, &runtime);
    Story {
        operations: source.operations,
        told: source.told,
        lost: source.lost,
        shards: source.shards.len(),
        succeeded: lake.succeeded,
        failed: lake.failed,
        seconds: began.elapsed().as_secs_f32(),
        ..story
    }
}

/// Compacts all days, today's too, so that more arrives for days that are compacted already; stopped
/// anywhere now and then, with inputs deleted as early as may be or a day later.
fn compact_changes(lake: &Lake, source: &Source, random: &mut Random, runtime: &Runtime) {
    let options = CompactOptions {
        before: day_of(source.now) + 1,
        target_bytes: 1 << 20,
        grace_ms: if random.chance(50) {
            0
        } else {
            CompactOptions::GRACE_MS
        },
        memory_bytes: 16 << 20,
        spool: Some(lake.folder.path().to_owned()),
        ..CompactOptions::at(source.now)
    };
    let stopped = random.chance(30);
    let store = if stopped {
        lake.store
            .stopping_after(u64::try_from(random.below(40)).unwrap())
    } else {
        lake.store.clone()
    };
    let outcome = runtime.block_on(Box::pin(compact(
        &store,
        &lake.catalog,
        &options,
        &Unwatched,
    )));
    match outcome {
        Err(error) if !stopped => panic!("the compaction failed: {error}"),
        _ => {}
    }
}

/// Removes old baselines, now and then only in part; the rest goes with the next removal. Gives how many
/// were there and are not.
fn retain_baselines(lake: &Lake, source: &Source, random: &mut Random, runtime: &Runtime) -> usize {
    let list = || runtime.block_on(Box::pin(baseline::list(&lake.store)));
    let before = list().unwrap();
    let stopped = random.chance(30);
    let store = if stopped {
        lake.store
            .stopping_after(u64::try_from(random.below(20)).unwrap())
    } else {
        lake.store.clone()
    };
    // No query runs.
    let now = source.now + RETAIN_GRACE_MS + 1;
    let newest = Retention::Newest(1 + random.below(2));
    let outcome = runtime.block_on(Box::pin(retain(&store, newest, "proof", now)));
    match outcome {
        Err(error) if !stopped => panic!("old baselines could not be removed: {error}"),
        // Somebody sees that the process is dead.
        Err(_) => _ = runtime.block_on(Box::pin(unlock(&lake.store))).unwrap(),
        Ok(_) => {}
    }
    let after = list().unwrap();
    assert_eq!(before.last(), after.last(), "the current one stays");
    before.len() - after.len()
}

fn drain(lake: &mut Lake, source: &mut Source, random: &mut Random) {
    while !source.readable().is_empty() {
        lake.deliver(source, random);
    }
}

impl Story {
    /// Compares lake and table, if they must be the same at this moment.
    fn compare(&mut self, source: &mut Source, lake: &Lake, runtime: &Runtime) {
        if check::must_be_exact(source, lake, runtime) {
            check::rows_equal_the_table(source, lake, runtime);
            self.comparisons += 1;
            self.audits += usize::from(check::audit_finds_nothing(source, lake, runtime));
        }
    }
}
