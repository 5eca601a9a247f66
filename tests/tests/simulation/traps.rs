//! The traps of the rule: for each the smallest lake in which a reader that falls into it is wrong.

use std::collections::BTreeMap;

use crate::lake::{self, Baseline, Lake, M, Reading, Row};

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// Four minutes after a midnight, so that B − M is on the day before.
const B: i64 = 1_777_680_000_000 + 240 * SECOND;
const KEY: (usize, usize) = (0, 0);

/// A change of the one key; `None` is a REMOVE.
fn change(seq: u128, at: i64, item: Option<u32>) -> Row {
    Row {
        table: KEY.0,
        key: KEY.1,
        stream: "00001".to_owned(),
        seq: format!("{seq:040}"),
        at,
        item,
    }
}

/// A complete state in which the key holds this item.
fn baseline(at: i64, item: Option<u32>) -> Baseline {
    Baseline {
        at,
        items: item.map(|item| (KEY, item)).into_iter().collect(),
        changed: BTreeMap::new(),
    }
}

fn lake(rows: &[Row], baselines: &[Baseline]) -> Lake {
    Lake {
        rows: rows.to_vec(),
        baselines: baselines.to_vec(),
    }
}

/// What a reader finds, once days before this one have been compacted its way.
fn found(reading: &Reading, lake: &Lake, compacted: Option<i64>) -> BTreeMap<(usize, usize), u32> {
    let mut lake = Lake {
        rows: lake.rows.clone(),
        baselines: lake.baselines.clone(),
    };
    if let Some(day) = compacted {
        reading.compact(&mut lake, day);
    }
    reading.read(&lake, None)
}

fn mutant(name: &str) -> Reading {
    let mut mutants = Reading::mutants().into_iter();
    let found = mutants.find(|mutant| mutant.name == name);
    found.unwrap_or_else(|| panic!("there is no mutant `{name}`"))
}

/// Right readers find `right` of the key, and each of these mutants something else.
#[track_caller]
fn traps(lake: &Lake, compacted: Option<i64>, right: Option<u32>, mutants: &[&str]) {
    let right: BTreeMap<_, _> = right.map(|item| (KEY, item)).into_iter().collect();
    for reading in [Reading::right(lake::reference), Reading::pipeline()] {
        let found = found(&reading, lake, compacted);
        assert_eq!(found, right, "{}", reading.name);
    }
    for name in mutants {
        let found = found(&mutant(name), lake, compacted);
        assert_ne!(found, right, "`{name}` goes unseen");
    }
}

#[test]
fn sequence_numbers_of_other_lengths_are_numbers() {
    let nines = 999_999_999_999_999_999_999;
    let rows = [change(nines, B, Some(1)), change(nines + 1, B, Some(2))];
    let mutants = ["sequence numbers compared as unpadded text"];
    traps(&lake(&rows, &[]), None, Some(2), &mutants);
}

#[test]
fn a_new_stream_begins_its_numbers_anew() {
    let new = Row {
        stream: "00002".to_owned(),
        ..change(1, B, Some(2))
    };
    let rows = [change(900, B, Some(1)), new];
    let mutants = ["sequence numbers compared across streams"];
    traps(&lake(&rows, &[]), None, Some(2), &mutants);
}

#[test]
fn a_row_from_before_a_gap_does_not_beat_the_export_that_repaired_it() {
    let lake = lake(&[change(1, B - HOUR, Some(1))], &[baseline(B, Some(2))]);
    let mutants = ["any stream row beats any baseline"];
    traps(&lake, None, Some(2), &mutants);
}

#[test]
fn a_change_that_the_export_may_not_have_seen_decides_though_dated_before_it() {
    for at in [B - 1, B - 200 * SECOND, B - M] {
        let lake = lake(&[change(1, at, Some(2))], &[baseline(B, Some(1))]);
        traps(&lake, None, Some(2), &["margin 0"]);
    }
    // And no further.
    let past = lake(&[change(1, B - M - 1, Some(1))], &[baseline(B, Some(2))]);
    traps(&past, None, Some(2), &["twice the margin"]);
}

