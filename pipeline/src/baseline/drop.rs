//! Removes a baseline: its record first, then its objects.
//!
//! ```text
//! put state/drops/<label>.json            what is going to be removed
//! delete state/baselines/<label>.json     readers no longer take it
//! delete state/exports/<id>/complete.json
//! delete snapshot/*/export=<label>/…
//! delete state/exports/<id>/…, state/export-seconds/<label>.json
//! delete state/drops/<label>.json
//! ```
//! Whatever is left after a crash is finished by the next drop or retention, of whatever label.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::BaselineError;
use super::lock::Lock;
use super::record::{BaselineRecord, find, get_json, list, put_json, record_key};
use crate::layout;
use crate::store::Store;

const FOLDER: &str = "state/drops/";

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DropReport {
    /// Labels of the baselines, oldest first.
    pub labels: Vec<String>,
    /// Objects of rows.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
}

/// Removes one baseline, or what a conversion that was never committed left under this label. The
/// current baseline only where `force` says so.
///
/// A query that reads this baseline at the moment fails; readers of the current one notice nothing.
///
/// # Errors
/// There is no such baseline, it is the current one, the lock is taken, or the store failed. After a
/// failure the same call does what is left to do.
pub async fn drop(
    store: &Store,
    label: &str,
    force: bool,
    holder: &str,
    now_ms: i64,
) -> Result<DropReport, BaselineError> {
    let purpose = format!("removal of baseline {label}");
    let lock = Lock::acquire(store, holder, &purpose, now_ms).await?;
    let outcome = locked(store, label, force, &lock).await;
    lock.release(outcome).await
}

async fn locked(
    store: &Store,
    label: &str,
    force: bool,
    lock: &Lock,
) -> Result<DropReport, BaselineError> {
    let records = list(store).await?;
    let is_current = records.last().is_some_and(|newest| newest.label == label);
    if is_current && !force {
        return Err(BaselineError::IsCurrent {
            label: label.to_owned(),
        });
    }
    let known = records.iter().any(|record| record.label == label)
        || get_json::<Claim>(store, &claim_key(label)).await?.is_some()
        || store.head(&drop_key(label)).await?.is_some();
    if !known {
        return Err(BaselineError::NotFound {
            label: label.to_owned(),
        });
    }
    remove(store, &[label.to_owned()], lock).await
}

/// Removes these baselines and what earlier removals left, under the lock.
pub(super) async fn remove(
    store: &Store,
    labels: &[String],
    lock: &Lock,
) -> Result<DropReport, BaselineError> {
    for label in labels {
        let intent = intent(store, label).await?;
        lock.check().await?;
        put_json(store, &drop_key(label), &intent).await?;
        store.delete(&record_key(label)).await?;
    }
    let mut begun = BTreeMap::new();
    for meta in store.list(FOLDER).await? {
        let Some(intent) = get_json::<Intent>(store, &meta.key).await? else {
            continue;
        };
        if find(store, &intent.label).await?.is_some() {
            // Stopped before its first step: that baseline is as good as any.
            store.delete(&meta.key).await?;
        } else {
            begun.insert(intent.label.clone(), intent);
        }
    }
    let mut report = DropReport {
        labels: begun.keys().cloned().collect(),
        ..DropReport::default()
    };
    if begun.is_empty() {
        return Ok(report);
    }
    for intent in begun.values() {
        if let Some(export_id) = &intent.export_id {
            store
                .delete(&format!("{}complete.json", export_folder(export_id)))
                .await?;
        }
    }
    for meta in store.list(&format!("{}/", layout::SNAPSHOT)).await? {
        if label_of(&meta.key).is_some_and(|label| begun.contains_key(label)) {
            store.delete(&meta.key).await?;
            report.objects += 1;
            report.bytes += meta.size;
        }
    }
    for (label, intent) in &begun {
        if let Some(export_id) = &intent.export_id {
            for meta in store.list(&export_folder(export_id)).await? {
                store.delete(&meta.key).await?;
            }
        }
        store.delete(&claim_key(label)).await?;
        store.delete(&drop_key(label)).await?;
    }
    Ok(report)
}

/// What is going to be removed with a label.
async fn intent(store: &Store, label: &str) -> Result<Intent, BaselineError> {
    if let Some(begun) = get_json::<Intent>(store, &drop_key(label)).await?
        && begun.export_id.is_some()
    {
        return Ok(begun);
    }
    let record: Option<BaselineRecord> = find(store, label).await?;
    let export_id = match record {
        Some(record) => Some(record.export_id),
        None => get_json::<Claim>(store, &claim_key(label))
            .await?
            .map(|claim| claim.export_id),
    };
    Ok(Intent {
        label: label.to_owned(),
        export_id,
    })
}

/// Takes back an unfinished removal, because the same export is committed anew.
pub(super) async fn forget_drop(store: &Store, label: &str) -> Result<(), BaselineError> {
    Ok(store.delete(&drop_key(label)).await?)
}

/// `state/drops/<label>.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    label: String,
    export_id: Option<String>,
}

/// What is read of `state/export-seconds/<label>.json`, which a conversion writes first.
#[derive(Debug, Deserialize)]
struct Claim {
    export_id: String,
}

fn drop_key(label: &str) -> String {
    format!("{FOLDER}{label}.json")
}

fn claim_key(label: &str) -> String {
    format!("state/export-seconds/{label}.json")
}

fn export_folder(export_id: &str) -> String {
    format!("state/exports/{export_id}/")
}

/// The label in `snapshot/<table>/export=<label>/<object>`.
fn label_of(key: &str) -> Option<&str> {
    key.split('/').nth(2)?.strip_prefix("export=")
}
