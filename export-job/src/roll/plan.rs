//! What a roll merges, written down before the first object is.

use std::collections::BTreeMap;

use dynalake_pipeline::baseline::{self, BaselineRecord, objects_prefix};
use dynalake_pipeline::kept_schemas::{self, KeptSchemasError};
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::store::Store;
use dynalake_schemas::{Catalog, Entity};
use serde::{Deserialize, Serialize};

use super::chain::Window;
use super::options::RollOptions;
use crate::error::{ExportError, RefusalKind};
use crate::lake::{Claim, Lake, Replacer};
use crate::state::{
    FileRecord, Plan, StateKind, complete_key, fingerprint, folder, is_data_file_record, plan_key,
};

/// Least bytes of a row group; less makes uselessly small ones.
const MIN_ROW_GROUP: usize = 1 << 16;

/// An object as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Input {
    pub(super) key: String,
    pub(super) bytes: u64,
}

/// Objects by lake table.
pub(super) type Inputs = BTreeMap<String, Vec<Input>>;

/// `plan.json` of a roll: everything on which its bytes depend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RollPlan {
    /// What it has in common with the plan of an export.
    #[serde(flatten)]
    pub(super) plan: Plan,
    pub(super) table_arn: String,
    pub(super) at_ms: i64,
    /// Label of the baseline that is rolled forward.
    pub(super) base: String,
    /// Whether its objects of a table follow each other in the order of their keys.
    pub(super) base_in_order: bool,
    pub(super) base_objects: Inputs,
    pub(super) windows: Vec<PlannedWindow>,
    /// Whether the base was made with other schemas: its rows are decoded again.
    pub(super) decode_again: bool,
}

/// A window of a roll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedWindow {
    pub(super) export_id: String,
    pub(super) from_time: i64,
    pub(super) to_time: i64,
    pub(super) objects: Inputs,
}

impl RollPlan {
    /// Whether both lead to the same rows; how they are cut may differ.
    fn agrees(&self, other: &Self) -> bool {
        let other = Self {
            plan: Plan {
                row_group_bytes: self.plan.row_group_bytes,
                object_bytes: self.plan.object_bytes,
                ..other.plan.clone()
            },
            ..other.clone()
        };
        *self == other
    }
}

/// Lists what there is to merge and writes it down, or finds the plan of an earlier run. What an
/// earlier run with another plan left is deleted.
pub(super) async fn agree(
    state: &Lake,
    lake: &Store,
    (catalog, secrets): (&Catalog, &Secrets),
    (base, windows): (&BaselineRecord, &[Window]),
    options: &RollOptions,
) -> Result<RollPlan, ExportError> {
    let wanted = wanted(state, lake, (catalog, secrets), (base, windows), options).await?;
    let id = &wanted.plan.export_id;
    let replacer = Replacer {
        holder: &options.holder,
        now_ms: options.now_ms,
    };
    let claim = Claim {
        export_id: id.clone(),
        export_arn: id.clone(),
    };
    let replace = options.replace.then_some(&replacer);
    state
        .claim_second(&claim, &wanted.plan.label, replace)
        .await?;
    let key = plan_key(id);
    if state.put_json_if_absent(&key, &wanted).await? {
        return Ok(wanted);
    }
    let earlier: Option<RollPlan> = state.read(&key).await?;
    if let Some(earlier) = earlier.as_ref().filter(|earlier| earlier.agrees(&wanted)) {
        return Ok(earlier.clone());
    }
    baseline::uncommit(
        lake,
        &wanted.plan.label,
        id,
        &options.holder,
        options.now_ms,
    )
    .await?;
    let plans = [earlier.as_ref(), Some(&wanted)].into_iter().flatten();
    let prefixes = plans.flat_map(|plan| {
        let rebased = Plan {
            kind: StateKind::Rebased,
            ..plan.plan.clone()
        };
        let rebased: Vec<String> = rebased.prefixes().collect();
        plan.plan.prefixes().chain(rebased)
    });
    let prefixes = prefixes.collect();
    state.clear(id, prefixes).await?;
    state.put_json(&key, &wanted).await?;
    Ok(wanted)
}

