//! Short random histories of a table: what was written and when, what the stream told of it, what
//! exports saw, and in which order all that reached the lake.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use dynalake_tests::Random;

use crate::lake::{Baseline, M, Row, TABLES};

const SECOND: i64 = 1_000;
const DAY: i64 = 86_400_000;
/// A midnight (2026-05-02T00:00:00Z) near which histories take place, so that days matter.
const MIDNIGHT: i64 = 1_777_680_000_000;

/// What a key holds: a lake table (the entity) and the item's number; `None` where there is no item.
pub type State = Option<(usize, u32)>;

/// A write to the table.
#[derive(Debug, Clone)]
pub struct Write {
    /// Key.
    pub key: usize,
    /// True time.
    pub at: i64,
    /// What the key holds after it.
    pub state: State,
    /// Position among the writes of its key.
    pub nth: usize,
    /// The stream lost its record, or did not exist yet.
    pub lost: bool,
}

/// A stream record: the write and the change rows that it becomes.
#[derive(Debug, Clone)]
pub struct Record {
    /// Index of the write.
    pub write: usize,
    /// Rows; true marks the tombstone of a move.
    pub rows: Vec<(Row, bool)>,
}

/// Something that happens to the lake.
#[derive(Debug, Clone)]
pub enum Step {
    /// An invocation with these records succeeds.
    Deliver(Vec<usize>),
    /// An invocation with these records fails after the rows of this table were stored.
    Fail(Vec<usize>, usize),
    /// This export is converted and committed.
    Commit(usize),
    /// Days before this one are compacted.
    Compact(i64),
}

/// A history.
#[derive(Debug)]
pub struct History {
    /// Writes in true order.
    pub writes: Vec<Write>,
    /// Records that the stream has, in true order.
    pub records: Vec<Record>,
    /// Exports.
    pub exports: Vec<Baseline>,
    /// What happens to the lake.
    pub steps: Vec<Step>,
    /// Whether times of records may be wrong by more than half the margin.
    pub falls_back: bool,
}

impl History {
    /// The history of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut table = Table::new(&mut random);
        table.live(&mut random);
        let steps = table.deliver(&mut random);
        Self {
            writes: table.writes,
            records: table
                .records
                .into_iter()
                .map(|(_, record)| record)
                .collect(),
            exports: table.exports,
            steps,
            falls_back: table.falls_back,
        }
    }

    /// The states of a key: nothing at first, then after each write.
    pub fn states(&self, key: usize) -> Vec<State> {
        let writes = self.writes.iter().filter(|write| write.key == key);
        std::iter::once(None)
            .chain(writes.map(|write| write.state))
            .collect()
    }
}

/// How the stream tells of changes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum View {
    /// With both images.
    NewAndOld,
    /// Without old images: tombstones go wherever the key might have been.
    New,
}

struct Table {
    now: i64,
    keys: usize,
    shards: usize,
    view: View,
    /// Distance of the stream's clock from the true one, and how far single records are off that.
    skew: i64,
    jitter: i64,
    /// Whether times may fall back further than the margin, as after a change of leader.
    falls_back: bool,
    /// Greatest time that the stream has told, by table and key.
    told: BTreeMap<(usize, usize), i64>,
    stream: String,
    next_seq: Vec<u128>,
    /// Shards whose records are being lost.
    losing: Vec<bool>,
    last_lost: Option<i64>,
    current: BTreeMap<usize, State>,
    next_item: u32,
    writes: Vec<Write>,
    records: Vec<(usize, Record)>,
    exports: Vec<Baseline>,
    /// The table at the time of the export before.
    exported: BTreeMap<(usize, usize), u32>,
    changed: BTreeSet<(usize, usize)>,
}

impl Table {
    fn new(random: &mut Random) -> Self {
        let shards = 1 + random.below(2);
        let start = MIDNIGHT
            + *random.pick(&[
                -2 * M,
                -M,
                -10 * SECOND,
                DAY / 2,
                M + 10 * SECOND,
                M - 3 * SECOND,
            ]);
        let mut table = Self {
            now: start + random.between(0, 2_000),
            keys: 1 + random.below(3),
            shards,
            view: *random.pick(&[View::NewAndOld, View::NewAndOld, View::New]),
            skew: *random.pick(&[0, 0, 700, -2_500, 20_000, M / 2, -M / 2]),
            jitter: *random.pick(&[0, 0, 2_000, 30_000, M]),
            falls_back: random.chance(20),
            told: BTreeMap::new(),
            stream: format!("{start:020}"),
            next_seq: vec![],
            // The table may be older than its stream.
            losing: vec![random.chance(15); shards],
            last_lost: None,
            current: BTreeMap::new(),
            next_item: 0,
            writes: vec![],
            records: vec![],
            exports: vec![],
            exported: BTreeMap::new(),
            changed: BTreeSet::new(),
        };
        table.number_anew(random);
        table
    }