#[test]
fn an_item_whose_delete_was_lost_is_gone_with_the_export_that_has_it_not() {
    let lake = lake(&[change(1, B - HOUR, Some(1))], &[baseline(B, None)]);
    let mutants = [
        "no implicit absence",
        "any stream row beats any baseline",
        "the baseline beats older rows, whatever came since",
    ];
    traps(&lake, None, None, &mutants[..2]);
    // Seen from the other side: deleted since.
    let lake = lake_with_delete();
    traps(&lake, None, None, &mutants[2..]);
}

fn lake_with_delete() -> Lake {
    lake(&[change(1, B + SECOND, None)], &[baseline(B, Some(1))])
}

#[test]
fn the_newest_row_may_be_dated_before_the_row_that_makes_changes_decide() {
    let rows = [
        change(1, B + SECOND, Some(1)),
        change(2, B - M - SECOND, Some(2)),
    ];
    let mutants = [
        "filter by time, then the greatest sequence number",
        "the newest row's own time instead of the greatest",
        "the greatest time wins",
    ];
    let both = lake(&rows, &[baseline(B, Some(3))]);
    traps(&both, None, Some(2), &mutants);
}

#[test]
fn days_are_left_out_one_whole_day_wider_than_the_margin() {
    let rows = [
        change(1, B + SECOND, Some(1)),
        // On the day before that of B − M.
        change(2, B - M - 30 * HOUR, Some(2)),
    ];
    let lake = lake(&rows, &[baseline(B, Some(3))]);
    let mutants = ["a day filter that is not one day wider"];
    traps(&lake, None, Some(2), &mutants);
}

#[test]
fn a_compaction_keeps_the_greatest_time_not_only_the_newest_row() {
    let rows = [
        change(1, B + SECOND, Some(1)),
        change(2, B - M - SECOND, Some(2)),
    ];
    let lake = lake(&rows, &[baseline(B, Some(3))]);
    let tomorrow = (B + DAY).div_euclid(DAY);
    let mutants = ["a compaction that keeps the newest row and forgets the greatest time"];
    traps(&lake, Some(tomorrow), Some(2), &mutants);
}

#[test]
fn the_newest_baseline_counts_not_the_one_committed_last() {
    let lake = lake(&[], &[baseline(B, Some(2)), baseline(B - DAY, Some(1))]);
    let mutants = ["the baseline that was committed last"];
    traps(&lake, None, Some(2), &mutants);
}

/// A pipeline that writes no tombstone leaves that row out.
#[test]
fn an_item_that_moved_is_gone_from_the_table_that_it_left() {
    let arrival = Row {
        table: 1,
        ..change(1, B + SECOND, Some(2))
    };
    let tombstone = change(1, B + SECOND, None);
    let exported = [baseline(B, Some(1))];
    let right: BTreeMap<_, _> = [((1, 0), 2)].into();
    for reading in [Reading::right(lake::reference), Reading::pipeline()] {
        let whole = lake(&[arrival.clone(), tombstone.clone()], &exported);
        assert_eq!(reading.read(&whole, None), right);
    }
    let mutant = mutant("moves without tombstones");
    assert!(!mutant.tombstones);
    let without = mutant.read(&lake(&[arrival], &exported), None);
    assert_ne!(without, right, "the item is in both tables");
}

/// The insert was delivered, the delete was lost, and both lie in one window: the incremental export
/// of that window does not tell of the key at all. Only a complete baseline, rolled forward, says
/// that it is gone.
#[test]
fn a_gap_is_not_repaired_by_an_incremental_export_beside_older_rows() {
    let (from, to) = (B, B + DAY);
    let rows = [change(1, from + HOUR, Some(1))];
    let told = |changed: BTreeMap<_, _>| Baseline {
        changed,
        ..baseline(to, None)
    };
    let mutants = [
        "an incremental export beside unmerged older rows",
        "an incremental export as the baseline of the keys that it tells of",
    ];
    let came_and_went = lake(&rows, &[baseline(from, None), told([].into())]);
    traps(&came_and_went, None, None, &mutants);
    // A key that was there at the beginning is told of, which hides the trap from who tries it so.
    let was_there = lake(
        &rows,
        &[baseline(from, Some(9)), told([(KEY, None)].into())],
    );
    traps(&was_there, None, None, &mutants[..1]);
    let found = found(&mutant(mutants[1]), &was_there, None);
    assert_eq!(found, BTreeMap::new());
}
