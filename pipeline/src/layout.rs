//! Object keys: where rows lie in the lake.
//!
//! In: a batch, or what it was made from. Out: a key relative to the lake's root, `/` separated.
//!
//! - A key is a function of the records alone, with no clock and no chance, so that a retry writes
//!   the same bytes to the same key. A retry that holds another slice of the records makes another
//!   key; that is why rows carry `_event_id` and readers take one row per change.
//! - Values of items are never part of a key; only digits of a sequence number and a digest are.
//! - No name begins with `_` or `.`, which query engines hide, and all characters are those that
//!   neither S3 nor Hive escape.

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, Datelike};
use dynalake_schemas::Entity;
use sha2::{Digest, Sha256};

use crate::quarantine::QuarantineEntry;
use crate::time::{DAY_MS, format_date};

/// Folder of change objects.
pub const CHANGES: &str = "changes";
/// Folder of snapshot objects.
pub const SNAPSHOT: &str = "snapshot";
/// Folder of rows made from incremental exports, on their way into a baseline. No reader of a table
/// looks there.
pub const DELTAS: &str = "deltas";
/// Folder of quarantined records.
pub const QUARANTINE: &str = "quarantine";

/// Hex digits of a digest in a key: 64 bits, so that two of a table's objects of one day with the
/// same first and last sequence number differ but for one chance in 10^19.
const DIGEST_HEX: usize = 16;

/// Longest name of a data file that goes into a key as it is.
const MAX_NAME: usize = 128;

/// Stands in a key where a batch has no sequence number.
const NO_SEQUENCE_NUMBER: &str = "0";

/// Key of a batch of changes of one table and day:
/// `changes/<table>/dt=YYYY-MM-DD/<first sequence number>-<last>-<digest>.parquet`.
///
/// The digest is over stream label, event id, sequence number, operation and keys of every row in
/// order. The first three name a change; the others keep apart what hand-made events, which often
/// share their numbers, call the same. A row without a sequence number counts with its time too.
pub fn change_key(entity: &Entity, day: i32, batch: &RecordBatch) -> String {
    let (first, last) = sequence_bounds(batch);
    format!(
        "{CHANGES}/{}/dt={}/{first}-{last}-{}.parquet",
        entity.table,
        day_text(day),
        batch_digest(batch)
    )
}

/// Key of the `part`-th object that one data file of an export gives for one table:
/// `snapshot/<table>/export=<label>/<export id>-<data file>-<part>.parquet`.
///
/// `export_label` comes from [`export_label`]; `data_file` is `<export id>-<data file>` without its
/// extension. Unusual characters of it are replaced, and a digest then keeps names apart.
pub fn snapshot_key(table: &str, export_label: &str, data_file: &str, part: u32) -> String {
    export_key(SNAPSHOT, table, export_label, data_file, part)
}

/// [`snapshot_key`] in a folder of the lake: [`SNAPSHOT`] or [`DELTAS`]. The label of a window of time
/// is that of its begin, `-` and that of its end.
pub fn export_key(
    folder: &str,
    table: &str,
    export_label: &str,
    data_file: &str,
    part: u32,
) -> String {
    format!(
        "{}{}-{part:05}.parquet",
        export_prefix(folder, table, export_label),
        safe_name(data_file)
    )
}

/// What the keys of an export's objects of one table begin with.
pub fn export_prefix(folder: &str, table: &str, export_label: &str) -> String {
    format!("{folder}/{table}/export={export_label}/")
}

/// Key of records that were quarantined on one day: `quarantine/dt=YYYY-MM-DD/<digest>.jsonl`.
///
/// The digest is over what the records are (origin, event id, sequence number, payload) and not
/// over what is said about them, so that a replay that fails again replaces what it failed before.
pub fn quarantine_key(day: i32, entries: &[QuarantineEntry]) -> String {
    let mut digest = Sha256::new();
    for entry in entries {
        feed(&mut digest, Some(entry.origin.to_string().as_bytes()));
        feed(&mut digest, entry.event_id.as_deref().map(str::as_bytes));
        feed(
            &mut digest,
            entry.sequence_number.as_deref().map(str::as_bytes),
        );
        feed(&mut digest, Some(&entry.payload));
    }
    format!(
        "{QUARANTINE}/dt={}/{}.jsonl",
        day_text(day),
        hex(digest, 2 * DIGEST_HEX)
    )
}

