//! Plays a history into a lake and looks at it after each step.

use std::collections::BTreeMap;

use crate::history::{History, State, Step};
use crate::lake::{Baseline, Lake, M, Reading, TABLES};

/// Plays a history and checks what a reader finds.
///
/// After every step and for every key:
/// - *Never back.* What a table holds of the key is what it held after the last delivered write of
///   the key, or after a later one. Where writes of the key were lost, this is said of the last
///   delivered write that concerns the table: a lost move leaves a ghost until the next baseline.
/// - *Exact.* If every write to the key since B − 2M was delivered (every write at all, where there
///   is no baseline), it is what the table holds now.
///
/// And at the end, for some instants T (*as of*): what a table held of the key at some instant less
/// than M from T.
///
/// # Errors
/// What was found instead.
pub fn play(history: &History, reading: &Reading) -> Result<(), String> {
    let states: Vec<Vec<State>> = (0..3).map(|key| history.states(key)).collect();
    let mut delivered = vec![false; history.writes.len()];
    let mut lake = Lake::default();
    for (number, step) in history.steps.iter().enumerate() {
        match step {
            Step::Deliver(records) => {
                for record in records {
                    store(history, reading, &mut lake, *record, None);
                    delivered[history.records[*record].write] = true;
                }
            }
            Step::Fail(records, table) => {
                for record in records {
                    store(history, reading, &mut lake, *record, Some(*table));
                }
            }
            Step::Commit(export) => lake.baselines.push(history.exports[*export].clone()),
            Step::Compact(day) => reading.compact(&mut lake, *day),
        }
        check(history, reading, &states, &delivered, &lake)
            .map_err(|found| format!("after step {number} ({step:?}): {found}"))?;
    }
    if history.falls_back || history.writes.iter().any(|write| write.lost) {
        return Ok(());
    }
    let times = history.writes.iter().map(|write| write.at);
    let exports = history.exports.iter().map(|export| export.at);
    for time in times.chain(exports).flat_map(|at| [at, at + M / 3]) {
        check_as_of(history, reading, &states, &lake, time)
            .map_err(|found| format!("as of {time}: {found}"))?;
    }
    Ok(())
}

fn check_as_of(
    history: &History,
    reading: &Reading,
    states: &[Vec<State>],
    lake: &Lake,
    time: i64,
) -> Result<(), String> {
    let found = reading.read(lake, Some(time));
    for (key, states) in states.iter().enumerate() {
        let writes: Vec<i64> = history
            .writes
            .iter()
            .filter(|write| write.key == key)
            .map(|write| write.at)
            .collect();
        // A state holds from its write to the next one.
        let first = writes.iter().filter(|at| **at <= time - M).count();
        let last = writes.iter().filter(|at| **at < time + M).count();
        for table in 0..TABLES {
            let found = found.get(&(table, key)).copied();
            let near = &states[first..=last];
            if !near.iter().any(|state| held(*state, table) == found) {
                return Err(format!(
                    "table {table}, key {key}: {found:?} was read, near that time were {near:?}"
                ));
            }
        }
    }
    Ok(())
}

/// The item that a table holds of a key in this state.
fn held(state: State, table: usize) -> Option<u32> {
    state
        .filter(|(holder, _)| *holder == table)
        .map(|(_, item)| item)
}

fn store(
    history: &History,
    reading: &Reading,
    lake: &mut Lake,
    record: usize,
    only: Option<usize>,
) {
    for (row, tombstone) in &history.records[record].rows {
        if only.is_none_or(|table| table == row.table) && (reading.tombstones || !tombstone) {
            lake.rows.push(row.clone());
        }
    }
}

fn check(
    history: &History,
    reading: &Reading,
    states: &[Vec<State>],
    delivered: &[bool],
    lake: &Lake,
) -> Result<(), String> {
    let found = reading.read(lake, None);
    let baseline = lake.baselines.iter().map(|Baseline { at, .. }| *at).max();
    let mut reached: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut exact = [true; 3];
    for record in &history.records {
        let write = &history.writes[record.write];
        let lossy = history
            .writes
            .iter()
            .any(|other| other.key == write.key && other.lost);
        for table in 0..TABLES {
            let concerned = record.rows.iter().any(|(row, _)| row.table == table);
            if delivered[record.write] && (concerned || !lossy) {
                reached.insert((table, write.key), write.nth);
            }
        }
    }
    for (write, delivered) in history.writes.iter().zip(delivered) {
        if !*delivered && baseline.is_none_or(|at| write.at >= at - 2 * M) {
            exact[write.key] = false;
        }
    }
    for (key, states) in states.iter().enumerate() {
        for table in 0..TABLES {
            let reached = reached.get(&(table, key)).copied().unwrap_or(0);
            let found = found.get(&(table, key)).copied();
            let now = states.last().and_then(|state| held(*state, table));
            if exact[key] && found != now {
                return Err(format!(
                    "table {table}, key {key}: {found:?} was read, {now:?} is right"
                ));
            }
            if !states[reached..]
                .iter()
                .any(|state| held(*state, table) == found)
            {
                return Err(format!(
                    "table {table}, key {key}: {found:?} was read, which is older than what was \
                     delivered"
                ));
            }
        }
    }
    Ok(())
}
