//! Records in, sorted record batches out: route, decode, batch. Pure and synchronous.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use dynalake_schemas::{Catalog, Transform};

use crate::batch::{RowBuffer, RowOrigin};
use crate::counts::{Counts, PendingCounts};
use crate::decode::plan::EntityPlan;
use crate::decode::row::{HeldKeys, RowScratch, collect_transforms, decode_row, image_text};
use crate::decode::transform::HmacKey;
use crate::json::{Tape, Value};
use crate::record::{ChangeRecord, Operation, Reason};
use crate::reject::{ReasonCode, Reject};
use crate::report::Report;
use crate::route::{Change, KeyTexts, Router, Row, key_texts};
use crate::time::{DAY_MS, format_date};

/// A table's rows are set aside as a finished batch beyond this, so that Arrow's 32-bit offsets never
/// overflow. Callers with a memory budget take batches long before.
pub const MAX_BATCH_BYTES: usize = 1 << 30;
/// Bytes that a row is counted with beside the text of its images.
const ROW_BYTES: usize = 160;

/// Secrets of the deployment. `Debug` never shows them.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Key of `hmac_sha256` columns.
    pub hmac_key: Option<Vec<u8>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.hmac_key.as_ref().map(|_| "(secret)");
        f.debug_struct("Secrets").field("hmac_key", &shown).finish()
    }
}

/// How rows are divided into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioning {
    /// One batch per table and day of `_at` (changes).
    ByDay,
    /// One batch per table (snapshots).
    Whole,
}

/// A sorted batch of one table.
#[derive(Debug, Clone)]
pub struct TableBatch {
    /// Index in [`Catalog::entities`].
    pub entity: usize,
    /// Days since 1970-01-01 of `_at`; `None` with [`Partitioning::Whole`].
    pub day: Option<i32>,
    /// Rows in the schema of [`dynalake_schemas::Entity::arrow_schema`], sorted by (`_pk`, `_sk`,
    /// `_seq`).
    pub batch: RecordBatch,
}

/// Buffered rows do not have the layout of their schema. A defect of dynalake; nothing of the batch
/// may be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error(
    "rows of table `{table}` do not have their schema's layout; this is a defect of dynalake, please report it"
)]
pub struct BatchError {
    /// Lake table.
    pub table: String,
    /// What Arrow said.
    #[source]
    pub source: ArrowError,
}

/// Entity and day.
type BufferKey = (usize, Option<i32>);

/// Routes and decodes records into column buffers, one set per table (and day).
pub struct Pipeline {
    catalog: Arc<Catalog>,
    partitioning: Partitioning,
    hmac_key: Option<HmacKey>,
    router: Router,
    plans: Vec<EntityPlan>,
    schemas: Vec<SchemaRef>,
    buffers: BTreeMap<BufferKey, RowBuffer>,
    /// Buffers that reached [`MAX_BATCH_BYTES`].
    full: Vec<(BufferKey, RowBuffer)>,
    bytes: usize,
    report: Report,
    counts: Vec<Counts>,
    pending: PendingCounts,
    tapes: Tapes,
    rows: Vec<Row>,
    scratch: RowScratch,
}

#[derive(Default)]
struct Tapes {
    keys: Tape,
    new: Tape,
    old: Tape,
}

