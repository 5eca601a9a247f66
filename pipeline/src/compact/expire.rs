//! Deletes the inputs of compactions whose grace time is over.

use std::collections::HashMap;

use super::error::CompactError;
use super::options::{CompactOptions, Watch};
use super::record::{CompactionRecord, record_key};
use super::report::CompactReport;
use crate::store::{ObjectMeta, Store};

/// Deletes what records of a table say is no longer needed, oldest record first, and gives the records
/// that stay. An input that was put anew since is no longer that input, and stays.
pub(super) async fn expire(
    store: &Store,
    records: Vec<CompactionRecord>,
    listed: &mut Vec<ObjectMeta>,
    options: &CompactOptions,
    watch: &dyn Watch,
    report: &mut CompactReport,
) -> Result<Vec<CompactionRecord>, CompactError> {
    let mut there: HashMap<String, ObjectMeta> = listed
        .drain(..)
        .map(|meta| (meta.key.clone(), meta))
        .collect();
    let mut stay = Vec::new();
    for record in records {
        let over = record.written_at_ms.saturating_add(options.grace_ms) <= options.now_ms;
        if over && watch.stop() {
            report.unfinished = true;
        }
        if !over || options.dry_run || report.unfinished {
            stay.push(record);
            continue;
        }
        let complete = record
            .outputs
            .iter()
            .all(|output| there.get(&output.key).is_some_and(|meta| output.is(meta)));
        if complete {
            for input in &record.inputs {
                if there.get(&input.key).is_some_and(|meta| input.is(meta)) {
                    store.delete(&input.key).await?;
                    there.remove(&input.key);
                    report.deleted.objects += 1;
                    report.deleted.bytes += input.size;
                }
            }
        } else {
            // Deleted by somebody else, or merged further and deleted: then a later record stood for
            // them. Either way the inputs that are left are ordinary objects again.
            report.problems.push(format!(
                "table `{}`, day {}: what stands for {} merged objects is not there any more; those \
                 that are left are merged anew",
                record.table,
                record.day,
                record.inputs.len()
            ));
        }
        store
            .delete(&record_key(&record.table, &record.day, &record.id))
            .await?;
    }
    listed.extend(there.into_values());
    listed.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(stay)
}
