//! `audit`: what the lake said before a baseline, compared with it, table by table.
//!
//! A report in the making is kept at `state/audits/<label>.part.json`, so that an audit may take several
//! invocations. A table that one whole invocation cannot compare is left out, and said to be.

use std::collections::BTreeSet;

use dynalake_pipeline::audit::{self, Audit, AuditReport, Verdict, report_key};
use dynalake_pipeline::current::{CurrentError, MergeOptions};
use dynalake_pipeline::time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::StepError;
use super::{Call, Log};

/// Samples of what is not equal that a report keeps per table.
const SAMPLES: usize = 10;

/// What came of an audit so far.
pub(super) struct Audited {
    pub(super) done: bool,
    pub(super) answer: Value,
}

/// An audit under way.
#[derive(Debug, Serialize, Deserialize)]
struct Part {
    report: AuditReport,
    /// Tables that are compared, or have nothing to compare.
    finished: BTreeSet<String>,
    /// Tables that take more than an invocation.
    too_large: BTreeSet<String>,
}

pub(super) async fn audit_step(call: &Call<'_>, log: &mut Log) -> Result<Value, StepError> {
    let label = call.event.label.as_deref().ok_or_else(|| {
        StepError::Event("the event names no baseline; give its `label`".to_owned())
    })?;
    let audited = audited(call, label, log).await?;
    Ok(json!({
        "label": label,
        "audit": audited.answer,
        "audit_done": audited.done,
    }))
}

/// Goes on with the audit of a baseline for as long as time allows; does nothing if its report is there.
pub(super) async fn audited(
    call: &Call<'_>,
    label: &str,
    log: &mut Log,
) -> Result<Audited, StepError> {
    let store = &call.context.store;
    if store.head(&report_key(label)).await?.is_some() {
        return Ok(Audited {
            done: true,
            answer: json!({"unchanged": true}),
        });
    }
    let Some((at_ms, true)) = time::parse_pattern(label, "%Y%m%dT%H%M%SZ") else {
        return Err(StepError::Event(format!(
            "`{label}` is not the label of a baseline, such as 20260501T000000Z"
        )));
    };
    let mut audit = Audit::begin(store, &call.context.catalog, label, at_ms, SAMPLES).await?;
    // A first baseline has nothing to differ from.
    if audit.report.older.is_none() {
        return finish(call, &audit.report, &BTreeSet::new(), log).await;
    }
    let part_key = format!("state/audits/{label}.part.json");
    let mut part = match store.get(&part_key).await? {
        Some(bytes) => serde_json::from_slice(&bytes).ok(),
        None => None,
    }
    .filter(|part: &Part| part.report.older == audit.report.older)
    .unwrap_or_else(|| Part {
        report: audit.report.clone(),
        finished: BTreeSet::new(),
        too_large: BTreeSet::new(),
    });
    audit.report = part.report.clone();
    let mut fresh = true;
    for index in 0..audit.tables() {
        let Some(table) = call.context.catalog.entities.get(index) else {
            continue;
        };
        let table = &table.table;
        if part.finished.contains(table) || part.too_large.contains(table) {
            continue;
        }
        let options = MergeOptions {
            memory_bytes: call.context.memory_mb << 20,
            spool: call.context.spool.folder().join("audit"),
        };
        std::fs::create_dir_all(&options.spool).map_err(|source| StepError::Spool {
            path: options.spool.display().to_string(),
            source,
        })?;
        let over = || call.deadline.is_over();
        match audit.table(index, &options, &over).await {
            Ok(()) => {
                part.finished.insert(table.clone());
                fresh = false;
            }
            Err(CurrentError::Stopped) if fresh => {
                part.too_large.insert(table.clone());
                fresh = false;
            }
            Err(CurrentError::Stopped) => {}
            Err(error) => return Err(error.into()),
        }
        drop(std::fs::remove_dir_all(&options.spool));
        if over() {
            break;
        }
    }
    part.report = audit.report;
    let seen = part.finished.len() + part.too_large.len();
    if seen < call.context.catalog.entities.len() {
        let body = serde_json::to_vec(&part).unwrap_or_default();
        store.put(&part_key, body.into()).await?;
        return Ok(Audited {
            done: false,
            answer: json!({"tables": seen}),
        });
    }
    let audited = finish(call, &part.report, &part.too_large, log).await?;
    store.delete(&part_key).await?;
    Ok(audited)
}

async fn finish(
    call: &Call<'_>,
    report: &AuditReport,
    too_large: &BTreeSet<String>,
    log: &mut Log,
) -> Result<Audited, StepError> {
    if report.verdict() != Verdict::First {
        audit::store_report(&call.context.store, report).await?;
        log.push(report.metric_line(call.now_ms));
    }
    if !too_large.is_empty() {
        log.push(
            json!({
                "level": "WARN",
                "message": "tables that an invocation cannot compare; run `dynalake audit`",
                "label": report.label,
                "tables": too_large,
            })
            .to_string(),
        );
    }
    Ok(Audited {
        done: true,
        answer: json!({
            "verdict": report.verdict(),
            "differences": report.differences(),
            "too_large": too_large,
        }),
    })
}