impl Pipeline {
    /// A pipeline for one catalog.
    ///
    /// # Errors
    /// When a column needs a secret that is not given.
    pub fn new(
        catalog: Arc<Catalog>,
        secrets: &Secrets,
        partitioning: Partitioning,
    ) -> Result<Self, String> {
        let hmac_key = secrets
            .hmac_key
            .as_deref()
            .filter(|key| !key.is_empty())
            .and_then(HmacKey::new);
        let hashed = catalog.entities.iter().find_map(|entity| {
            let hashed = |t: Option<Transform>| t == Some(Transform::HmacSha256);
            let column = entity
                .columns
                .iter()
                .find(|column| hashed(column.transform))?;
            Some(format!("`{}` of entity `{}`", column.name, entity.name))
        });
        if let (Some(column), None) = (hashed, &hmac_key) {
            return Err(format!(
                "column {column} has `transform = \"hmac_sha256\"`, but no key is given; \
                 set DYNALAKE_HMAC_KEY to the deployment's secret"
            ));
        }
        Ok(Self {
            router: Router::new(&catalog),
            plans: catalog
                .entities
                .iter()
                .map(|e| EntityPlan::new(&catalog, e))
                .collect(),
            schemas: catalog
                .entities
                .iter()
                .map(dynalake_schemas::Entity::arrow_schema)
                .collect(),
            counts: catalog.entities.iter().map(|_| Counts::default()).collect(),
            catalog,
            partitioning,
            hmac_key,
            buffers: BTreeMap::new(),
            full: Vec::new(),
            bytes: 0,
            report: Report::default(),
            pending: PendingCounts::default(),
            tapes: Tapes::default(),
            rows: Vec::new(),
            scratch: RowScratch::default(),
        })
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Turns one record into its rows and gives their number.
    ///
    /// # Errors
    /// Why the record belongs in quarantine. No row of it was kept, but for the tombstones in tables
    /// that the item has left; the reason is already counted in the report, and the caller keeps the
    /// payload.
    pub fn push(&mut self, record: &ChangeRecord<'_>) -> Result<u32, Reject> {
        let rows = self.try_push(record, true);
        match &rows {
            Ok(_) => self.report.records += 1,
            Err(reject) => self.count_reject(reject),
        }
        rows
    }

    /// Writes a tombstone into every table that the record's keys allow, besides whatever else is
    /// known of the record: for a change that cannot be read, which leaves its item in no table. Gives
    /// their number; the record itself is not counted.
    ///
    /// # Errors
    /// The keys cannot be read. Nothing is written or counted.
    pub fn push_tombstones(&mut self, record: &ChangeRecord<'_>) -> Result<u32, Reject> {
        self.try_push(
            &ChangeRecord {
                operation: Operation::Remove,
                new_image: None,
                old_image: None,
                ..*record
            },
            false,
        )
    }

    /// Counts a record that failed, such as one that never became a [`ChangeRecord`].
    pub fn count_reject(&mut self, reject: &Reject) {
        self.report.records += 1;
        self.report.quarantined += 1;
        *self
            .report
            .quarantine_reasons
            .entry(reject.code.as_str().to_owned())
            .or_default() += 1;
    }

    /// `counted`: the first row is the record's own.
    fn try_push(&mut self, record: &ChangeRecord<'_>, counted: bool) -> Result<u32, Reject> {
        let mut tapes = std::mem::take(&mut self.tapes);
        let mut rows = std::mem::take(&mut self.rows);
        let result = self.push_images(record, counted, &mut tapes, &mut rows);
        self.tapes = tapes;
        self.rows = rows;
        result
    }

    fn push_images(
        &mut self,
        record: &ChangeRecord<'_>,
        counted: bool,
        tapes: &mut Tapes,
        rows: &mut Vec<Row>,
    ) -> Result<u32, Reject> {
        let day = self.day(record.at)?;
        let new_name = if record.keys.is_some() {
            "NewImage"
        } else {
            "Item"
        };
        let new = scan(&mut tapes.new, record.new_image, new_name)?;
        let old = scan(&mut tapes.old, record.old_image, "OldImage")?;
        let given = scan(&mut tapes.keys, record.keys, "Keys")?;
        let Some((keyed, keyed_name)) = given
            .map(|keys| (keys, "Keys"))
            .or(new.map(|new| (new, new_name)))
        else {
            return Err(Reject::new(
                ReasonCode::MalformedRecord,
                "the record has neither keys nor an item",
            ));
        };
        let keys = key_texts(&self.catalog, keyed).map_err(|reject| reject.under(keyed_name))?;
        if given.is_some() {
            for (image, name) in [(new, new_name), (old, "OldImage")] {
                if let Some(image) = image {
                    keys.check_image(&self.catalog, image)
                        .map_err(|reject| reject.under(name))?;
                }
            }
        }
        let change = Change {
            operation: record.operation,
            reason: record.reason,
            new,
            old,
        };
        self.router.rows(&self.catalog, &keys, change, rows)?;
        self.write_rows(record, &keys, change, day, (rows, counted))
    }

    /// Writes all rows of a record, or of one that belongs in quarantine the tombstones alone: that
    /// the item left the other tables is true whatever its own cannot hold, and no later record says
    /// it again.
    fn write_rows(
        &mut self,
        record: &ChangeRecord<'_>,
        keys: &KeyTexts<'_>,
        change: Change<'_>,
        day: Option<i32>,
        (rows, counted): (&[Row], bool),
    ) -> Result<u32, Reject> {
        self.pending.clear();
        let mut rejected = None;
        for (position, row) in rows.iter().enumerate() {
            let Err(reject) = self.write_row(record, keys, change, day, (row, rows)) else {
                continue;
            };
            let reject = reject.under(if record.keys.is_some() {
                "NewImage"
            } else {
                "Item"
            });
            let reject = match self.catalog.entities.get(row.entity) {
                Some(entity) => reject.of_entity(entity.name.clone()),
                None => reject,
            };
            if position == 0 {
                rejected = Some(reject);
                continue;
            }
            let first = usize::from(rejected.is_some());
            for row in rows.iter().take(position).skip(first) {
                if let Some(buffer) = self.buffers.get_mut(&(row.entity, day)) {
                    buffer.truncate(buffer.rows().saturating_sub(1));
                }
            }
            return Err(reject);
        }
        // Only now is the record in: count it, and look at the size.
        self.pending.commit(&mut self.counts);
        let image_bytes = [record.new_image, record.old_image]
            .iter()
            .flatten()
            .map(|raw| raw.len())
            .sum::<usize>();
        let first = usize::from(rejected.is_some());
        for (position, row) in rows.iter().enumerate().skip(first) {
            let extra = position > 0 || !counted;
            let bytes = ROW_BYTES + if position > 0 { 0 } else { image_bytes };
            self.bytes += bytes;
            if let Some(counts) = self.counts.get_mut(row.entity) {
                counts.row(extra);
            }
            let key = (row.entity, day);
            let full = self.buffers.get_mut(&key).is_some_and(|buffer| {
                buffer.bytes += bytes;
                buffer.bytes > MAX_BATCH_BYTES
            });
            if full && let Some(buffer) = self.buffers.remove(&key) {
                self.full.push((key, buffer));
            }
        }
        match rejected {
            Some(reject) => Err(reject),
            None => Ok(u32::try_from(rows.len()).unwrap_or(u32::MAX)),
        }
    }

    fn write_row(
        &mut self,
        record: &ChangeRecord<'_>,
        keys: &KeyTexts<'_>,
        change: Change<'_>,
        day: Option<i32>,
        (row, rows): (&Row, &[Row]),
    ) -> Result<(), Reject> {
        let (Some(plan), Some(schema)) =
            (self.plans.get_mut(row.entity), self.schemas.get(row.entity))
        else {
            return Err(Reject::new(ReasonCode::MalformedRecord, "no such entity"));
        };
        let buffer = self
            .buffers
            .entry((row.entity, day))
            .or_insert_with(|| RowBuffer::new(Arc::clone(schema)));
        let mut captures = Vec::new();
        self.catalog
            .entity_captures(row.entity, &keys.pk, keys.sk.as_deref(), &mut captures);
        let removed = row.operation == Operation::Remove;
        let item = change.new.filter(|_| !removed);
        let held = HeldKeys {
            source: &self.catalog.source,
            partition_key: keys.declared.0,
            sort_key: keys.declared.1,
        };
        let before = buffer.rows();
        let target = (buffer.columns.as_mut_slice(), &mut buffer.rest);
        let key = self.hmac_key.as_ref();
        let scratch = &mut self.scratch;
        if let Err(reject) = decode_row(plan, item, held, &captures, target, key, scratch) {
            buffer.truncate(before);
            return Err(reject);
        }
        self.pending.add(row.entity, scratch);
        let (keep_old_image, version) = (plan.keep_old_image, plan.version);
        let old = change.old.filter(|_| keep_old_image).map(|old| {
            // Nothing that any table of this change hides may show here.
            let mut transforms = Vec::new();
            for row in rows {
                if let Some(plan) = self.plans.get_mut(row.entity) {
                    collect_transforms(plan, old, &mut transforms);
                }
            }
            image_text(old, &transforms, self.hmac_key.as_ref())
        });
        if let Some(buffer) = self.buffers.get_mut(&(row.entity, day)) {
            buffer.push(&RowOrigin {
                pk: &keys.pk,
                sk: keys.sk.as_deref(),
                operation: row.operation.as_str(),
                reason: row.reason.map(Reason::as_str),
                at: record.at,
                stream: record.stream,
                sequence_number: record.sequence_number,
                event_id: record.event_id,
                source: record.origin.as_str(),
                schema: version,
                old: old.as_deref(),
            });
        }
        Ok(())
    }

    fn day(&self, at: i64) -> Result<Option<i32>, Reject> {
        let day = i32::try_from(at.div_euclid(DAY_MS))
            .ok()
            .filter(|&day| format_date(day).is_some());
        match (self.partitioning, day) {
            (Partitioning::Whole, Some(_)) => Ok(None),
            (Partitioning::ByDay, Some(day)) => Ok(Some(day)),
            (_, None) => Err(Reject::new(
                ReasonCode::MalformedRecord,
                "the change time is out of range",
            )),
        }
    }

    /// Bytes held in column buffers, by estimate: the text of the items plus a constant per row.
    pub fn buffered_bytes(&self) -> usize {
        self.bytes
    }

    /// Takes all buffered rows as sorted batches, in a fixed order (entity, day).
    ///
    /// # Errors
    /// Never, but for a defect ([`BatchError`]).
    pub fn finish(&mut self) -> Result<Vec<TableBatch>, BatchError> {
        let mut buffers = std::mem::take(&mut self.full);
        buffers.extend(std::mem::take(&mut self.buffers));
        buffers.sort_by_key(|(key, _)| *key);
        self.bytes = 0;
        let filled = buffers.into_iter().filter(|(_, buffer)| buffer.rows() > 0);
        filled
            .map(|(key, buffer)| self.finish_buffer(key, buffer))
            .collect()
    }

    /// Takes the batch that holds most bytes.
    ///
    /// # Errors
    /// As [`Pipeline::finish`].
    pub fn finish_largest(&mut self) -> Result<Option<TableBatch>, BatchError> {
        let taken = self.full.pop().or_else(|| {
            let order =
                |key: &BufferKey, buffer: &RowBuffer| (buffer.bytes, std::cmp::Reverse(*key));
            let largest = self
                .buffers
                .iter()
                .max_by_key(|(key, buffer)| order(key, buffer));
            self.buffers.remove_entry(&largest.map(|(key, _)| *key)?)
        });
        let Some((key, buffer)) = taken else {
            return Ok(None);
        };
        self.bytes = self.bytes.saturating_sub(buffer.bytes);
        if buffer.rows() == 0 {
            Ok(None)
        } else {
            self.finish_buffer(key, buffer).map(Some)
        }
    }

    fn finish_buffer(
        &self,
        (entity, day): BufferKey,
        buffer: RowBuffer,
    ) -> Result<TableBatch, BatchError> {
        let table = || self.catalog.entities.get(entity).map(|e| e.table.clone());
        let batch = buffer.finish().map_err(|source| BatchError {
            table: table().unwrap_or_default(),
            source,
        })?;
        Ok(TableBatch { entity, day, batch })
    }

    /// Counts so far.
    pub fn report(&mut self) -> &Report {
        let mut tables = Report::default();
        for ((entity, plan), counts) in self
            .catalog
            .entities
            .iter()
            .zip(&self.plans)
            .zip(&mut self.counts)
        {
            if let Some(table) = counts.take(plan) {
                tables.tables.insert(entity.table.clone(), table);
            }
        }
        self.report.merge(&tables);
        &self.report
    }

    /// Counts so far; starts again at zero.
    pub fn take_report(&mut self) -> Report {
        self.report();
        std::mem::take(&mut self.report)
    }
}

/// Scans an image; `name` leads the paths of what is wrong with it.
fn scan<'v>(
    tape: &'v mut Tape,
    raw: Option<&'v [u8]>,
    name: &str,
) -> Result<Option<Value<'v>>, Reject> {
    let Some(raw) = raw else { return Ok(None) };
    tape.scan(raw).map_err(|reject| reject.under(name))?;
    Ok(Value::root(tape, raw))
}

#[cfg(test)]
mod tests;
