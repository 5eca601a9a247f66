//! The lake as a conversion reads and writes it: objects and the records of [`crate::state`].
//!
//! Every write is idempotent, and the order of writes is what makes a crash harmless: objects before
//! the record of their data file, records before `complete.json`, deletions in the other order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use dynalake_pipeline::baseline;
use dynalake_pipeline::kept_schemas;
use dynalake_pipeline::store::{ObjectMeta, Store, StoreError};
use dynalake_schemas::Catalog;
use futures::{StreamExt, TryStreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data_file::Mark;
use crate::error::{ExportError, RefusalKind};
use crate::locate::{Export, Located};
use crate::spool::Spooled;
use crate::state::{
    Complete, FORMAT, FileRecord, Plan, WRITER, complete_key, file_key, folder, part_key, plan_key,
};

/// State records read or looked up at once.
const LOOKUPS: usize = 16;

/// The lake, as far as a conversion writes to it.
pub(crate) struct Lake {
    store: Store,
    /// Test hook: puts that are still let through.
    puts_left: Option<AtomicU64>,
}

/// Who may delete what another conversion wrote.
pub(crate) struct Replacer<'a> {
    pub(crate) holder: &'a str,
    pub(crate) now_ms: i64,
}

impl Lake {
    pub(crate) fn new(store: Store, stop_after_puts: Option<u64>) -> Self {
        Self {
            store,
            puts_left: stop_after_puts.map(AtomicU64::new),
        }
    }

    /// Puts an object from its spool file.
    pub(crate) async fn put_object(&self, object: &Spooled) -> Result<(), ExportError> {
        self.put_file(&object.key, &object.path).await
    }

    /// Puts an object from a file.
    pub(crate) async fn put_file(&self, key: &str, path: &Path) -> Result<(), ExportError> {
        self.admit()?;
        Ok(self.store.put_file(key, path).await?)
    }

    /// Records that a data file is whole.
    pub(crate) async fn put_file_record(
        &self,
        plan: &Plan,
        record: &FileRecord,
    ) -> Result<(), ExportError> {
        self.put_json(&file_key(&plan.export_id, &record.data_file), record)
            .await
    }

    /// Records that a part of a data file is whole, and not the last one.
    pub(crate) async fn put_part_record(
        &self,
        plan: &Plan,
        part: u64,
        record: &FileRecord,
    ) -> Result<(), ExportError> {
        self.put_json(&part_key(&plan.export_id, &record.data_file, part), record)
            .await
    }

    /// The first parts of a data file that are in the lake, without a gap, and never the last one.
    pub(crate) async fn parts(
        &self,
        plan: &Plan,
        file: &Located,
    ) -> Result<Vec<FileRecord>, ExportError> {
        let mut parts = Vec::new();
        if plan.part_bytes.is_none() {
            return Ok(parts);
        }
        let mut mark = Mark::default();
        loop {
            let key = part_key(&plan.export_id, &file.file.name, plan.part_at(mark));
            let Some(record) = self.read::<FileRecord>(&key).await? else {
                return Ok(parts);
            };
            let Some(next) = record.goes_on_at(plan, file, mark) else {
                return Ok(parts);
            };
            for object in &record.objects {
                let there = self.store.head(&object.key).await?;
                if there.is_none_or(|meta| meta.size != object.bytes) {
                    return Ok(parts);
                }
            }
            parts.push(record);
            mark = next;
        }
    }

    /// Records that the export is whole.
    pub(crate) async fn put_complete(&self, complete: &Complete) -> Result<(), ExportError> {
        self.put_json(&complete_key(&complete.export_id), complete)
            .await
    }

    /// Makes sure that no other export has rows in the same partition. One that was begun and never
    /// finished makes way where the caller wants to replace.
    pub(crate) async fn claim_second(
        &self,
        wanted: &Claim,
        label: &str,
        replace: Option<&Replacer<'_>>,
    ) -> Result<(), ExportError> {
        let key = format!("state/export-seconds/{label}.json");

        if self.put_json_if_absent(&key, wanted).await? {
            return Ok(());
        }
        let Some(owner) = self.read::<Claim>(&key).await? else {
            return Err(self.unreadable(&key));
        };
        if owner == *wanted {
            return Ok(());
        }
        let complete = self
            .store
            .head(&complete_key(&owner.export_id))
            .await?
            .is_some();
        if replace.is_some() && !complete {
            let plan: Option<Plan> = self.read(&plan_key(&owner.export_id)).await?;
            let prefixes = plan.iter().flat_map(Plan::prefixes).collect();
            self.clear(&owner.export_id, prefixes).await?;
            self.store.delete(&plan_key(&owner.export_id)).await?;
            return self.put_json(&key, wanted).await;
        }
        Err(ExportError::refused(
            RefusalKind::SameSecond,
            self.store.address(&key),
            format!(
                "the partition `export={label}` already belongs to export `{}`",
                owner.export_arn
            ),
            if complete {
                "exports of one second show the same state of the table: that one is enough"
            } else {
                "finish that one, or convert with `--replace` to delete what it left behind"
            },
        ))
    }

