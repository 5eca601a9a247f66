//! One event: decode everything, then store everything, then succeed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};

use super::context::Context;
use super::envelope::{StreamRecord, open_event, read_records};
use super::error::StreamError;
use super::summary::{StoredObject, Summary};
use crate::encode::{EncodeError, encode_batch};
use crate::layout::{change_key, day_of, quarantine_key};
use crate::pipeline::{Partitioning, Pipeline, TableBatch};
use crate::quarantine::{QuarantineEntry, RecordOrigin, to_jsonl};
use crate::record::Origin;
use crate::reject::Reject;
use crate::report::Report;

/// Takes one event of a DynamoDB stream into the lake.
///
/// `received_at_ms` (milliseconds since 1970-01-01 UTC) stands for the creation time where no record
/// of the event has one, and measures the lag. The same event gives the same objects, except for
/// rows whose time is the time of receipt. `origin` is [`Origin::Stream`] or [`Origin::Replay`].
///
/// # Errors
/// The event is not one of this table's stream, or an object could not be stored. Then some objects
/// may be stored already; the same event writes them again under the same keys.
pub async fn handle(
    event: &[u8],
    received_at_ms: i64,
    context: &Context,
    origin: Origin,
) -> Result<Summary, StreamError> {
    let start = (context.clock)();
    let decoded = decode(event, received_at_ms, context, origin)?;
    let decoded_at = (context.clock)();
    let objects = encode(decoded.batches, decoded.quarantined, context)?;
    let encoded_at = (context.clock)();
    let stored = put_all(objects, context).await?;
    let stored_at = (context.clock)();
    Ok(Summary {
        database: context.catalog.database.clone(),
        unmatched_table: context
            .catalog
            .entities
            .last()
            .map(|entity| entity.table.clone())
            .unwrap_or_default(),
        report: decoded.report,
        objects: stored,
        received_at_ms,
        lag_ms: decoded
            .newest_ms
            .map(|newest| received_at_ms.saturating_sub(newest)),
        decode: decoded_at.saturating_sub(start),
        encode: encoded_at.saturating_sub(decoded_at),
        put: stored_at.saturating_sub(encoded_at),
    })
}

/// An event as rows and quarantined records.
struct Decoded {
    batches: Vec<TableBatch>,
    quarantined: Vec<QuarantineEntry>,
    report: Report,
    newest_ms: Option<i64>,
}

fn decode(
    event: &[u8],
    received_at_ms: i64,
    context: &Context,
    origin: Origin,
) -> Result<Decoded, StreamError> {
    let open = open_event(event)?;
    let records = read_records(&open)?;
    check_source_table(&records, context)?;
    let newest_ms = records.iter().filter_map(|record| record.creation_ms).max();
    let stand_in = newest_ms.unwrap_or(received_at_ms);
    let mut pipeline = Pipeline::new(
        Arc::clone(&context.catalog),
        &context.secrets,
        Partitioning::ByDay,
    )
    .map_err(StreamError::Config)?;
    let mut quarantined = Vec::new();
    for record in &records {
        let at = record.creation_ms.unwrap_or(stand_in);
        let outcome = match record.change_record(at, origin) {
            Ok(change) => pipeline.push(&change).map(drop),
            Err(reject) => {
                pipeline.count_reject(&reject);
                Err(reject)
            }
        };
        if let Err(reject) = outcome {
            quarantined.push(quarantine(record, reject, at, origin));
        }
    }
    let batches = pipeline.finish().map_err(StreamError::Batch)?;
    Ok(Decoded {
        batches,
        quarantined,
        report: pipeline.take_report(),
        newest_ms,
    })
}

/// A record of another table is a mistake of the deployment: nothing of the event is stored.
fn check_source_table(records: &[StreamRecord<'_>], context: &Context) -> Result<(), StreamError> {
    let Some(expected) = &context.source_table else {
        return Ok(());
    };
    for (index, record) in records.iter().enumerate() {
        if let Some(found) = record.table().filter(|found| found != expected) {
            return Err(StreamError::SourceTable {
                index,
                expected: expected.clone(),
                found: found.to_owned(),
            });
        }
    }
    Ok(())
}

fn quarantine(
    record: &StreamRecord<'_>,
    reject: Reject,
    at: i64,
    source: Origin,
) -> QuarantineEntry {
    let arn = record.arn.as_deref().map(str::to_owned);
    let payload = record.payload.as_bytes().to_vec();
    QuarantineEntry {
        event_id: record.event_id.as_deref().map(str::to_owned),
        sequence_number: record.sequence_number.as_deref().map(str::to_owned),
        ..QuarantineEntry::new(reject, source, RecordOrigin::Stream { arn }, at, payload)
    }
}

/// An object that is to be stored.
struct Object {
    meta: StoredObject,
    body: Bytes,
}

impl Object {
    fn new(key: String, table: Option<String>, rows: usize, body: Vec<u8>) -> Self {
        let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
        let meta = StoredObject {
            key,
            table,
            rows: count(rows),
            bytes: count(body.len()),
        };
        Self {
            meta,
            body: body.into(),
        }
    }
}

fn encode(
    batches: Vec<TableBatch>,
    quarantined: Vec<QuarantineEntry>,
    context: &Context,
) -> Result<Vec<Object>, StreamError> {
    let mut objects = Vec::with_capacity(batches.len() + 1);
    for TableBatch {
        entity: index,
        day,
        batch,
    } in batches
    {
        let Some(entity) = context.catalog.entities.get(index) else {
            let table = format!("entity {index}");
            return Err(StreamError::Encode(EncodeError::Schema { table }));
        };
        let body = encode_batch(entity, &batch).map_err(StreamError::Encode)?;
        let key = change_key(entity, day.unwrap_or_default(), &batch);
        objects.push(Object::new(
            key,
            Some(entity.table.clone()),
            batch.num_rows(),
            body,
        ));
    }
    let mut days: BTreeMap<i32, Vec<QuarantineEntry>> = BTreeMap::new();
    for entry in quarantined {
        days.entry(day_of(entry.at)).or_default().push(entry);
    }
    for (day, entries) in days {
        let key = quarantine_key(day, &entries);
        objects.push(Object::new(key, None, entries.len(), to_jsonl(&entries)));
    }
    objects.sort_by(|left, right| left.meta.key.cmp(&right.meta.key));
    Ok(objects)
}

/// Stores all objects, some at the same time. One that fails does not stop the others: what is
/// stored now need not change when the event comes again.
async fn put_all(
    objects: Vec<Object>,
    context: &Context,
) -> Result<Vec<StoredObject>, StreamError> {
    let total = objects.len();
    let mut outcomes = stream::iter(objects)
        .map(|Object { meta, body }| async move {
            context.store.put(&meta.key, body).await.map(|()| meta)
        })
        .buffered(context.put_concurrency);
    let mut stored = Vec::with_capacity(total);
    let (mut failed, mut first) = (0, None);
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Ok(object) => stored.push(object),
            Err(error) => {
                failed += 1;
                first = first.or(Some(error));
            }
        }
    }
    match first {
        None => Ok(stored),
        Some(source) => Err(StreamError::Store {
            failed,
            objects: total,
            source,
        }),
    }
}

#[cfg(test)]
mod tests;
