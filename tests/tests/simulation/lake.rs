//! A lake in memory, and the ways to read it: the right one, and wrong ones that each break one part
//! of the rule.

use std::collections::{BTreeMap, BTreeSet};

use dynalake_pipeline::current::rule::{self, KeyChanges, MARGIN_MS};

/// The margin: clocks may differ by half of it either way.
pub const M: i64 = MARGIN_MS;
const DAY: i64 = 86_400_000;

/// Lake tables: one entity each.
pub const TABLES: usize = 2;

/// A change row of one table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Lake table.
    pub table: usize,
    /// `_pk` and `_sk`.
    pub key: usize,
    /// `_stream`.
    pub stream: String,
    /// `_seq`: 40 digits.
    pub seq: String,
    /// `_at`.
    pub at: i64,
    /// The item's number; `None` for a REMOVE.
    pub item: Option<u32>,
}

/// A full export as rows.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Export time.
    pub at: i64,
    /// Items by table and key.
    pub items: BTreeMap<(usize, usize), u32>,
    /// Keys with a write between the export before this one and this one: what an incremental
    /// export tells of, with what they were in the end. A key that came and went is not told of.
    pub changed: BTreeMap<(usize, usize), Option<u32>>,
}

/// What is stored.
#[derive(Debug, Default)]
pub struct Lake {
    /// Change rows, duplicates included.
    pub rows: Vec<Row>,
    /// Committed baselines in the order of their commits.
    pub baselines: Vec<Baseline>,
}

/// What the baseline says of a key.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// Export time.
    pub at: i64,
    /// The item; `None` where the baseline has none.
    pub item: Option<u32>,
}

/// A way to keep and to read the lake.
pub struct Reading {
    /// Name.
    pub name: &'static str,
    /// State of a key from its change rows and the baseline.
    pub state: fn(&[&Row], Option<Told>) -> Option<u32>,
    /// Which day's rows a reader looks at, given the baseline's time.
    pub first_day: fn(i64) -> i64,
    /// Rows of closed days before and after their compaction.
    pub compact: fn(Vec<Row>) -> Vec<Row>,
    /// The baseline that counts.
    pub baseline: for<'a> fn(&[&'a Baseline]) -> Option<&'a Baseline>,
    /// Whether an item that changes its entity leaves a tombstone in the table it left.
    pub tombstones: bool,
    /// What is made of exports after the first one.
    pub later: Later,
}

/// What is made of exports after the first one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Later {
    /// Each is a complete state, be it a full export or one rolled forward: right.
    Complete,
    /// What an incremental export tells of a key counts as a change older than any of the stream's.
    Beside,
    /// What an incremental export tells of a key is that key's baseline; the other keys keep theirs.
    PerKey,
}

impl Reading {
    /// As designed, with the whole of the changes.
    pub fn right(state: fn(&[&Row], Option<Told>) -> Option<u32>) -> Self {
        Self {
            name: "the rule",
            state,
            first_day: |_| i64::MIN,
            compact: distinct,
            baseline: newest,
            tombstones: true,
            later: Later::Complete,
        }
    }

    /// As the pipeline and the views read: its rule, on the days that may matter.
    pub fn pipeline() -> Self {
        Self {
            name: "the pipeline's rule on recent days",
            first_day: |baseline| i64::from(rule::first_day(baseline)),
            ..Self::right(pipeline)
        }
    }