    /// The plan that holds: this one, or an earlier run's if it leads to the same result.
    pub(crate) async fn agree(
        &self,
        wanted: Plan,
        replace: Option<&Replacer<'_>>,
    ) -> Result<Plan, ExportError> {
        let key = plan_key(&wanted.export_id);
        if self.put_json_if_absent(&key, &wanted).await? {
            return Ok(wanted);
        }
        let earlier: Option<Plan> = self.read(&key).await?;
        match (earlier, replace) {
            (Some(earlier), _) if earlier.agrees(&wanted) => Ok(earlier),
            (earlier, Some(replacer)) => {
                let Replacer { holder, now_ms } = replacer;
                let (label, id) = (&wanted.label, &wanted.export_id);
                baseline::uncommit(&self.store, label, id, holder, *now_ms).await?;
                let plans = [earlier.as_ref(), Some(&wanted)];
                let prefixes = plans.into_iter().flatten().flat_map(Plan::prefixes);
                self.clear(&wanted.export_id, prefixes.collect()).await?;
                self.put_json(&key, &wanted).await?;
                Ok(wanted)
            }
            (Some(earlier), None) => Err(self.other_plan(&earlier, &wanted)),
            (None, None) => Err(self.unreadable(&key)),
        }
    }

    /// Keeps the schemas of a plan, for readers of the baseline that will be made with them.
    pub(crate) async fn keep_schemas(
        &self,
        plan: &Plan,
        catalog: &Catalog,
    ) -> Result<(), ExportError> {
        self.admit()?;
        Ok(kept_schemas::keep(&self.store, &plan.catalog, catalog).await?)
    }

    /// Data files that an earlier run finished under this plan, by name.
    pub(crate) async fn finished(
        &self,
        plan: &Plan,
        export: &Export,
    ) -> Result<BTreeMap<String, FileRecord>, ExportError> {
        let recorded = sizes(self.store.list(&folder(&plan.export_id)).await?);
        let names =
            |file: &&Located| recorded.contains_key(&file_key(&plan.export_id, &file.file.name));
        let candidates: Vec<&Located> = export.files.iter().filter(names).collect();
        if candidates.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut there = HashMap::new();
        for table in &plan.tables {
            there.extend(sizes(self.store.list(&plan.objects_prefix(table)).await?));
        }
        let there = &there;
        let checked = futures::stream::iter(candidates)
            .map(|file| async move { self.finished_file(plan, file, there).await })
            .buffered(LOOKUPS)
            .try_collect::<Vec<_>>()
            .await?;
        Ok(checked
            .into_iter()
            .flatten()
            .map(|record| (record.data_file.clone(), record))
            .collect())
    }

    /// The record of a data file, if an earlier run finished it under this plan.
    pub(crate) async fn finished_one(
        &self,
        plan: &Plan,
        file: &Located,
    ) -> Result<Option<FileRecord>, ExportError> {
        let Some(record) = self
            .read::<FileRecord>(&file_key(&plan.export_id, &file.file.name))
            .await?
        else {
            return Ok(None);
        };
        let mut there = HashMap::new();
        for object in &record.objects {
            let meta = self.store.head(&object.key).await?;
            there.extend(meta.map(|meta| (meta.key, meta.size)));
        }
        self.finished_file(plan, file, &there).await
    }

    /// Fails where a plan is of other schemas, secrets or software than these.
    pub(crate) fn same_conversion(&self, plan: &Plan, catalog: &str) -> Result<(), ExportError> {
        let ours = Plan {
            format: FORMAT,
            writer: WRITER.to_owned(),
            catalog: catalog.to_owned(),
            ..plan.clone()
        };
        if plan.agrees(&ours) {
            return Ok(());
        }
        Err(self.other_plan(plan, &ours))
    }

