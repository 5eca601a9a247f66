//! The source table with its stream, on a clock of our own.
//!
//! MiniStack's stream is real in what it tells (which records, which images, numbers normalised), but
//! it has one shard, one clock and 30-digit sequence numbers. What AWS varies is varied here, record
//! by record, before anybody sees it:
//! - *Time* is virtual: every operation has an instant, hours pass between two calls, and
//!   `ApproximateCreationDateTime` is that instant by a clock that is up to half the margin off, in
//!   whole seconds. Exports take their time from the same virtual clock, so nothing sleeps.
//! - *Shards*: a shard holds a range of hashes of partition keys; it splits at times, and its children
//!   are read after it.
//! - *Sequence numbers* rise, with gaps, and pass a power of ten; another stream begins anew, with a
//!   later label.

use std::collections::{BTreeSet, VecDeque};

use dynalake_pipeline::current::rule::MARGIN_MS;
use dynalake_tests::{DynamoTable, Random};
use serde_json::{Value, json};

use crate::model::{Model, Operation, key_of};

/// 2026-05-01T18:00:00Z.
const BEGINNING: i64 = 1_777_658_400_000;
/// One second in milliseconds.
pub const SECOND: i64 = 1_000;
/// Name of the table in `schemas/ecommerce/lake.toml`.
pub const TABLE: &str = "app-single-table";

/// A stream record as Lambda delivers it.
#[derive(Debug, Clone)]
pub struct Record {
    /// `Records[…]` of an event.
    pub body: Value,
    /// As in `_stream` and `_seq`. Streams may use the same numbers.
    pub position: (String, String),
}

/// A shard: what is not delivered yet, and what was.
#[derive(Debug)]
pub struct Shard {
    /// Read first.
    pub parent: Option<usize>,
    /// Range of hashes; empty once it is closed.
    range: std::ops::Range<u64>,
    /// Not delivered yet.
    pub waiting: VecDeque<Record>,
    /// Delivered, in order.
    pub done: Vec<Record>,
}

/// The table.
pub struct Source {
    table: DynamoTable,
    iterator: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub now: i64,
    /// Shards, closed ones too.
    pub shards: Vec<Shard>,
    /// Records are being lost.
    pub losing: bool,
    /// Instant of the last write whose record was lost.
    pub last_lost: Option<i64>,
    /// Times of exports.
    pub exported: BTreeSet<i64>,
    /// What exports showed: their time and all items, in the order in which they were taken.
    pub points: Vec<(i64, Vec<Value>)>,
    /// Operations that were done.
    pub operations: usize,
    /// Records that the stream told, and those that it lost.
    pub told: usize,
    pub lost: usize,
    seed: u64,
    skew: i64,
    jitter: i64,
    new_image_only: bool,
    stream_label: String,
    next_seq: u128,
    records: u64,
    /// What was done to each key, for messages.
    trace: Vec<((String, String), String)>,
}

impl Source {
    /// A new table.
    pub fn new(mut table: DynamoTable, seed: u64, random: &mut Random) -> Self {
        let shards = table.shards();
        assert_eq!(shards.len(), 1, "MiniStack has one shard per stream");
        let iterator = table.trim_horizon(&shards[0]);
        let width = u64::MAX / 2;
        let mut source = Self {
            table,
            iterator,
            now: BEGINNING + random.between(0, 7 * 3_600) * SECOND + random.between(0, 999),
            shards: vec![shard(None, 0..width), shard(None, width..u64::MAX)],
            losing: random.chance(30),
            last_lost: None,
            exported: BTreeSet::new(),
            points: vec![],
            operations: 0,
            told: 0,
            lost: 0,
            seed,
            skew: *random.pick(&[0, 0, 700, -3_000, MARGIN_MS / 2, -MARGIN_MS / 2]),
            jitter: *random.pick(&[0, 2_000, 60_000, MARGIN_MS]),
            new_image_only: random.chance(25),
            stream_label: String::new(),
            next_seq: 0,
            records: 0,
            trace: vec![],
        };
        source.begin_stream(random);
        source
    }

    /// A new stream: a later label, and sequence numbers that need one more digit before long.
    pub fn begin_stream(&mut self, random: &mut Random) {
        self.stream_label = chrono_label(self.now);
        let digits = *random.pick(&[21_u32, 22, 25, 30]);
        self.next_seq = 10_u128.pow(digits) - u128::from(random.bits() % 400_000) - 1;
    }

    /// Lets time pass: mostly little, sometimes minutes, rarely hours or a day.
    pub fn wait(&mut self, random: &mut Random) {
        self.now += match random.below(400) {
            0 => 86_400 * SECOND,
            1 | 2 => random.between(3_600, 6 * 3_600) * SECOND,
            3..=9 => MARGIN_MS + random.between(-2, 2) * SECOND,
            10..=19 => random.between(0, 2 * MARGIN_MS),
            20..=100 => random.between(0, 5 * SECOND),
            101..=200 => random.between(0, 900),
            _ => 0,
        };
    }

