//! The rows of one table (and day) on their way to a record batch.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray,
    UInt32Array,
};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use dynalake_schemas::row_columns;

use crate::decode::buffer::ColumnBuffer;
use crate::record::SequenceNumber;

/// What a row says of the change it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowOrigin<'a> {
    pub(crate) pk: &'a str,
    pub(crate) sk: Option<&'a str>,
    pub(crate) operation: &'static str,
    pub(crate) reason: Option<&'static str>,
    pub(crate) at: i64,
    pub(crate) stream: Option<&'a str>,
    pub(crate) sequence_number: Option<SequenceNumber>,
    pub(crate) event_id: Option<&'a str>,
    pub(crate) source: &'static str,
    pub(crate) schema: i32,
    pub(crate) old: Option<&'a str>,
}

/// Rows of one table in column buffers.
#[derive(Debug)]
pub(crate) struct RowBuffer {
    schema: SchemaRef,
    pk: ColumnBuffer,
    sk: ColumnBuffer,
    operations: Vec<&'static str>,
    reasons: Vec<Option<&'static str>>,
    at: Vec<i64>,
    stream: ColumnBuffer,
    sequence_numbers: Vec<Option<SequenceNumber>>,
    event_id: ColumnBuffer,
    sources: Vec<&'static str>,
    schemas: Vec<i32>,
    old: ColumnBuffer,
    pub(crate) rest: ColumnBuffer,
    pub(crate) columns: Vec<ColumnBuffer>,
    /// Estimate of the bytes held.
    pub(crate) bytes: usize,
}

impl RowBuffer {
    /// An empty buffer for a table's schema (row columns first, then typed ones).
    pub(crate) fn new(schema: SchemaRef) -> Self {
        let text = || ColumnBuffer::new(&DataType::Utf8);
        let typed = schema.fields().iter().skip(row_columns::COUNT);
        let columns = typed
            .map(|field| ColumnBuffer::new(field.data_type()))
            .collect();
        Self {
            pk: text(),
            sk: text(),
            operations: Vec::new(),
            reasons: Vec::new(),
            at: Vec::new(),
            stream: text(),
            sequence_numbers: Vec::new(),
            event_id: text(),
            sources: Vec::new(),
            schemas: Vec::new(),
            old: text(),
            rest: text(),
            columns,
            bytes: 0,
            schema,
        }
    }

    /// Whole rows so far.
    pub(crate) fn rows(&self) -> usize {
        self.at.len()
    }

    /// Completes the row whose typed columns and `_rest` were just written.
    pub(crate) fn push(&mut self, row: &RowOrigin<'_>) {
        self.pk.push_bytes(row.pk.as_bytes());
        self.sk.push_text(row.sk);
        self.operations.push(row.operation);
        self.reasons.push(row.reason);
        self.at.push(row.at);
        self.stream.push_text(row.stream);
        self.sequence_numbers.push(row.sequence_number);
        self.event_id.push_text(row.event_id);
        self.sources.push(row.source);
        self.schemas.push(row.schema);
        self.old.push_text(row.old);
    }

    /// Cuts everything back to the first `rows` rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        for column in [
            &mut self.pk,
            &mut self.sk,
            &mut self.stream,
            &mut self.event_id,
        ] {
            column.truncate(rows);
        }
        self.old.truncate(rows);
        self.rest.truncate(rows);
        self.columns
            .iter_mut()
            .for_each(|column| column.truncate(rows));
        self.operations.truncate(rows);
        self.reasons.truncate(rows);
        self.at.truncate(rows);
        self.sequence_numbers.truncate(rows);
        self.sources.truncate(rows);
        self.schemas.truncate(rows);
    }

    /// The rows as one record batch, sorted by (`_pk`, `_sk`, `_seq`); equal rows keep their order.
    pub(crate) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let schema = Arc::clone(&self.schema);
        let text = |buffer: ColumnBuffer| buffer.finish(&DataType::Utf8);
        let sequence_numbers: StringArray = self
            .sequence_numbers
            .iter()
            .map(|number| number.as_ref().map(SequenceNumber::as_str))
            .collect();
        let at = TimestampMillisecondArray::from(self.at).with_timezone("UTC");
        let mut arrays: Vec<ArrayRef> = vec![
            text(self.pk)?,
            text(self.sk)?,
            Arc::new(StringArray::from(self.operations)),
            Arc::new(StringArray::from(self.reasons)),
            Arc::new(at),
            text(self.stream)?,
            Arc::new(sequence_numbers),
            text(self.event_id)?,
            Arc::new(StringArray::from(self.sources)),
            Arc::new(Int32Array::from(self.schemas)),
            text(self.rest)?,
            text(self.old)?,
        ];
        let typed = schema.fields().iter().skip(row_columns::COUNT);
        for (column, field) in self.columns.into_iter().zip(typed) {
            arrays.push(column.finish(field.data_type())?);
        }
        sort(RecordBatch::try_new(schema, arrays)?)
    }
}

/// Sorts rows by (`_pk`, `_sk`, `_seq`), NULL first, stably.
pub(crate) fn sort(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let text = |index: usize| {
        batch
            .columns()
            .get(index)
            .and_then(|c| c.as_string_opt::<i32>())
    };
    let (Some(pk), Some(sk), Some(seq)) = (
        text(row_columns::PK),
        text(row_columns::SK),
        text(row_columns::SEQ),
    ) else {
        return Err(ArrowError::SchemaError(
            "the row columns are not text".to_owned(),
        ));
    };
    let compare = |a: usize, b: usize| {
        pk.value(a)
            .cmp(pk.value(b))
            .then_with(|| nullable(sk, a, b))
            .then_with(|| nullable(seq, a, b))
    };
    if (1..pk.len()).all(|row| compare(row - 1, row) != Ordering::Greater) {
        return Ok(batch);
    }
    let rows = u32::try_from(pk.len())
        .map_err(|_| ArrowError::InvalidArgumentError("a batch has too many rows".to_owned()))?;
    let mut order: Vec<u32> = (0..rows).collect();
    let at = |row: u32| usize::try_from(row).unwrap_or(0);
    order.sort_by(|&a, &b| compare(at(a), at(b)));
    take_record_batch(&batch, &UInt32Array::from(order))
}

fn nullable(column: &StringArray, a: usize, b: usize) -> Ordering {
    let value = |row: usize| column.is_valid(row).then(|| column.value(row));
    value(a).cmp(&value(b))
}