    fn other_plan(&self, earlier: &Plan, wanted: &Plan) -> ExportError {
        ExportError::refused(
            RefusalKind::OtherPlan,
            self.store.address(&plan_key(&earlier.export_id)),
            difference(earlier, wanted),
            "give the same schemas, secrets and program version to go on with it, or convert with \
             `--replace` to delete what it wrote and start over",
        )
    }

    /// Path or address of a key, for messages.
    pub(crate) fn address(&self, key: &str) -> String {
        self.store.address(key)
    }

    async fn finished_file(
        &self,
        plan: &Plan,
        file: &Located,
        there: &HashMap<String, u64>,
    ) -> Result<Option<FileRecord>, ExportError> {
        let key = file_key(&plan.export_id, &file.file.name);
        let Some(record) = self.read::<FileRecord>(&key).await? else {
            return Ok(None);
        };
        for object in record
            .objects
            .iter()
            .filter(|object| object.table.is_empty())
        {
            let there = self.store.head(&object.key).await?;
            if there.is_none_or(|meta| meta.size != object.bytes) {
                return Ok(None);
            }
        }
        Ok(record.holds(plan, file, there).then_some(record))
    }

    /// Deletes what another conversion wrote: first what says that it is whole, then its records and
    /// objects, those without a record too. The plan stays, so that a crash in between leaves a lake
    /// in which the next run sees it again.
    pub(crate) async fn clear(
        &self,
        export_id: &str,
        prefixes: BTreeSet<String>,
    ) -> Result<(), ExportError> {
        self.store.delete(&complete_key(export_id)).await?;
        let plan = plan_key(export_id);
        for meta in self.store.list(&folder(export_id)).await? {
            if meta.key == plan {
                continue;
            }
            if let Some(record) = self.read::<FileRecord>(&meta.key).await? {
                for object in &record.objects {
                    self.store.delete(&object.key).await?;
                }
            }
            self.store.delete(&meta.key).await?;
        }
        for prefix in prefixes {
            for meta in self.store.list(&prefix).await? {
                self.store.delete(&meta.key).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn put_json<T: Serialize + Sync>(
        &self,
        key: &str,
        value: &T,
    ) -> Result<(), ExportError> {
        self.admit()?;
        Ok(self.store.put(key, json(value)?).await?)
    }

    pub(crate) async fn put_json_if_absent<T: Serialize + Sync>(
        &self,
        key: &str,
        value: &T,
    ) -> Result<bool, ExportError> {
        self.admit()?;
        Ok(self.store.put_if_absent(key, json(value)?).await?)
    }

    /// A record; `None` if there is none or it is not of this form.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<T>, StoreError> {
        let bytes = self.store.get(key).await?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn admit(&self) -> Result<(), ExportError> {
        let Some(left) = &self.puts_left else {
            return Ok(());
        };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .map_or(Err(ExportError::Stopped), |_| Ok(()))
    }

    fn unreadable(&self, key: &str) -> ExportError {
        ExportError::refused(
            RefusalKind::OtherPlan,
            self.store.address(key),
            "this state record is not one that this program can read",
            "use a newer dynalake, or convert with `--replace` to start over",
        )
    }
}

/// `state/export-seconds/<label>.json`: who writes a partition.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) export_id: String,
    pub(crate) export_arn: String,
}

fn sizes(objects: Vec<ObjectMeta>) -> HashMap<String, u64> {
    objects
        .into_iter()
        .map(|meta| (meta.key, meta.size))
        .collect()
}

fn json<T: Serialize>(value: &T) -> Result<Bytes, ExportError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| {
        ExportError::Setup(format!("a state record cannot be written: {error}"))
    })?;
    text.push(b'\n');
    Ok(text.into())
}

/// What differs between two plans, for the operator.
fn difference(earlier: &Plan, wanted: &Plan) -> String {
    if earlier.writer != wanted.writer || earlier.format != wanted.format {
        return format!(
            "dynalake {} converted this export or began to, this is {}",
            earlier.writer, wanted.writer
        );
    }
    if earlier.catalog != wanted.catalog {
        return "this export was converted, or begun, with other schemas or another secret"
            .to_owned();
    }
    format!(
        "another export with this id, `{}`, was converted or begun",
        earlier.export_arn
    )
}
