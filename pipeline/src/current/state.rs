//! The rule over two merged streams of rows: a table's changes and its baseline.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use dynalake_schemas::row_columns;

use super::error::CurrentError;
use super::merge::Merge;
use super::rows::{Row, Rows};
use super::rule::KeyChanges;

/// Rows of an output batch.
const OUTPUT_ROWS: usize = 4096;

/// What was read to find the state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) rows: u64,
    pub(super) changes: u64,
    pub(super) baseline: u64,
}

/// Gives the state's rows to `sink`, sorted by key. `baseline` has one row per key and is of time
/// `baseline_at`; changes later than `until` (milliseconds) do not exist.
pub(super) fn state(
    changes: Merge,
    baseline: Merge,
    baseline_at: Option<i64>,
    until: Option<i64>,
    sink: &mut dyn FnMut(RecordBatch) -> Result<(), CurrentError>,
) -> Result<Counts, CurrentError> {
    let (mut changes, mut baseline) = (Rows::new(changes)?, Rows::new(baseline)?);
    let mut output = Output {
        rows: Vec::new(),
        given: 0,
        sink,
    };
    loop {
        let order = match (changes.key(), baseline.key()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(change), Some(base)) => change.cmp(&base),
        };
        let base = if order == Ordering::Less {
            None
        } else {
            baseline.take()?
        };
        let decided = if order == Ordering::Greater {
            None
        } else {
            take_changes(&mut changes, until)?
                .and_then(|changes| changes.decide(baseline_at).cloned())
        };
        match (decided, base) {
            (Some(row), _) if row.text(row_columns::OP) == Some("REMOVE") => {}
            (Some(row), _) | (None, Some(row)) => output.push(row)?,
            (None, None) => {}
        }
    }
    output.flush()?;
    Ok(Counts {
        rows: output.given,
        changes: changes.read,
        baseline: baseline.read,
    })
}

/// All change rows of the next key.
fn take_changes(
    rows: &mut Rows,
    until: Option<i64>,
) -> Result<Option<KeyChanges<Row>>, CurrentError> {
    let mut found: Option<KeyChanges<Row>> = None;
    let Some(first) = rows.take()? else {
        return Ok(None);
    };
    let mut next = Some(first.clone());
    while let Some(row) = next.take() {
        if until.is_none_or(|until| row.at() <= until) {
            let (stream, seq) = (row.text(row_columns::STREAM), row.text(row_columns::SEQ));
            let (stream, seq) = (stream.map(str::to_owned), seq.map(str::to_owned));
            let (stream, seq) = (stream.as_deref(), seq.as_deref());
            let (at, schema) = (row.at(), row.schema());
            match &mut found {
                Some(found) => found.observe(stream, seq, at, schema, row),
                None => found = Some(KeyChanges::new(stream, seq, at, schema, row)),
            }
        }
        let same = rows.key().is_some_and(|(pk, sk)| {
            first.text(row_columns::PK) == Some(pk) && first.text(row_columns::SK) == sk
        });
        if same {
            next = rows.take()?;
        }
    }
    Ok(found)
}

struct Output<'s> {
    rows: Vec<Row>,
    given: u64,
    sink: &'s mut dyn FnMut(RecordBatch) -> Result<(), CurrentError>,
}

impl Output<'_> {
    fn push(&mut self, row: Row) -> Result<(), CurrentError> {
        self.rows.push(row);
        if self.rows.len() >= OUTPUT_ROWS {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), CurrentError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        // Rows that stand together come from the same batch.
        let mut batches: Vec<&Arc<RecordBatch>> = Vec::new();
        let mut places = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let place = batches
                .iter()
                .rposition(|batch| Arc::ptr_eq(batch, &row.batch));
            let place = place.unwrap_or_else(|| {
                batches.push(&row.batch);
                batches.len() - 1
            });
            places.push((place, row.row));
        }
        let batches: Vec<&RecordBatch> = batches.into_iter().map(AsRef::as_ref).collect();
        let batch = interleave_record_batch(&batches, &places)
            .map_err(|error| CurrentError::Merge(error.to_string()))?;
        self.given += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
        self.rows.clear();
        (self.sink)(batch)
    }
}
