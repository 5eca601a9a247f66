//! What the lake knows of a compaction, and which objects that leaves for readers.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::store::{ObjectMeta, Store, StoreError};

/// Form of [`CompactionRecord`].
pub(super) const VERSION: u32 = 1;

const FOLDER: &str = "state/compactions/";

/// `state/compactions/<table>/<day>/<id>.json`: objects that stand for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionRecord {
    /// Form of this record.
    pub version: u32,
    /// Digest over the inputs and all else that decides on the outputs.
    pub id: String,
    /// Lake table.
    pub table: String,
    /// `YYYY-MM-DD`.
    pub day: String,
    /// What is no longer needed.
    pub inputs: Vec<CompactedObject>,
    /// What stands for it.
    pub outputs: Vec<CompactedObject>,
    /// Rows of the outputs.
    pub rows: u64,
    /// Rows left out because they were the same change as another one.
    pub duplicates: u64,
    /// When the outputs had been written, milliseconds since 1970-01-01 UTC: the grace time begins.
    pub written_at_ms: i64,
}

/// An object as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedObject {
    /// Key relative to the lake's root.
    pub key: String,
    /// Size in bytes.
    pub size: u64,
    /// Last change, milliseconds since 1970-01-01 UTC; unknown of an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ms: Option<i64>,
}

impl CompactedObject {
    /// Whether this is the very object that is listed, and not one that was put in its place since.
    pub(super) fn is(&self, listed: &ObjectMeta) -> bool {
        self.key == listed.key
            && self.size == listed.size
            && self
                .modified_ms
                .is_none_or(|modified| modified == listed.modified_ms)
    }
}

impl From<&ObjectMeta> for CompactedObject {
    fn from(meta: &ObjectMeta) -> Self {
        Self {
            key: meta.key.clone(),
            size: meta.size,
            modified_ms: Some(meta.modified_ms),
        }
    }
}

/// Key of a record.
pub(super) fn record_key(table: &str, day: &str, id: &str) -> String {
    format!("{FOLDER}{table}/{day}/{id}.json")
}

/// The records of a table whose inputs have not all been deleted, in the order of their days; of
/// those of a day the oldest first.
///
/// # Errors
/// The store failed. A record that cannot be read is left out: its inputs stay.
pub async fn records(store: &Store, table: &str) -> Result<Vec<CompactionRecord>, StoreError> {
    let mut records = Vec::new();
    for meta in store.list(&format!("{FOLDER}{table}/")).await? {
        // Listed and gone: another run deleted the inputs.
        let Some(bytes) = store.get(&meta.key).await? else {
            continue;
        };
        let record = serde_json::from_slice::<CompactionRecord>(&bytes);
        records.extend(record.ok().filter(|record| record.version == VERSION));
    }
    records.sort_by(|a, b| (&a.day, a.written_at_ms, &a.id).cmp(&(&b.day, b.written_at_ms, &b.id)));
    Ok(records)
}

/// Objects told apart by whether others stand for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// What readers need.
    pub live: Vec<ObjectMeta>,
    /// What other live objects stand for, until it is deleted.
    pub superseded: Vec<ObjectMeta>,
}

/// Which of a table's listed change objects readers need. Taking the others too gives the same rows.
///
/// `listed` and `records` may be read in any order: an object is superseded only if all that stands
/// for it is listed too.
pub fn live(listed: Vec<ObjectMeta>, records: &[CompactionRecord]) -> Live {
    let superseded: HashSet<String> = {
        let by_key: HashMap<&str, &ObjectMeta> = listed
            .iter()
            .map(|meta| (meta.key.as_str(), meta))
            .collect();
        let is_there = |object: &CompactedObject| {
            by_key
                .get(object.key.as_str())
                .is_some_and(|m| object.is(m))
        };
        records
            .iter()
            .filter(|record| record.outputs.iter().all(is_there))
            .flat_map(|record| record.inputs.iter().filter(|input| is_there(input)))
            .map(|input| input.key.clone())
            .collect()
    };
    let (superseded, live) = listed
        .into_iter()
        .partition(|meta| superseded.contains(&meta.key));
    Live { live, superseded }
}
