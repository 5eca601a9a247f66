//! `dynalake replay --failed`: batches that the event source mapping gave up.
//!
//! Order of writing: rows, then the copy under `replayed/`, then the original is deleted. Broken off
//! anywhere, the next run writes the same rows to the same keys.

use dynalake_pipeline::record::Origin;
use dynalake_pipeline::shell::quoted;
use dynalake_pipeline::store::Store;
use dynalake_pipeline::stream::{Context, StreamError, Summary, handle};
use serde::Serialize;

use super::{context, failure, no_lake, parked};
use crate::World;
use crate::args::{Format, ReplayArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, number};

/// Where batches come from and their rows go.
struct Places {
    batches: String,
    lake: String,
    /// The source table, where the stack says it.
    table: Option<String>,
}

#[derive(Debug, Serialize)]
struct FailedReport {
    batches: String,
    lake: String,
    objects: Vec<ObjectReport>,
}

#[derive(Debug, Serialize)]
struct ObjectReport {
    object: String,
    /// Where it went; `None` while it remains.
    moved_to: Option<String>,
    /// Why it remains.
    problem: Option<String>,
    /// What was written.
    summary: Option<Summary>,
}

pub(super) async fn run(
    args: &ReplayArgs,
    place: Option<&str>,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let places = places(args, place).await?;
    let batches = lake::existing(&places.batches, &args.s3).await?;
    let store = lake::writable(&places.lake, &args.s3).await?;
    let mut context = context(&args.schemas, store, world)?;
    if let Some(table) = &places.table {
        context = context.with_source_table(table);
    }
    let mut report = FailedReport {
        batches: places.batches,
        lake: places.lake,
        objects: Vec::new(),
    };
    for object in parked::list(&batches).await? {
        if let Some(outcome) = replay(&batches, object.key, &context, world).await? {
            report.objects.push(outcome);
        }
    }
    match args.format {
        Format::Json => printer.json(&report)?,
        Format::Table => print(&report, printer)?,
    }
    let remains = |object: &ObjectReport| object.problem.is_some();
    Ok(if report.objects.iter().any(remains) {
        Exit::Findings
    } else {
        Exit::Ok
    })
}

/// Replays one batch; `None` when it is gone by now. A lake that cannot be written is a failure of the
/// command, anything else a problem of the batch.
async fn replay(
    batches: &Store,
    key: String,
    context: &Context,
    world: &World,
) -> Outcome<Option<ObjectReport>> {
    let Some(body) = batches.get(&key).await? else {
        return Ok(None);
    };
    let remains = |key: String, problem: String| {
        Ok(Some(ObjectReport {
            object: key,
            moved_to: None,
            problem: Some(problem),
            summary: None,
        }))
    };
    let event = match parked::event(&body) {
        Ok(event) => event,
        Err(problem) => return remains(key, problem),
    };
    match handle(&event, world.now, context, Origin::Replay).await {
        Ok(summary) => Ok(Some(ObjectReport {
            moved_to: Some(parked::set_aside(batches, &key, body).await?),
            object: key,
            problem: None,
            summary: Some(summary),
        })),
        Err(
            error @ (StreamError::Event(_)
            | StreamError::ViewType { .. }
            | StreamError::SourceTable { .. }
            | StreamError::Encode(_)),
        ) => remains(key, error.chain()),
        Err(error) => Err(failure(&batches.address(&key), &error)),
    }
}

#[cfg(feature = "cloud")]
async fn places(args: &ReplayArgs, place: Option<&str>) -> Outcome<Places> {
    let Some(stack) = &args.stack else {
        return given(args, place);
    };
    let deployment = crate::cloud::Deployment::find(stack).await?;
    let work = deployment.output("WorkBucketName")?;
    Ok(Places {
        batches: place.map_or_else(|| format!("s3://{work}/{}", parked::PREFIX), str::to_owned),
        lake: deployment.lake()?.to_owned(),
        table: Some(deployment.output("TableName")?.to_owned()),
    })
}

#[cfg(not(feature = "cloud"))]
#[expect(
    clippy::unused_async,
    reason = "with the feature `cloud` a stack is looked up"
)]
async fn places(args: &ReplayArgs, place: Option<&str>) -> Outcome<Places> {
    given(args, place)
}

fn given(args: &ReplayArgs, place: Option<&str>) -> Outcome<Places> {
    let batches = place.ok_or_else(|| {
        Failure::usage("where the batches are that were given up is not said")
            .hint("give `--failed s3://bucket/prefix` and `--lake`, or `--failed --stack NAME`")
    })?;
    Ok(Places {
        batches: batches.to_owned(),
        lake: args.lake.clone().ok_or_else(no_lake)?,
        table: None,
    })
}

fn print(report: &FailedReport, printer: &mut Printer) -> Outcome<()> {
    if report.objects.is_empty() {
        printer.note(format!("no batch was given up in `{}`", report.batches));
        return Ok(());
    }
    let mut sheet = Sheet::new([
        ("batch", Align::Left),
        ("records", Align::Right),
        ("rows", Align::Right),
        ("quarantined", Align::Right),
        ("", Align::Left),
    ]);
    for object in &report.objects {
        let count = |of: fn(&Summary) -> u64| {
            let summary = object.summary.as_ref();
            summary
                .map(|summary| number(of(summary)))
                .unwrap_or_default()
        };
        let state = if object.moved_to.is_some() {
            "replayed"
        } else {
            "left"
        };
        sheet.row([
            object.object.clone(),
            count(|summary| summary.report.records),
            count(Summary::rows),
            count(|summary| summary.report.quarantined),
            state.to_owned(),
        ]);
    }
    printer.table(&sheet)?;
    for object in &report.objects {
        if let Some(problem) = &object.problem {
            printer.warning(format!("{}: {problem}", object.object));
        }
    }
    let summaries = || report.objects.iter().filter_map(|one| one.summary.as_ref());
    if summaries().any(|summary| summary.report.quarantined > 0) {
        printer.note(format!(
            "see why: `dynalake quarantine show {}`",
            quoted(&report.lake)
        ));
    }
    Ok(())
}
