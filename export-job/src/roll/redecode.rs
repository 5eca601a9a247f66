//! Rows of a baseline that was made with other schemas, decoded again under the present ones.
//!
//! Each object of the base is turned back into items, which are converted like a data file: into
//! objects of `deltas/<table>/export=<new label>/`, which the merge takes instead of the base. An item
//! that does not fit the present schemas goes to quarantine and can be replayed from there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dynalake_pipeline::current::merge::merge;
use dynalake_pipeline::current::runs::{Run, runs_of};
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::rebuild::rebuild_item;
use dynalake_pipeline::record::Origin;
use dynalake_schemas::{Catalog, row_columns};

use super::plan::{Input, Inputs};
use super::report::RollReport;
use super::table::{Rolling, spool, text};
use crate::error::ExportError;
use crate::format::DataFormat;
use crate::locate::Located;
use crate::manifest::{DataFile, ExportKind, Summary};
use crate::options::NoProgress;
use crate::state::{FileRecord, Plan, StateKind, folder};
use crate::worker::{AgainLine, Job, convert_again};

/// Memory for a merge that has one run.
const MEMORY: usize = 1 << 20;

/// Decodes all objects of the base again, those of an earlier call left alone. `None` when told to
/// stop.
pub(super) async fn decode_again(
    rolling: &Rolling<'_>,
    (schemas, secrets): (&Arc<Catalog>, &Secrets),
    report: &mut RollReport,
) -> Result<Option<Inputs>, ExportError> {
    let plan = &rolling.plan;
    let job = Arc::new(Job {
        catalog: Arc::clone(rolling.catalog),
        secrets: secrets.clone(),
        plan: Plan {
            kind: StateKind::Rebased,
            ..plan.plan.clone()
        },
        summary: Summary {
            export_arn: plan.plan.export_id.clone(),
            export_id: plan.plan.export_id.clone(),
            table_arn: plan.table_arn.clone(),
            table: String::new(),
            kind: ExportKind::Full {
                export_time: plan.at_ms,
            },
            label: plan.plan.label.clone(),
            s3_bucket: None,
            s3_prefix: None,
            manifest_files_key: String::new(),
            format: DataFormat::Json,
            item_count: 0,
            billed_bytes: 0,
        },
        spool: rolling.spool.map(Into::into),
        progress: Arc::new(NoProgress),
        stop: Arc::new(AtomicBool::new(false)),
    });
    let mut decoded = Inputs::new();
    for (table, inputs) in &plan.base_objects {
        for input in inputs {
            if rolling.watch.stop() {
                return Ok(None);
            }
            let record = object(rolling, &job, schemas, table, input).await?;
            report.quarantined += record.report.quarantined;
            for (reason, count) in &record.report.quarantine_reasons {
                *report.quarantine_reasons.entry(reason.clone()).or_default() += count;
            }
            for object in record.objects {
                if object.table.is_empty() {
                    report.quarantine_objects.push(object.key);
                    continue;
                }
                let input = Input {
                    key: object.key,
                    bytes: object.bytes,
                };
                decoded.entry(object.table).or_default().push(input);
            }
        }
    }
    Ok(Some(decoded))
}

/// Deletes what was decoded again, once it is merged. The records stay: they tell what is in
/// quarantine.
pub(super) async fn clean_up(rolling: &Rolling<'_>, decoded: &Inputs) -> Result<(), ExportError> {
    for input in decoded.values().flatten() {
        rolling.lake.delete(&input.key).await?;
    }
    Ok(())
}

async fn object(
    rolling: &Rolling<'_>,
    job: &Arc<Job>,
    schemas: &Arc<Catalog>,
    table: &str,
    input: &Input,
) -> Result<FileRecord, ExportError> {
    let Some(index) = schemas.entities.iter().position(|e| e.table == *table) else {
        return Err(ExportError::Setup(format!(
            "the baseline's schemas have no table `{table}`"
        )));
    };
    let name = input.key.rsplit('/').next().unwrap_or(&input.key);
    let name = format!("{table}.{}", name.trim_end_matches(".parquet"));
    let key = format!("{}base/{name}.json", folder(&job.plan.export_id));
    if let Some(record) = rolling.state.read::<FileRecord>(&key).await?
        && is_whole(rolling, &record).await?
    {
        return Ok(record);
    }
    let folder = spool(rolling.spool)?;
    let runs = runs_of(rolling.lake, &input.key, folder.path()).await?;
    let file = Located {
        file: DataFile {
            key: input.key.clone(),
            name,
            format: DataFormat::Json,
            item_count: runs.iter().map(Run::rows).sum(),
            md5: [0; 16],
        },
        key: input.key.clone(),
        size: input.bytes,
        address: rolling.lake.address(&input.key),
    };
    let task = {
        let (job, file, spool) = (Arc::clone(job), file.clone(), folder.path().to_owned());
        let schemas = Arc::clone(schemas);
        tokio::task::spawn_blocking(move || {
            let lines = runs
                .into_iter()
                .map(|run| lines(&schemas, index, run, &spool));
            convert_again(&job, &file, lines)
        })
    };
    let converted = task.await.map_err(|error| ExportError::Worker {
        file: file.address.clone(),
        message: error.to_string(),
    })??;
    for object in &converted.objects {
        rolling.state.put_object(object).await?;
    }
    let record = FileRecord::new(&job.plan, &file, &converted);
    rolling.state.put_json(&key, &record).await?;
    Ok(record)
}

async fn is_whole(rolling: &Rolling<'_>, record: &FileRecord) -> Result<bool, ExportError> {
    for object in &record.objects {
        let meta = rolling.lake.head(&object.key).await?;
        if meta.is_none_or(|meta| meta.size != object.bytes) {
            return Ok(false);
        }
    }
    Ok(true)
}

type Lines = Box<dyn Iterator<Item = Result<AgainLine, ExportError>>>;

/// The items of a run as lines of a full export, with the road that each took. `catalog`: what they
/// were made with.
fn lines(
    catalog: &Arc<Catalog>,
    index: usize,
    run: Run,
    spool: &std::path::Path,
) -> Result<Lines, ExportError> {
    let Some(entity) = catalog.entities.get(index) else {
        return Err(ExportError::Setup("no such entity".to_owned()));
    };
    let merged = merge(entity, vec![run], MEMORY, spool)?;
    let catalog = Arc::clone(catalog);
    let lines = merged.flat_map(move |batch| -> Vec<Result<AgainLine, ExportError>> {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return vec![Err(error.into())],
        };
        (0..batch.num_rows())
            .map(|row| {
                let item =
                    rebuild_item(&catalog, index, &batch, row).map_err(ExportError::Setup)?;
                let origin = match text(&batch, row_columns::SOURCE, row) {
                    Some("incremental_export") => Origin::IncrementalExport,
                    Some("replay") => Origin::Replay,
                    _ => Origin::FullExport,
                };
                Ok((format!("{{\"Item\":{item}}}"), origin))
            })
            .collect()
    });
    Ok(Box::new(lines))
}
