//! What the stack's buckets say: baseline, audit, quarantine, parked batches.

use dynalake_pipeline::audit::{AuditReport, Verdict as Audited};
use dynalake_pipeline::baseline;
use dynalake_pipeline::layout::{day_of, day_text};
use dynalake_pipeline::store::{ObjectMeta, Store, StoreError, StoreErrorKind};
use serde_json::json;

use super::DAYS;
use super::check::{Check, age};
use crate::args::S3Args;
use crate::cell;
use crate::cloud::Deployment;
use crate::commands::replay::parked;
use crate::exit::Outcome;
use crate::lake;
use crate::output::{bytes, number};

/// A baseline that should be brought forward every day is old after this time.
const OLD_MS: i64 = 48 * 60 * 60_000;

pub(super) async fn checks(deployment: &Deployment, s3: &S3Args, now: i64) -> Outcome<Vec<Check>> {
    let store = lake::existing(deployment.lake()?, s3).await?;
    let work = format!(
        "s3://{}/{}",
        deployment.output("WorkBucketName")?,
        parked::PREFIX
    );
    let work = lake::existing(&work, s3).await?;
    Ok(vec![
        baseline_check(deployment, &store, now).await,
        audit_check(deployment, &store).await,
        quarantine_check(deployment, &store, now).await,
        parked_check(deployment, &work).await,
    ])
}

/// The newest baseline and its age.
async fn baseline_check(deployment: &Deployment, store: &Store, now: i64) -> Check {
    let newest = match baseline::current(store, None).await {
        Ok(newest) => newest,
        Err(baseline::BaselineError::Store(error)) => return unread("baseline", &error),
        Err(error) => return Check::unknown("baseline", error.to_string()),
    };
    let stack = &deployment.name;
    let Some(newest) = newest else {
        return Check::new(
            "baseline",
            true,
            "none: tables hold only what changed since the stack is there",
            json!(null),
        )
        .next(format!("`dynalake backfill --stack {stack}`"));
    };
    let old = now - newest.at_ms;
    let scheduled = deployment.parameter("IncrementalExports") == Some("ENABLED");
    let rows: u64 = newest.tables.values().map(|table| table.rows).sum();
    let says = format!(
        "{} is {} old, {} rows",
        newest.label,
        age(old),
        number(rows)
    );
    let facts = json!({
        "label": newest.label, "at_ms": newest.at_ms, "age_ms": old, "kind": newest.kind, "rows": rows,
    });
    Check::new("baseline", scheduled && old > OLD_MS, says, facts).next(format!(
        "incremental exports are scheduled, and none was taken in: \
         `dynalake backfill --stack {stack} --incremental`"
    ))
}

/// The newest audit.
async fn audit_check(deployment: &Deployment, store: &Store) -> Check {
    const NAME: &str = "audit";
    let reports = match store.list("state/audits/").await {
        Ok(reports) => reports,
        Err(error) => return unread(NAME, &error),
    };
    // Labels are times: the last key is the newest.
    let Some(newest) = reports.iter().map(|object| object.key.as_str()).max() else {
        return Check::new(NAME, false, "none yet", json!(null));
    };
    let text = match store.get(newest).await {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return unread(NAME, &error),
    };
    let report: AuditReport = match serde_json::from_slice(&text) {
        Ok(report) => report,
        Err(error) => return Check::unknown(NAME, format!("`{newest}` is not a report: {error}")),
    };
    let sum = |of: fn(&dynalake_pipeline::audit::TableAudit) -> u64| -> u64 {
        report.tables.values().map(of).sum()
    };
    let (missing, extra, different) = (
        sum(|table| table.missing),
        sum(|table| table.extra),
        sum(|table| table.different),
    );
    let verdict = report.verdict();
    let says = match verdict {
        Audited::First => format!("{}: the first baseline, nothing to compare", report.label),
        Audited::Equal => format!(
            "{}: the lake said the same of {} items",
            report.label,
            number(sum(|table| table.equal))
        ),
        Audited::Different => format!(
            "{}: {} missing, {} extra, {} different",
            report.label,
            number(missing),
            number(extra),
            number(different)
        ),
    };
    let facts = json!({
        "label": report.label, "verdict": verdict, "equal": sum(|table| table.equal),
        "missing": missing, "extra": extra, "different": different,
    });
    let lake = deployment.lake().unwrap_or("LAKE");
    Check::new(NAME, verdict == Audited::Different, says, facts).next(format!(
        "which tables and attributes: `dynalake audit {lake} --against {}`",
        report.label
    ))
}

/// Quarantine objects of the last days.
async fn quarantine_check(deployment: &Deployment, store: &Store, now: i64) -> Check {
    let today = day_of(now);
    let mut objects = Vec::new();
    // A day more: records carry the clock of another machine.
    for day in today - DAYS..=today + 1 {
        match store
            .list(&format!("quarantine/dt={}/", day_text(day)))
            .await
        {
            Ok(found) => objects.extend(found),
            Err(error) => return unread("quarantine", &error),
        }
    }
    let says = match objects.len() {
        0 => format!("empty (last {DAYS} days)"),
        count => format!("{count} objects, {} (last {DAYS} days)", size(&objects)),
    };
    let facts = json!({"objects": objects.len(), "days": DAYS});
    let lake = deployment.lake().unwrap_or("LAKE");
    Check::new("quarantine", !objects.is_empty(), says, facts).next(format!(
        "see why: `dynalake quarantine show {lake}`; after the repair: `dynalake quarantine replay {lake} \
         --schemas DIR`"
    ))
}

/// Batches that the mapping gave up.
async fn parked_check(deployment: &Deployment, work: &Store) -> Check {
    let objects = match parked::list(work).await {
        Ok(objects) => objects,
        Err(error) => return unread("parked batches", &error),
    };
    let oldest = objects.iter().map(|object| object.modified_ms).min();
    let says = match (objects.len(), oldest) {
        (0, _) => "none".to_owned(),
        (count, None) => format!("{count}, {}", size(&objects)),
        (count, Some(oldest)) => format!(
            "{count}, {}, since {}",
            size(&objects),
            cell::instant(oldest)
        ),
    };
    let facts = json!({"objects": objects.len(), "oldest_ms": oldest});
    Check::new("parked batches", !objects.is_empty(), says, facts).next(format!(
        "changes that are not in the lake: `dynalake replay --failed --stack {} --schemas DIR`",
        deployment.name
    ))
}

fn size(objects: &[ObjectMeta]) -> String {
    bytes(objects.iter().map(|object| object.size).sum())
}

fn unread(name: &'static str, error: &StoreError) -> Check {
    match error.kind() {
        StoreErrorKind::Denied => Check::unknown(
            name,
            format!("no right `s3:ListBucket` or `s3:GetObject`: {error}"),
        ),
        _ => Check::unknown(name, error.to_string()),
    }
}