    /// Sequence numbers as a new stream's shards begin them: often just before a digit is added.
    fn number_anew(&mut self, random: &mut Random) {
        self.next_seq = (0..self.shards)
            .map(|_| {
                let digits = *random.pick(&[21_u32, 21, 22, 25, 37]);
                let power = 10_u128.pow(digits);
                let before = u128::from(random.bits() % 3_000);
                if random.chance(50) {
                    power - before - 1
                } else {
                    power + before * 1_000_000
                }
            })
            .collect();
    }

    fn live(&mut self, random: &mut Random) {
        let (mut stopped_losing, events) = (false, 5 + random.below(16));
        for _ in 0..events {
            self.wait(random);
            match random.below(20) {
                0..=12 => self.write(random),
                13..=15 => self.export(random),
                16..=17 if self.losing.contains(&true) => {
                    self.stop_losing(random);
                    stopped_losing = true;
                }
                16 => {
                    let shard = random.below(self.shards);
                    self.losing[shard] = true;
                }
                17 => self.losing.fill(true),
                _ if stopped_losing && random.chance(50) => self.export_after_gap(random),
                _ => {}
            }
        }
        if self.losing.contains(&true) {
            self.stop_losing(random);
        }
        if self.last_lost.is_some() && random.chance(90) {
            self.export_after_gap(random);
        }
        for _ in 0..random.below(4) {
            self.wait(random);
            self.write(random);
        }
    }

    fn wait(&mut self, random: &mut Random) {
        const STEPS: [i64; 16] = [
            0,
            1,
            400,
            999,
            SECOND,
            3 * SECOND,
            10 * SECOND,
            30 * SECOND,
            60 * SECOND,
            M / 2 - SECOND,
            M / 2,
            M - SECOND,
            M,
            M + SECOND,
            2 * M,
            3 * M,
        ];
        self.now += match random.below(40) {
            0 => DAY / 24,
            1 => DAY,
            _ => *random.pick(&STEPS),
        };
    }

    fn write(&mut self, random: &mut Random) {
        let key = random.below(self.keys);
        let old = self.current.get(&key).copied().flatten();
        let new = match old {
            Some(_) if random.chance(35) => None,
            Some((table, _)) if random.chance(70) => Some((table, self.item())),
            _ => Some((random.below(TABLES), self.item())),
        };
        if old.is_none() && new.is_none() {
            return;
        }
        self.current.insert(key, new);
        for table in [old, new].into_iter().flatten().map(|(table, _)| table) {
            self.changed.insert((table, key));
        }
        let shard = key % self.shards;
        let lost = self.losing[shard];
        let write = self.writes.len();
        let nth = 1 + self.writes.iter().filter(|write| write.key == key).count();
        self.writes.push(Write {
            key,
            at: self.now,
            state: new,
            nth,
            lost,
        });
        // Sequence numbers go on, whoever reads them.
        self.next_seq[shard] += 1 + u128::from(random.bits() % 900);
        let mut at = self.stream_time(random);
        if lost {
            self.last_lost = Some(self.now);
            return;
        }
        let mut items = Vec::new();
        if let Some((table, item)) = new {
            items.push((table, Some(item)));
        }
        match (self.view, old) {
            (View::NewAndOld, Some((table, _))) if new.is_none_or(|(new, _)| new != table) => {
                items.push((table, None));
            }
            (View::New, Some(_)) => items.extend(
                (0..TABLES)
                    .filter(|table| new.is_none_or(|(new, _)| new != *table))
                    .map(|table| (table, None)),
            ),
            _ => {}
        }
        // However far a record's time falls back, the rule holds if a row just before it in each of
        // its tables told the right time.
        let covered = |(table, _): &(usize, Option<u32>)| {
            let told = self.told.get(&(*table, key));
            told.is_some_and(|told| *told >= self.now - M / 2)
        };
        if self.falls_back && items.iter().all(covered) && random.chance(50) {
            at = floor(self.now - random.between(M / 2, 23 * DAY / 24));
        }
        let mut rows = Vec::new();
        for (table, item) in items {
            let told = self.told.entry((table, key)).or_insert(at);
            *told = at.max(*told);
            let stream = self.stream.clone();
            let seq = format!("{:040}", self.next_seq[shard]);
            let moved = item.is_none() && new.is_some();
            rows.push((
                Row {
                    table,
                    key,
                    stream,
                    seq,
                    at,
                    item,
                },
                moved,
            ));
        }
        self.records.push((shard, Record { write, rows }));
    }

    fn item(&mut self) -> u32 {
        self.next_item += 1;
        self.next_item
    }

    /// The time of now as the stream tells it: another clock, at most M/2 off, in whole seconds.
    fn stream_time(&self, random: &mut Random) -> i64 {
        let off = self.skew + random.between(-self.jitter, self.jitter);
        floor(self.now + off.clamp(-M / 2, M / 2))
    }

    /// An export of now. Its time is in whole seconds, too, and of another clock.
    fn export(&mut self, random: &mut Random) {
        let limit = M / 2 - SECOND;
        let off = *random.pick(&[0, 0, SECOND, -SECOND, limit, -limit]);
        let at = floor(self.now + off);
        self.export_at(at);
    }

