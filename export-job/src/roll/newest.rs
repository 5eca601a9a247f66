//! Of each key the newest row, of rows sorted by key whose ties are in the order of time.

use arrow::array::{AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use dynalake_pipeline::current::CurrentError;
use dynalake_schemas::row_columns;

/// A key: `_pk` and `_sk`.
pub(super) type Key = (String, Option<String>);

/// Rows of a merge, the last of each key, tombstones left out.
pub(super) struct Newest<I> {
    batches: I,
    /// Rows up to this key are left out.
    after: Option<Key>,
    /// The last row so far, of whose key there may be more.
    held: Option<RecordBatch>,
    /// Rows that came in.
    pub(super) read: u64,
}

impl<I: Iterator<Item = Result<RecordBatch, CurrentError>>> Newest<I> {
    pub(super) fn new(batches: I, after: Option<Key>) -> Self {
        Self {
            batches,
            after,
            held: None,
            read: 0,
        }
    }

    /// The next rows, one batch or two; empty at the end.
    pub(super) fn next_rows(&mut self) -> Result<Vec<RecordBatch>, CurrentError> {
        loop {
            let Some(batch) = self.batches.next().transpose()? else {
                let last = self.held.take();
                return last.map_or(Ok(Vec::new()), |last| {
                    let kept = self.kept(&last, None)?;
                    Ok(kept.into_iter().collect())
                });
            };
            self.read += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
            let Some(last) = batch.num_rows().checked_sub(1) else {
                continue;
            };
            let mut found = Vec::new();
            if let Some(held) = self.held.take() {
                found.extend(self.kept(&held, Some(&batch))?);
            }
            let row = batch.slice(last, 1);
            found.extend(self.kept(&batch.slice(0, last), Some(&row))?);
            // Copied, so that a row does not keep a whole batch in memory.
            self.held = Some(copied(&row)?);
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }

    /// The rows of a batch that stay; `next` begins with the row after it.
    fn kept(
        &self,
        batch: &RecordBatch,
        next: Option<&RecordBatch>,
    ) -> Result<Option<RecordBatch>, CurrentError> {
        let Some(last) = batch.num_rows().checked_sub(1) else {
            return Ok(None);
        };
        let keys = Columns::of(batch)?;
        let next = next.map(Columns::of).transpose()?;
        let superseded = |row: usize| {
            if row < last {
                keys.key(row) == keys.key(row + 1)
            } else {
                next.as_ref()
                    .is_some_and(|next| keys.key(row) == next.key(0))
            }
        };
        let passed = |row: usize| {
            let after = self.after.as_ref();
            after.is_some_and(|(pk, sk)| keys.key(row) <= (pk.as_str(), sk.as_deref()))
        };
        let kept: Vec<bool> = (0..=last)
            .map(|row| keys.op.value(row) != "REMOVE" && !superseded(row) && !passed(row))
            .collect();
        if !kept.contains(&true) {
            return Ok(None);
        }
        filter_record_batch(batch, &BooleanArray::from(kept))
            .map(Some)
            .map_err(|error| CurrentError::Merge(error.to_string()))
    }
}

fn copied(row: &RecordBatch) -> Result<RecordBatch, CurrentError> {
    arrow::compute::concat_batches(row.schema_ref(), [row, &row.slice(0, 0)])
        .map_err(|error| CurrentError::Merge(error.to_string()))
}

struct Columns<'a> {
    pk: &'a StringArray,
    sk: &'a StringArray,
    op: &'a StringArray,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, CurrentError> {
        let text = |index: usize| batch.columns().get(index)?.as_string_opt::<i32>();
        let find = || {
            Some(Self {
                pk: text(row_columns::PK)?,
                sk: text(row_columns::SK)?,
                op: text(row_columns::OP)?,
            })
        };
        find().ok_or_else(|| CurrentError::Merge("a row column is not text".to_owned()))
    }

    fn key(&self, row: usize) -> (&'a str, Option<&'a str>) {
        use arrow::array::Array;
        let sk = self.sk.is_valid(row).then(|| self.sk.value(row));
        (self.pk.value(row), sk)
    }
}