    /// Everything that must not work.
    pub fn mutants() -> Vec<Self> {
        let right = || Self::right(reference);
        vec![
            Self {
                name: "margin 0",
                state: |rows, told| by_margin(rows, told, 0),
                ..right()
            },
            Self {
                name: "half the margin",
                state: |rows, told| by_margin(rows, told, M / 2),
                ..right()
            },
            Self {
                name: "twice the margin",
                state: |rows, told| by_margin(rows, told, 2 * M),
                ..right()
            },
            Self {
                name: "sequence numbers compared as unpadded text",
                state: text_order,
                ..right()
            },
            Self {
                name: "sequence numbers compared across streams",
                state: |rows, told| decide(rows, told, rows.iter().max_by_key(|row| &row.seq)),
                ..right()
            },
            Self {
                name: "the greatest time wins",
                state: |rows, told| {
                    decide(rows, told, rows.iter().max_by_key(|row| (row.at, &row.seq)))
                },
                ..right()
            },
            Self {
                name: "any stream row beats any baseline",
                state: |rows, told| by_margin(rows, told, i64::MAX / 2),
                ..right()
            },
            Self {
                name: "the baseline beats older rows, whatever came since",
                state: |rows, told| match told {
                    Some(Told {
                        item: Some(item), ..
                    }) => Some(item),
                    _ => by_margin(rows, told, M),
                },
                ..right()
            },
            Self {
                name: "no implicit absence",
                state: no_absence,
                ..right()
            },
            Self {
                name: "filter by time, then the greatest sequence number",
                state: filter_first,
                ..right()
            },
            Self {
                name: "the newest row's own time instead of the greatest",
                state: own_time,
                ..right()
            },
            Self {
                name: "a day filter that is not one day wider",
                first_day: |baseline| (baseline - M).div_euclid(DAY),
                ..right()
            },
            Self {
                name: "a compaction that keeps the newest row and forgets the greatest time",
                compact: newest_per_key,
                ..right()
            },
            Self {
                name: "the baseline that was committed last",
                baseline: |baselines| baselines.last().copied(),
                ..right()
            },
            Self {
                name: "moves without tombstones",
                tombstones: false,
                ..right()
            },
            Self {
                name: "an incremental export beside unmerged older rows",
                later: Later::Beside,
                ..right()
            },
            Self {
                name: "an incremental export as the baseline of the keys that it tells of",
                later: Later::PerKey,
                ..right()
            },
        ]
    }

    /// Every item that a reader finds, by table and key.
    ///
    /// `until`: as of that time, so later rows and baselines do not exist.
    pub fn read(&self, lake: &Lake, until: Option<i64>) -> BTreeMap<(usize, usize), u32> {
        let until = until.unwrap_or(i64::MAX);
        let mut rows: Vec<&Row> = lake.rows.iter().filter(|row| row.at <= until).collect();
        let baselines: Vec<&Baseline> = lake
            .baselines
            .iter()
            .filter(|baseline| baseline.at <= until)
            .collect();
        let mut incremental = Vec::new();
        let mut baseline = (self.baseline)(&baselines);
        let mut told_later: BTreeMap<(usize, usize), Told> = BTreeMap::new();
        if self.later != Later::Complete && baselines.len() > 1 {
            baseline = baselines.first().copied();
            for later in &baselines[1..] {
                for (&(table, key), &item) in &later.changed {
                    let at = later.at;
                    match told_later.get(&(table, key)) {
                        Some(newer) if newer.at > at => {}
                        _ => _ = told_later.insert((table, key), Told { at, item }),
                    }
                    incremental.push(Row {
                        table,
                        key,
                        stream: String::new(),
                        seq: format!("{at:040}"),
                        at,
                        item,
                    });
                }
            }
        }
        match self.later {
            Later::Beside => {
                rows.extend(&incremental);
                told_later.clear();
            }
            Later::Complete | Later::PerKey => {}
        }
        let first_day = baseline.map_or(i64::MIN, |baseline| (self.first_day)(baseline.at));
        let mut by_key: BTreeMap<(usize, usize), Vec<&Row>> = BTreeMap::new();
        for row in rows {
            if row.at.div_euclid(DAY) >= first_day {
                by_key.entry((row.table, row.key)).or_default().push(row);
            }
        }
        let mut keys: BTreeSet<(usize, usize)> = by_key.keys().copied().collect();
        keys.extend(baseline.iter().flat_map(|baseline| baseline.items.keys()));
        keys.extend(told_later.keys());
        keys.into_iter()
            .filter_map(|key| {
                let told = baseline.map(|baseline| Told {
                    at: baseline.at,
                    item: baseline.items.get(&key).copied(),
                });
                let told = told_later.get(&key).copied().or(told);
                let rows = by_key.get(&key).map_or(&[][..], Vec::as_slice);
                (self.state)(rows, told).map(|item| (key, item))
            })
            .collect()
    }