    /// Does an operation and takes the records that it makes.
    pub fn apply(&mut self, model: &mut Model, operation: &Operation, random: &mut Random) {
        let mut updated = None;
        let outcome = match operation {
            Operation::Put(item) => self.table.put(item),
            Operation::Update(request) => {
                self.table.update(request).map(|item| updated = Some(item))
            }
            Operation::Delete(key) => self.table.delete(key),
            Operation::Transact(actions) => self.table.transact(actions),
        };
        match outcome {
            Ok(()) => {
                self.operations += 1;
                model.learn(operation, updated.as_ref());
            }
            // Arithmetic beyond 38 digits, or a removed number that was added to.
            Err(error) if error.kind == "ValidationException" => {
                let arithmetic = matches!(operation, Operation::Update(request)
                    if request["UpdateExpression"].as_str().unwrap().contains("ADD ")
                        || request["UpdateExpression"].as_str().unwrap().contains("DELETE "));
                assert!(arithmetic, "{operation:?} was refused: {error:?}");
            }
            Err(error) => panic!("{operation:?} was refused: {error:?}"),
        }
        let (records, next) = self.table.records(&self.iterator);
        self.iterator = next.expect("the shard stays open");
        let mut records: Vec<Value> = records;
        if matches!(operation, Operation::Transact(_)) {
            // The stream does not keep a transaction's order.
            random.shuffle(&mut records);
        }
        for record in records {
            self.tell(record, random);
        }
    }

    /// A record of MiniStack as AWS might have told it.
    fn tell(&mut self, mut record: Value, random: &mut Random) {
        self.records += 1;
        self.next_seq += 1 + u128::from(random.bits() % 900);
        let off = self.skew + random.between(-self.jitter, self.jitter);
        let off = off.clamp(-MARGIN_MS / 2, MARGIN_MS / 2);
        let seconds = (self.now + off).div_euclid(SECOND);
        let seq = self.next_seq.to_string();
        let key = key_of(&record["dynamodb"]["Keys"]);
        let fate = if self.losing { "lost" } else { "told" };
        let name = record["eventName"].as_str().unwrap().to_owned();
        let line = format!("{} {name} {seq} at {seconds}000, {fate}", self.now);
        self.trace.push((key.clone(), line));
        if self.losing {
            self.last_lost = Some(self.now);
            self.lost += 1;
            return;
        }
        self.told += 1;
        record["eventID"] = json!(format!("{:016x}{:016x}", self.seed, self.records));
        record["awsRegion"] = json!("eu-west-1");
        record["eventSourceARN"] = json!(format!(
            "arn:aws:dynamodb:eu-west-1:123456789012:table/{TABLE}/stream/{}",
            self.stream_label
        ));
        if name == "REMOVE" && random.chance(10) {
            record["userIdentity"] =
                json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"});
        }
        let body = &mut record["dynamodb"];
        body["ApproximateCreationDateTime"] = if random.chance(50) {
            json!(seconds)
        } else {
            serde_json::from_str(&format!("{seconds}.0")).unwrap()
        };
        body["SequenceNumber"] = json!(seq);
        body["SizeBytes"] = json!(59);
        if self.new_image_only {
            body["StreamViewType"] = json!("NEW_IMAGE");
            body.as_object_mut().unwrap().remove("OldImage");
        }
        let hash = hash(&key.0);
        let open = self
            .shards
            .iter_mut()
            .find(|shard| shard.range.contains(&hash));
        open.expect("ranges cover everything")
            .waiting
            .push_back(Record {
                body: record,
                position: (self.stream_label.clone(), format!("{seq:0>40}")),
            });
    }

    /// Closes an open shard; two new ones take its keys.
    pub fn split(&mut self, random: &mut Random) {
        let open: Vec<usize> = (0..self.shards.len())
            .filter(|index| !self.shards[*index].range.is_empty())
            .collect();
        let parent = *random.pick(&open);
        let range = std::mem::replace(&mut self.shards[parent].range, 0..0);
        let middle = range.start + (range.end - range.start) / 2;
        self.shards.push(shard(Some(parent), range.start..middle));
        self.shards.push(shard(Some(parent), middle..range.end));
    }

    /// Shards whose next records may be delivered: a parent's come before its children's.
    pub fn readable(&self) -> Vec<usize> {
        let empty = |index: usize| self.shards[index].waiting.is_empty();
        (0..self.shards.len())
            .filter(|index| !empty(*index))
            .filter(|index| {
                let mut ancestor = self.shards[*index].parent;
                while let Some(parent) = ancestor {
                    if !empty(parent) {
                        return false;
                    }
                    ancestor = self.shards[parent].parent;
                }
                true
            })
            .collect()
    }

    /// Every item now.
    pub fn scan(&mut self) -> Vec<Value> {
        self.table.scan()
    }

    /// What the stream said of a key.
    pub fn trace(&self, key: &(String, String)) -> String {
        let lines = self.trace.iter().filter(|(other, _)| other == key);
        let lines: Vec<&str> = lines.map(|(_, line)| line.as_str()).collect();
        format!("\n  {}", lines.join("\n  "))
    }
}

fn shard(parent: Option<usize>, range: std::ops::Range<u64>) -> Shard {
    Shard {
        parent,
        range,
        waiting: VecDeque::new(),
        done: vec![],
    }
}

/// FNV-1a, then spread: short texts must not all fall into one range.
fn hash(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Random::new(fnv).bits().min(u64::MAX - 1)
}

/// A stream label: the time as AWS writes it.
fn chrono_label(ms: i64) -> String {
    let text = dynalake_pipeline::time::format_iso8601(ms).expect("a year of four digits");
    // Whole seconds come without a fraction.
    let text = text.trim_end_matches('Z');
    if text.contains('.') {
        text.to_owned()
    } else {
        format!("{text}.000")
    }
}