/// Days since 1970-01-01 of an instant in milliseconds.
pub fn day_of(at_ms: i64) -> i32 {
    let day = at_ms.div_euclid(DAY_MS);
    i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX })
}

/// `YYYY-MM-DD` of a day since 1970-01-01.
///
/// Days outside the years 0 to 9999, which no query engine's date partitions hold, become the
/// nearest day inside.
pub fn day_text(day: i32) -> String {
    // Other years have a sign and more digits.
    let text = format_date(day).filter(|text| text.len() == "YYYY-MM-DD".len());
    text.unwrap_or_else(|| {
        let nearest = if day < 0 { "0000-01-01" } else { "9999-12-31" };
        nearest.to_owned()
    })
}

/// `YYYYMMDDTHHMMSSZ` of an export's time in milliseconds since 1970-01-01 UTC: the value of the
/// `export` partition. Whole seconds, since exports are exact to the second at best. `None` outside
/// the years 0 to 9999.
pub fn export_label(at_ms: i64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(at_ms)?;
    (0..=9999)
        .contains(&time.year())
        .then(|| time.format("%Y%m%dT%H%M%SZ").to_string())
}

/// Smallest and greatest sequence number of a batch, without leading zeros.
fn sequence_bounds(batch: &RecordBatch) -> (&str, &str) {
    let numbers = || {
        text_column(batch, "_seq")
            .into_iter()
            .flat_map(|column| column.iter())
            .flatten()
    };
    (strip(numbers().min()), strip(numbers().max()))
}

/// A padded sequence number without its leading zeros.
fn strip(number: Option<&str>) -> &str {
    match number.map(|number| number.trim_start_matches('0')) {
        Some(digits) if !digits.is_empty() => digits,
        _ => NO_SEQUENCE_NUMBER,
    }
}

fn batch_digest(batch: &RecordBatch) -> String {
    let text = |name| text_column(batch, name);
    let (streams, events, numbers) = (text("_stream"), text("_event_id"), text("_seq"));
    let (operations, partition_keys, sort_keys) = (text("_op"), text("_pk"), text("_sk"));
    let times = batch
        .column_by_name("_at")
        .and_then(|column| column.as_primitive_opt::<TimestampMillisecondType>());
    let mut digest = Sha256::new();
    for row in 0..batch.num_rows() {
        feed(&mut digest, cell(streams, row));
        feed(&mut digest, cell(events, row));
        feed(&mut digest, cell(numbers, row));
        feed(&mut digest, cell(operations, row));
        feed(&mut digest, cell(partition_keys, row));
        feed(&mut digest, cell(sort_keys, row));
        if cell(numbers, row).is_none() {
            let at = times
                .filter(|times| times.is_valid(row))
                .map(|times| times.value(row));
            feed(
                &mut digest,
                at.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice),
            );
        }
    }
    hex(digest, DIGEST_HEX)
}

fn text_column<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a StringArray> {
    batch.column_by_name(name)?.as_string_opt::<i32>()
}

fn cell(column: Option<&StringArray>, row: usize) -> Option<&[u8]> {
    let column = column.filter(|column| column.is_valid(row))?;
    Some(column.value(row).as_bytes())
}

/// Adds a value so that no two sequences of values look alike: length, then bytes.
fn feed(digest: &mut Sha256, value: Option<&[u8]>) {
    let length = value.map_or(u64::MAX, |value| {
        u64::try_from(value.len()).unwrap_or(u64::MAX)
    });
    digest.update(length.to_be_bytes());
    digest.update(value.unwrap_or_default());
}

/// The first digits of a digest.
pub(crate) fn hex(digest: Sha256, digits: usize) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        for nibble in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(nibble), 16));
        }
    }
    text.truncate(digits);
    text
}

/// A name of letters, digits, `-`, `_` and `.` that begins with a letter or digit.
fn safe_name(name: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let visible = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if visible && name.len() <= MAX_NAME && name.chars().all(safe) && !name.contains("..") {
        return name.to_owned();
    }
    let kept: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(MAX_NAME / 2)
        .collect();
    let mut digest = Sha256::new();
    digest.update(name.as_bytes());
    format!("x{kept}-{}", hex(digest, DIGEST_HEX))
}

#[cfg(test)]
mod tests;