async fn wanted(
    state: &Lake,
    lake: &Store,
    (catalog, secrets): (&Catalog, &Secrets),
    (base, windows): (&BaselineRecord, &[Window]),
    options: &RollOptions,
) -> Result<RollPlan, ExportError> {
    let last = windows.last().map_or(base.at_ms, |window| window.to);
    let label = dynalake_pipeline::layout::export_label(last)
        .ok_or_else(|| ExportError::Setup("a window ends outside of our era".to_owned()))?;
    let id = format!("rolled-{label}");
    let base_objects = base_objects(lake, base).await?;
    let decode_again = base.schema_fingerprint != Some(fingerprint(catalog, secrets));
    if decode_again {
        base_schemas(lake, base, &base_objects).await?;
    }
    let mut planned = Vec::new();
    for window in windows {
        planned.push(PlannedWindow {
            export_id: window.export_id.clone(),
            from_time: window.from,
            to_time: window.to,
            objects: window_objects(state, lake, &window.export_id).await?,
        });
    }
    let row_group = u64::try_from(options.row_group_bytes.max(MIN_ROW_GROUP)).unwrap_or(u64::MAX);
    Ok(RollPlan {
        plan: Plan::rolled(
            id,
            label,
            catalog,
            secrets,
            (row_group, options.object_bytes),
        ),
        table_arn: base.table_arn.clone(),
        at_ms: last,
        base: base.label.clone(),
        base_in_order: base.export_id.starts_with(ROLLED),
        base_objects,
        windows: planned,
        decode_again,
    })
}

/// What the id of a roll begins with.
pub(super) const ROLLED: &str = "rolled-";

/// Objects of a baseline, also what came back from quarantine since it was committed.
pub(super) async fn base_objects(
    lake: &Store,
    base: &BaselineRecord,
) -> Result<Inputs, ExportError> {
    let mut objects = Inputs::new();
    for table in base.tables.keys() {
        let listed = lake.list(&objects_prefix(table, &base.label)).await?;
        let listed = listed.into_iter().map(|meta| Input {
            key: meta.key,
            bytes: meta.size,
        });
        objects.insert(table.clone(), listed.collect());
    }
    Ok(objects)
}

/// Objects of a converted window, as its data files' records name them. They may have been deleted
/// since: nobody but a roll needs them.
async fn window_objects(state: &Lake, lake: &Store, id: &str) -> Result<Inputs, ExportError> {
    let mut objects = Inputs::new();
    let lost = |key: &str| {
        ExportError::refused(
            RefusalKind::Unfinished,
            lake.address(key),
            "the object is not in the lake any more",
            "convert the export again: what is missing is made anew",
        )
    };
    let plan: Option<Plan> = state.read(&plan_key(id)).await?;
    let plan = plan.ok_or_else(|| lost(&plan_key(id)))?;
    let mut there = BTreeMap::new();
    for prefix in plan.prefixes() {
        let listed = lake.list(&prefix).await?;
        there.extend(listed.into_iter().map(|meta| (meta.key, meta.size)));
    }
    for meta in lake.list(&folder(id)).await? {
        if !is_data_file_record(id, &meta.key) {
            continue;
        }
        let Some(record) = state.read::<FileRecord>(&meta.key).await? else {
            return Err(ExportError::refused(
                RefusalKind::Unfinished,
                lake.address(&meta.key),
                "this record of a data file is not readable",
                "convert the export again: what is missing is made anew",
            ));
        };
        for object in record.objects {
            if !object.table.is_empty() {
                if there.get(&object.key) != Some(&object.bytes) {
                    return Err(lost(&object.key));
                }
                let input = Input {
                    key: object.key,
                    bytes: object.bytes,
                };
                objects.entry(object.table).or_default().push(input);
            }
        }
    }
    Ok(objects)
}

/// The schemas that the base was made with, to turn its rows back into items: not possible where they
/// hide values, or where the lake does not have them.
pub(super) async fn base_schemas(
    lake: &Store,
    base: &BaselineRecord,
    objects: &Inputs,
) -> Result<Catalog, ExportError> {
    let refused = |problem: String| {
        ExportError::refused(
            RefusalKind::OtherSchemas,
            format!("baseline {}", base.label),
            format!(
                "it was made with other schemas, and its rows cannot be decoded again: {problem}"
            ),
            "take a full export, and roll that one forward from then on",
        )
    };
    let kept = match kept_schemas::of(lake, base).await {
        Ok(kept) => kept.catalog,
        Err(KeptSchemasError::Baseline(error)) => return Err(error.into()),
        Err(other) => return Err(refused(other.to_string())),
    };
    let hides = |entity: &&Entity| entity.columns.iter().any(|c| c.transform.is_some());
    let filled = |entity: &&Entity| objects.get(&entity.table).is_some_and(|o| !o.is_empty());
    if let Some(entity) = kept.entities.iter().filter(filled).find(hides) {
        let table = &entity.table;
        return Err(refused(format!(
            "those of table `{table}` hide values (`transform`)"
        )));
    }
    Ok(kept)
}

/// Fails if the base is no longer what was planned: something came back from quarantine meanwhile.
pub(super) async fn check_base(
    lake: &Store,
    base: &BaselineRecord,
    plan: &RollPlan,
) -> Result<(), ExportError> {
    if base_objects(lake, base).await? == plan.base_objects {
        return Ok(());
    }
    Err(ExportError::refused(
        RefusalKind::Unfinished,
        format!("baseline {}", base.label),
        "its objects have changed while it was rolled forward",
        format!(
            "run the same again; `{}` is made anew then",
            complete_key(&plan.plan.export_id)
        ),
    ))
}
