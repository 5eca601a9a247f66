//! Change rows: one per change, in order of time.
//!
//! A retried stream batch may have been cut differently, so that a change lies in two objects: rows
//! are the same change when (`_pk`, `_sk`, `_stream`, `_seq`) are equal, and the latest one of them is
//! shown.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;

use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::TimestampMillisecondType;

/// Columns that order and identify change rows.
pub(super) const COLUMNS: [&str; 5] = ["_pk", "_sk", "_stream", "_seq", "_at"];

/// Collects change rows, each change once; with a limit it keeps the newest.
pub(super) struct Changes {
    limit: Option<usize>,
    hashers: [RandomState; 2],
    /// 128-bit hashes of the changes seen, each with the place of its row among `rows` of this
    /// generation.
    seen: HashMap<(u64, u64), (u64, usize)>,
    /// Counts how often rows were given up or moved.
    generation: u64,
    batches: Vec<RecordBatch>,
    rows: Vec<Row>,
    /// Rows beyond the limit were dropped.
    dropped: bool,
}

struct Row {
    at: Option<i64>,
    sequence: Option<Box<str>>,
    key: (Box<str>, Option<Box<str>>),
    batch: usize,
    /// Position in the batch.
    index: usize,
}

impl Row {
    fn order(&self, other: &Self) -> Ordering {
        self.at
            .cmp(&other.at)
            .then_with(|| self.sequence.cmp(&other.sequence))
            .then_with(|| self.key.cmp(&other.key))
    }
}

impl Changes {
    /// Keeps at most `limit` rows; `None` keeps all.
    pub(super) fn new(limit: Option<usize>) -> Self {
        Self {
            limit,
            hashers: [RandomState::new(), RandomState::new()],
            seen: HashMap::new(),
            generation: 0,
            batches: Vec::new(),
            rows: Vec::new(),
            dropped: false,
        }
    }

    /// Takes the rows of a batch that holds [`COLUMNS`].
    pub(super) fn push(&mut self, batch: RecordBatch) {
        let text = |name: &str, row: usize| -> Option<&str> {
            let column = batch.column_by_name(name)?.as_string_opt::<i32>()?;
            column.is_valid(row).then(|| column.value(row))
        };
        let times = batch
            .column_by_name("_at")
            .and_then(|column| column.as_primitive_opt::<TimestampMillisecondType>());
        let index = self.batches.len();
        for row in 0..batch.num_rows() {
            let at = times.and_then(|times| times.is_valid(row).then(|| times.value(row)));
            let (key, sort_key) = (text("_pk", row).unwrap_or_default(), text("_sk", row));
            let (stream, sequence) = (text("_stream", row), text("_seq", row));
            // Without a sequence number (exports) time tells changes of one key apart.
            let time = if sequence.is_none() { at } else { None };
            let [first, second] = &self.hashers;
            let identity = (key, sort_key, stream, sequence, time);
            let hash = (first.hash_one(identity), second.hash_one(identity));
            let found = Row {
                at,
                sequence: sequence.map(Box::from),
                key: (Box::from(key), sort_key.map(Box::from)),
                batch: index,
                index: row,
            };
            match self.seen.entry(hash) {
                Entry::Vacant(entry) => {
                    entry.insert((self.generation, self.rows.len()));
                    self.rows.push(found);
                }
                Entry::Occupied(entry) => {
                    let (generation, place) = *entry.get();
                    let earlier = self.rows.get_mut(place);
                    if let Some(earlier) = earlier
                        .filter(|earlier| generation == self.generation && earlier.at < found.at)
                    {
                        *earlier = found;
                    }
                }
            }
        }
        self.batches.push(batch);
        if let Some(limit) = self.limit
            && self.rows.len() > 8 * 1024 + 4 * limit
        {
            self.shrink(limit);
        }
    }

