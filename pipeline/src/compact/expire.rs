//! Deletes the inputs of compactions whose grace time is over.

use std::collections::{HashMap, HashSet};

use super::error::CompactError;
use super::options::{CompactOptions, Watch};
use super::record::{CompactionRecord, record_key};
use super::report::CompactReport;
use crate::store::{ObjectMeta, Store};

/// Deletes what records of a table say is no longer needed, and gives the records that stay. An input
/// that was put anew since is no longer that input, and stays.
pub(super) async fn expire(
    store: &Store,
    records: Vec<CompactionRecord>,
    listed: &mut Vec<ObjectMeta>,
    options: &CompactOptions,
    watch: &dyn Watch,
    report: &mut CompactReport,
) -> Result<Vec<CompactionRecord>, CompactError> {
    if options.dry_run {
        return Ok(records);
    }
    let mut there: HashMap<String, ObjectMeta> = listed
        .drain(..)
        .map(|meta| (meta.key.clone(), meta))
        .collect();
    // What one compaction wrote may be the next one's input. The older record must go first: it says
    // that its outputs are there.
    let mut needed: HashSet<String> = records.iter().flat_map(output_keys).collect();
    let mut stay = records;
    loop {
        let before = stay.len();
        for record in std::mem::take(&mut stay) {
            let over = record.written_at_ms.saturating_add(options.grace_ms) <= options.now_ms;
            let waits = record
                .inputs
                .iter()
                .any(|input| needed.contains(&input.key));
            if !over || waits {
                stay.push(record);
            } else if report.unfinished || watch.stop() {
                report.unfinished = true;
                stay.push(record);
            } else {
                delete_inputs(store, &record, &mut there, report).await?;
                for key in output_keys(&record) {
                    needed.remove(&key);
                }
            }
        }
        if stay.len() == before {
            break;
        }
    }
    listed.extend(there.into_values());
    listed.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(stay)
}

fn output_keys(record: &CompactionRecord) -> impl Iterator<Item = String> {
    record.outputs.iter().map(|output| output.key.clone())
}

/// Deletes the inputs of one record, then the record.
async fn delete_inputs(
    store: &Store,
    record: &CompactionRecord,
    there: &mut HashMap<String, ObjectMeta>,
    report: &mut CompactReport,
) -> Result<(), CompactError> {
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
        // Somebody else deleted them: the inputs that are left are ordinary objects again.
        report.problems.push(format!(
            "table `{}`, day {}: what stands for {} merged objects is not there any more; those \
             that are left are merged anew",
            record.table,
            record.day,
            record.inputs.len()
        ));
    }
    let key = record_key(&record.table, &record.day, &record.id);
    Ok(store.delete(&key).await?)
}