    /// An export as early as it may be after records were lost.
    fn export_after_gap(&mut self, random: &mut Random) {
        let Some(last_lost) = self.last_lost else {
            return self.export(random);
        };
        let limit = M / 2 - SECOND;
        let off = *random.pick(&[0, SECOND, -SECOND, limit, -limit]);
        let earliest = floor(last_lost + 2 * M) + SECOND * random.between(1, 2);
        // Life goes on until then.
        while self.now < earliest - off && random.chance(75) {
            self.now += random.between(0, M);
            if self.now < earliest - off {
                self.write(random);
            }
        }
        self.now = self.now.max(earliest - off);
        let at = floor(self.now + off);
        self.export_at(at);
    }

    fn export_at(&mut self, at: i64) {
        if self.exports.iter().any(|export| export.at == at) {
            return;
        }
        let items: BTreeMap<(usize, usize), u32> = self
            .current
            .iter()
            .filter_map(|(key, state)| state.map(|(table, item)| ((table, *key), item)))
            .collect();
        let changed = std::mem::take(&mut self.changed)
            .into_iter()
            .filter(|key| self.exported.contains_key(key) || items.contains_key(key))
            .map(|key| (key, items.get(&key).copied()))
            .collect();
        self.exported.clone_from(&items);
        self.exports.push(Baseline { at, items, changed });
    }

    fn stop_losing(&mut self, random: &mut Random) {
        let everything = !self.losing.contains(&false);
        self.losing.fill(false);
        if everything && random.chance(40) {
            // The stream was made anew: later label, other numbers.
            self.stream = format!("{:020}", self.now);
            self.number_anew(random);
        }
    }

    /// An order in which all of it reaches the lake: each shard's records in their order, with
    /// repetitions and retries in other cuts; shards, exports and compactions in any order.
    fn deliver(&mut self, random: &mut Random) -> Vec<Step> {
        let mut waiting: Vec<VecDeque<usize>> = vec![VecDeque::new(); self.shards];
        for (index, (shard, _)) in self.records.iter().enumerate() {
            waiting[*shard].push_back(index);
        }
        let mut done: Vec<Vec<usize>> = vec![vec![]; self.shards];
        let mut exports: Vec<usize> = (0..self.exports.len()).collect();
        let last_day = self.now.div_euclid(DAY) + 1;
        let first_day = MIDNIGHT.div_euclid(DAY) - 1;
        let mut steps = Vec::new();
        while !exports.is_empty() || waiting.iter().any(|shard| !shard.is_empty()) {
            let shard = random.below(self.shards);
            match random.below(20) {
                0..=9 if !waiting[shard].is_empty() => {
                    let size = (1 + random.below(4)).min(waiting[shard].len());
                    let batch: Vec<usize> = waiting[shard].iter().take(size).copied().collect();
                    if random.chance(15) {
                        steps.push(Step::Fail(batch, random.below(TABLES)));
                        continue;
                    }
                    waiting[shard].drain(..size);
                    done[shard].extend(&batch);
                    steps.push(Step::Deliver(batch));
                }
                10..=12 if !done[shard].is_empty() => {
                    let from = random.below(done[shard].len());
                    let size = (1 + random.below(4)).min(done[shard].len() - from);
                    steps.push(Step::Deliver(done[shard][from..from + size].to_vec()));
                }
                13..=16 if !exports.is_empty() => {
                    let export = exports.swap_remove(random.below(exports.len()));
                    steps.push(Step::Commit(export));
                }
                17 => steps.push(Step::Compact(random.between(first_day, last_day))),
                _ => {}
            }
        }
        if random.chance(30) {
            steps.push(Step::Compact(last_day));
        }
        steps
    }
}

fn floor(ms: i64) -> i64 {
    ms.div_euclid(SECOND) * SECOND
}

/// One line per write and export in true order of their lists, then one per step. Times in seconds
/// from midnight.
impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ms: i64| {
            let ms = ms - MIDNIGHT;
            let sign = if ms < 0 { "-" } else { "" };
            format!("{sign}{}.{:03}", ms.abs() / SECOND, ms.abs() % SECOND)
        };
        for (index, write) in self.writes.iter().enumerate() {
            let state = write.state;
            write!(f, "{}: key {} becomes {state:?}", time(write.at), write.key)?;
            match self.records.iter().position(|record| record.write == index) {
                Some(record) => {
                    writeln!(f, ", record {record}:")?;
                    for (row, moved) in &self.records[record].rows {
                        let (table, stream, item) = (row.table, &row.stream, row.item);
                        let seq = row.seq.trim_start_matches('0');
                        let at = time(row.at);
                        let moved = if *moved { ", moved" } else { "" };
                        writeln!(
                            f,
                            "    table {table}: {item:?} at {at}, {stream} {seq}{moved}"
                        )?;
                    }
                }
                None => writeln!(f, ", lost")?,
            }
        }
        for (index, export) in self.exports.iter().enumerate() {
            writeln!(
                f,
                "export {index} of {}: {:?}",
                time(export.at),
                export.items
            )?;
        }
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "step {index}: {step:?}")?;
        }
        Ok(())
    }
}