    /// Whether the limit is reached: older days cannot add rows.
    pub(super) fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.rows.len() >= limit)
    }

    /// Whether there were more rows than the limit allows.
    pub(super) fn has_dropped(&self) -> bool {
        self.dropped
    }

    /// Gives the rows up, oldest first, as batches of neighbouring rows.
    pub(super) fn take(&mut self) -> Vec<RecordBatch> {
        self.generation += 1;
        self.rows.sort_by(Row::order);
        if let Some(limit) = self.limit
            && self.rows.len() > limit
        {
            self.rows.drain(..self.rows.len() - limit);
            self.dropped = true;
        }
        let rows = std::mem::take(&mut self.rows);
        let batches = std::mem::take(&mut self.batches);
        rows.chunk_by(|a, b| a.batch == b.batch && a.index + 1 == b.index)
            .filter_map(|run| {
                let first = run.first()?;
                Some(batches.get(first.batch)?.slice(first.index, run.len()))
            })
            .collect()
    }

    /// Keeps the newest rows only, and of the batches only their rows.
    fn shrink(&mut self, limit: usize) {
        self.generation += 1;
        self.rows.sort_by(|a, b| b.order(a));
        self.rows.truncate(limit);
        self.dropped = true;
        self.rows.sort_by_key(|row| (row.batch, row.index));
        let old = std::mem::take(&mut self.batches);
        let mut rows = std::mem::take(&mut self.rows);
        for run in rows.chunk_by_mut(|a, b| a.batch == b.batch) {
            let indices: UInt32Array = run
                .iter()
                .map(|row| u32::try_from(row.index).unwrap_or(u32::MAX))
                .collect();
            let kept = run
                .first()
                .and_then(|row| old.get(row.batch))
                .and_then(|batch| take_record_batch(batch, &indices).ok());
            // Taking rows that exist cannot fail.
            let Some(kept) = kept else { continue };
            for (position, row) in run.iter_mut().enumerate() {
                row.batch = self.batches.len();
                row.index = position;
            }
            self.batches.push(kept);
        }
        self.rows = rows;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray, TimestampMillisecondArray};

    use super::*;

    fn batch(rows: &[(&str, &str, i64)]) -> RecordBatch {
        let column = |f: fn(&(&str, &str, i64)) -> Option<String>| -> ArrayRef {
            Arc::new(rows.iter().map(f).collect::<StringArray>())
        };
        let at = TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.2));
        RecordBatch::try_from_iter([
            ("_pk", column(|row| Some(row.0.to_owned()))),
            ("_sk", column(|_| None)),
            ("_stream", column(|_| Some("s".to_owned()))),
            ("_seq", column(|row| Some(format!("{:0>40}", row.1)))),
            ("_at", Arc::new(at.with_timezone("UTC"))),
        ])
        .unwrap()
    }

    fn sequences(batches: &[RecordBatch]) -> Vec<u64> {
        batches
            .iter()
            .flat_map(|batch| {
                let column = batch
                    .column_by_name("_seq")
                    .unwrap()
                    .as_string::<i32>()
                    .clone();
                (0..column.len()).map(move |row| column.value(row).parse().unwrap())
            })
            .collect()
    }

    #[test]
    fn a_change_in_two_objects_is_one_row_and_order_is_by_time_then_sequence() {
        let mut changes = Changes::new(None);
        changes.push(batch(&[("a", "10", 5), ("a", "9", 5), ("b", "11", 1)]));
        changes.push(batch(&[("a", "9", 5), ("c", "12", 5)]));
        assert_eq!(sequences(&changes.take()), [11, 9, 10, 12]);
        assert!(!changes.has_dropped());
    }

    #[test]
    fn a_limit_keeps_the_newest_in_bounded_memory() {
        let mut changes = Changes::new(Some(3));
        for start in (0..40_000).step_by(1000) {
            let names: Vec<String> = (start..start + 1000).map(|n| n.to_string()).collect();
            let rows: Vec<(&str, &str, i64)> = names
                .iter()
                .map(|name| {
                    (
                        "k",
                        name.as_str(),
                        (name.parse::<i64>().unwrap() * 7919) % 40_009,
                    )
                })
                .collect();
            changes.push(batch(&rows));
            assert!(changes.rows.len() <= 8 * 1024 + 12);
        }
        assert!(changes.is_full());
        let mut newest: Vec<(i64, u64)> = (0..40_000_u64)
            .map(|n| (i64::try_from(n).unwrap() * 7919 % 40_009, n))
            .collect();
        newest.sort_unstable();
        let expected: Vec<u64> = newest[newest.len() - 3..].iter().map(|row| row.1).collect();
        assert_eq!(sequences(&changes.take()), expected);
        assert!(changes.has_dropped());
    }
}
