//! One row per change, of rows sorted by (`_pk`, `_sk`, `_seq`).

use arrow::array::{
    Array, AsArray, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt32Array,
};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Int32Type, TimestampMillisecondType};
use dynalake_schemas::row_columns;

use crate::current::CurrentError;

/// Batches without rows that are the same change as another one.
///
/// The same change is the same (`_pk`, `_sk`, `_stream`, `_seq`); of such rows the one with the
/// greatest (`_at`, `_schema`) stays, of equal ones the first. Rows without a sequence number are the
/// same only if event, operation and time are, too.
pub(super) struct Dedupe<I> {
    batches: I,
    /// Rows of the last key, of which more may come.
    open: Option<RecordBatch>,
    /// Rows that came in.
    pub(super) read: u64,
    /// Rows left out.
    pub(super) duplicates: u64,
}

impl<I: Iterator<Item = Result<RecordBatch, CurrentError>>> Dedupe<I> {
    pub(super) fn new(batches: I) -> Self {
        Self {
            batches,
            open: None,
            read: 0,
            duplicates: 0,
        }
    }

    /// The next batch that is not empty.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>, CurrentError> {
        loop {
            let Some(batch) = self.batches.next().transpose()? else {
                return self.open.take().map(|last| self.close(&last)).transpose();
            };
            self.read += count(batch.num_rows());
            let batch = match self.open.take() {
                Some(open) => concat(&open, &batch)?,
                None => batch,
            };
            let begin = Columns::of(&batch)?.last_key();
            // Copied, so that a few rows do not keep a whole batch in memory.
            let last = batch.slice(begin, batch.num_rows() - begin);
            self.open = Some(concat(&last, &last.slice(0, 0))?);
            if begin > 0 {
                return self.close(&batch.slice(0, begin)).map(Some);
            }
        }
    }

    /// Whole keys without their duplicates.
    fn close(&mut self, batch: &RecordBatch) -> Result<RecordBatch, CurrentError> {
        let kept = Columns::of(batch)?.kept();
        let left_out = batch.num_rows() - kept.len();
        if left_out == 0 {
            return Ok(batch.clone());
        }
        self.duplicates += count(left_out);
        let kept: UInt32Array = kept
            .into_iter()
            .map(|row| u32::try_from(row).unwrap_or(u32::MAX))
            .collect();
        take_record_batch(batch, &kept).map_err(|error| CurrentError::Merge(error.to_string()))
    }
}

/// The columns that tell changes apart.
struct Columns<'a> {
    rows: usize,
    pk: &'a StringArray,
    sk: &'a StringArray,
    op: &'a StringArray,
    stream: &'a StringArray,
    seq: &'a StringArray,
    event_id: &'a StringArray,
    at: &'a TimestampMillisecondArray,
    schema: &'a Int32Array,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, CurrentError> {
        let column = |index: usize| batch.columns().get(index);
        let text = |index| column(index).and_then(|column| column.as_string_opt::<i32>());
        let find = || {
            Some(Self {
                rows: batch.num_rows(),
                pk: text(row_columns::PK)?,
                sk: text(row_columns::SK)?,
                op: text(row_columns::OP)?,
                stream: text(row_columns::STREAM)?,
                seq: text(row_columns::SEQ)?,
                event_id: text(row_columns::EVENT_ID)?,
                at: column(row_columns::AT)?.as_primitive_opt::<TimestampMillisecondType>()?,
                schema: column(row_columns::SCHEMA)?.as_primitive_opt::<Int32Type>()?,
            })
        };
        find().ok_or_else(|| CurrentError::Merge("a row column is of another type".to_owned()))
    }

    /// Whether two rows stand at the same place of the order.
    fn same_key(&self, a: usize, b: usize) -> bool {
        self.pk.value(a) == self.pk.value(b) && same(self.sk, a, b) && same(self.seq, a, b)
    }

    /// Whether two rows of the same key are the same change.
    fn same_change(&self, a: usize, b: usize) -> bool {
        let numbered = self.seq.is_valid(a);
        same(self.stream, a, b)
            && (numbered
                || (same(self.event_id, a, b)
                    && self.op.value(a) == self.op.value(b)
                    && self.at.value(a) == self.at.value(b)))
    }

    /// First row of the last key.
    fn last_key(&self) -> usize {
        let last = self.rows.saturating_sub(1);
        (0..last)
            .rev()
            .take_while(|&row| self.same_key(row, last))
            .last()
            .unwrap_or(last)
    }

    /// Rows that stay, in order.
    fn kept(&self) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::with_capacity(self.rows);
        // Where the current key begins, in `kept`.
        let mut begin = 0;
        for row in 0..self.rows {
            if row > 0 && !self.same_key(row - 1, row) {
                begin = kept.len();
            }
            let rivals = kept.get_mut(begin..).unwrap_or_default();
            match rivals
                .iter_mut()
                .find(|rival| self.same_change(**rival, row))
            {
                Some(rival) if self.rank(row) > self.rank(*rival) => *rival = row,
                Some(_) => {}
                None => kept.push(row),
            }
        }
        kept.sort_unstable();
        kept
    }

    fn rank(&self, row: usize) -> (i64, i32) {
        (self.at.value(row), self.schema.value(row))
    }
}

fn same(column: &StringArray, a: usize, b: usize) -> bool {
    match (column.is_valid(a), column.is_valid(b)) {
        (true, true) => column.value(a) == column.value(b),
        (a, b) => a == b,
    }
}

fn concat(a: &RecordBatch, b: &RecordBatch) -> Result<RecordBatch, CurrentError> {
    arrow::compute::concat_batches(&a.schema(), [a, b])
        .map_err(|error| CurrentError::Merge(error.to_string()))
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