    /// Rewrites the rows of the days before this one.
    pub fn compact(&self, lake: &mut Lake, before_day: i64) {
        let (closed, open): (Vec<Row>, Vec<Row>) = std::mem::take(&mut lake.rows)
            .into_iter()
            .partition(|row| row.at.div_euclid(DAY) < before_day);
        lake.rows = (self.compact)(closed);
        lake.rows.extend(open);
    }
}

/// The pipeline's own rule.
fn pipeline(rows: &[&Row], told: Option<Told>) -> Option<u32> {
    let mut changes: Option<KeyChanges<Option<u32>>> = None;
    for row in rows {
        let (stream, seq) = (Some(row.stream.as_str()), Some(row.seq.as_str()));
        match &mut changes {
            Some(changes) => changes.observe(stream, seq, row.at, 1, row.item),
            None => changes = Some(KeyChanges::new(stream, seq, row.at, 1, row.item)),
        }
    }
    let decided = changes.and_then(|changes| changes.decide(told.map(|told| told.at)).copied());
    decided.unwrap_or_else(|| told.and_then(|told| told.item))
}

/// The rule, written down once more and independently of the pipeline.
pub fn reference(rows: &[&Row], told: Option<Told>) -> Option<u32> {
    by_margin(rows, told, M)
}

fn by_margin(rows: &[&Row], told: Option<Told>, margin: i64) -> Option<u32> {
    let newest = rows.iter().max_by_key(|row| (&row.stream, &row.seq));
    let greatest = rows.iter().map(|row| row.at).max();
    match (newest, greatest, told) {
        (Some(newest), Some(greatest), Some(told)) if greatest >= told.at - margin => newest.item,
        (Some(newest), _, None) => newest.item,
        (_, _, told) => told.and_then(|told| told.item),
    }
}

/// The rule with another newest row.
fn decide(rows: &[&Row], told: Option<Told>, newest: Option<&&Row>) -> Option<u32> {
    let greatest = rows.iter().map(|row| row.at).max();
    match (newest, greatest, told) {
        (Some(newest), Some(greatest), Some(told)) if greatest >= told.at - M => newest.item,
        (Some(newest), _, None) => newest.item,
        (_, _, told) => told.and_then(|told| told.item),
    }
}

fn text_order(rows: &[&Row], told: Option<Told>) -> Option<u32> {
    let newest = rows
        .iter()
        .max_by_key(|row| (&row.stream, row.seq.trim_start_matches('0')));
    decide(rows, told, newest)
}

fn no_absence(rows: &[&Row], told: Option<Told>) -> Option<u32> {
    match told {
        // Not in the baseline: the rows alone decide.
        Some(Told { item: None, .. }) => by_margin(rows, None, M),
        told => by_margin(rows, told, M),
    }
}

fn filter_first(rows: &[&Row], told: Option<Told>) -> Option<u32> {
    let Some(baseline) = told else {
        return by_margin(rows, None, M);
    };
    let recent: Vec<&Row> = rows
        .iter()
        .copied()
        .filter(|row| row.at >= baseline.at - M)
        .collect();
    by_margin(&recent, told, M)
}

fn own_time(rows: &[&Row], told: Option<Told>) -> Option<u32> {
    let newest = rows.iter().max_by_key(|row| (&row.stream, &row.seq));
    match (newest, told) {
        (Some(newest), Some(told)) if newest.at < told.at - M => told.item,
        (Some(newest), _) => newest.item,
        (None, told) => told.and_then(|told| told.item),
    }
}

fn newest<'a>(baselines: &[&'a Baseline]) -> Option<&'a Baseline> {
    baselines.iter().copied().max_by_key(|baseline| baseline.at)
}

fn distinct(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows.dedup();
    rows
}

fn newest_per_key(rows: Vec<Row>) -> Vec<Row> {
    let mut kept: BTreeMap<(usize, usize), Row> = BTreeMap::new();
    for row in rows {
        match kept.get(&(row.table, row.key)) {
            Some(other) if (&other.stream, &other.seq) >= (&row.stream, &row.seq) => {}
            _ => {
                kept.insert((row.table, row.key), row);
            }
        }
    }
    kept.into_values().collect()
}
