//! What the lake knows of a committed baseline.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::BaselineError;
use crate::layout;
use crate::store::{Store, StoreError};

/// Form of [`BaselineRecord`] that this software writes and reads.
pub const VERSION: u32 = 1;

const FOLDER: &str = "state/baselines/";

/// How a baseline came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineKind {
    /// A full export.
    FullExport,
    /// An older baseline rolled forward by contiguous incremental exports.
    Rolled,
}

/// `state/baselines/<label>.json`: a complete state of the source table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineRecord {
    /// Form of this record: [`VERSION`].
    pub version: u32,
    /// `YYYYMMDDTHHMMSSZ`: value of the partition `export=…` that holds the rows.
    pub label: String,
    /// Instant of the state, milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// How it came to be.
    pub kind: BaselineKind,
    /// Id of the export, or of the roll (`rolled-<label>`): its state is in `state/exports/<id>/`.
    pub export_id: String,
    /// The source table's ARN.
    pub table_arn: String,
    /// Fingerprint of the schemas and secrets that the rows were made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_fingerprint: Option<String>,
    /// What each lake table has of it; a table that has no rows is there with zeros.
    pub tables: BTreeMap<String, TableCounts>,
    /// When it was committed, milliseconds since 1970-01-01 UTC.
    pub committed_at_ms: i64,
}

/// Rows of one lake table in a baseline, when it was committed. Items that come back from quarantine
/// later are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCounts {
    /// Rows.
    pub rows: u64,
    /// Objects.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
}

impl BaselineRecord {
    /// Whether both say the same but for the time of the commit.
    pub(super) fn same_baseline(&self, other: &Self) -> bool {
        let other = Self {
            committed_at_ms: self.committed_at_ms,
            ..other.clone()
        };
        *self == other
    }
}

/// Key of a baseline's record.
pub fn record_key(label: &str) -> String {
    format!("{FOLDER}{label}.json")
}

/// What the keys of a baseline's objects of one table begin with.
pub fn objects_prefix(table: &str, label: &str) -> String {
    layout::export_prefix(layout::SNAPSHOT, table, label)
}

/// All committed baselines, oldest first.
///
/// # Errors
/// The store failed, or a record is not one that this software can read.
pub async fn list(store: &Store) -> Result<Vec<BaselineRecord>, BaselineError> {
    let mut records = Vec::new();
    for meta in store.list(FOLDER).await? {
        // Listed and gone: it was dropped meanwhile.
        records.extend(read(store, &meta.key).await?);
    }
    records.sort_by_key(|record| record.at_ms);
    Ok(records)
}

/// The baseline that readers take: the newest one, of those at or before `as_of` (milliseconds since
/// 1970-01-01 UTC) where that is given. `None` when nothing is committed that early.
///
/// # Errors
/// As of [`list`].
pub async fn current(
    store: &Store,
    as_of: Option<i64>,
) -> Result<Option<BaselineRecord>, BaselineError> {
    let mut records = list(store).await?;
    if let Some(as_of) = as_of {
        records.retain(|record| record.at_ms <= as_of);
    }
    Ok(records.pop())
}

/// The record of a label.
pub(super) async fn find(
    store: &Store,
    label: &str,
) -> Result<Option<BaselineRecord>, BaselineError> {
    read(store, &record_key(label)).await
}

async fn read(store: &Store, key: &str) -> Result<Option<BaselineRecord>, BaselineError> {
    let Some(bytes) = store.get(key).await? else {
        return Ok(None);
    };
    let unreadable = |problem: String| BaselineError::Unreadable {
        address: store.address(key),
        problem,
    };
    let form: Form =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if form.version != VERSION {
        return Err(unreadable(format!(
            "it has form {}, this software reads form {VERSION}",
            form.version
        )));
    }
    let record: BaselineRecord =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if record_key(&record.label) != key {
        return Err(unreadable(
            "it is named otherwise than its label".to_owned(),
        ));
    }
    Ok(Some(record))
}

#[derive(Deserialize)]
struct Form {
    version: u32,
}

/// Writes a state record.
pub(super) async fn put_json<T: Serialize + Sync>(
    store: &Store,
    key: &str,
    value: &T,
) -> Result<(), BaselineError> {
    Ok(store.put(key, json(value)?).await?)
}

/// A state record as text.
pub(super) fn json<T: Serialize>(value: &T) -> Result<bytes::Bytes, BaselineError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| BaselineError::Invalid {
        problem: format!("a state record cannot be written: {error}"),
    })?;
    text.push(b'\n');
    Ok(text.into())
}

/// A state record that may be absent; `None` also where it is not of this form.
pub(super) async fn get_json<T: serde::de::DeserializeOwned>(
    store: &Store,
    key: &str,
) -> Result<Option<T>, StoreError> {
    let bytes = store.get(key).await?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}
