//! `convert`: data files, or as many parts of one as the time allows.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dynalake_pipeline::stream::NAMESPACE;
use serde_json::{Value, json};

use super::deadline::Deadline;
use super::error::StepError;
use super::event::Rest;
use super::{Call, Log};
use crate::error::ExportError;
use crate::options::NoProgress;
use crate::steps::{Limits, Steps, WorkItem, Worked};

pub(super) async fn convert(call: &Call<'_>, log: &mut Log) -> Result<Value, StepError> {
    let context = call.context;
    let options = context.options(call);
    let steps = Steps {
        lake: &context.store,
        catalog: &context.catalog,
        secrets: &context.secrets,
        options: &options,
    };
    if call.event.lines.is_empty() {
        return Err(StepError::Event(
            "the event names no data file; give a line of the work list as `line`".to_owned(),
        ));
    }
    let pace = Arc::new(Pace::new(call.deadline, context.parts_per_call));
    let mut done = Vec::new();
    let mut sum = 0;
    let mut rest = call.event.lines.as_slice();
    while let Some((item, others)) = rest.split_first() {
        if !done.is_empty() && !pace.go_on() {
            break;
        }
        match work(&steps, call, item, &pace).await? {
            Worked::Whole { items } => {
                sum += items;
                done.push(json!({"file": item.file, "items": items}));
                rest = others;
            }
            Worked::Part => break,
        }
    }
    log.push(metric_line(call, done.len(), sum));
    Ok(if rest.is_empty() {
        json!({"done": done})
    } else {
        json!({"done": done, "next": Rest { items: rest }})
    })
}

/// Works on one data file; whoever watches the clock stops it in time.
async fn work(
    steps: &Steps<'_>,
    call: &Call<'_>,
    item: &WorkItem,
    pace: &Arc<Pace>,
) -> Result<Worked, StepError> {
    let source = call.context.source(&item.export)?;
    // Where there is no time left, nothing is begun.
    let stop = Arc::new(AtomicBool::new(call.deadline.is_over()));
    let limits = Limits {
        go_on: {
            let pace = Arc::clone(pace);
            Arc::new(move || pace.part_done())
        },
        stop: Arc::clone(&stop),
    };
    let before = pace.parts();
    let work = steps.work(&source, item, limits, Arc::new(NoProgress));
    let mut work = Box::pin(work);
    let outcome = tokio::select! {
        outcome = &mut work => outcome,
        () = tokio::time::sleep(call.deadline.left()) => {
            stop.store(true, Ordering::Relaxed);
            work.await
        }
    };
    match outcome {
        Ok(worked) => Ok(worked),
        // What was put before counts, and is where the next call goes on.
        Err(ExportError::Stopped) if pace.parts() > before => Ok(Worked::Part),
        Err(ExportError::Stopped) => Err(StepError::Deadline(format!(
            "the function's time does not do for one part of data file `{}`: give the function more \
             memory, or convert the export anew (`replace`) with a smaller {}",
            item.file,
            super::PART_MB
        ))),
        Err(error) => Err(error.into()),
    }
}

/// How parts have gone so far, to judge whether another one can be done in time.
struct Pace {
    deadline: Deadline,
    at_most: usize,
    parts: AtomicUsize,
    times: Mutex<Times>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Times {
    /// End of the last part, since the invocation began.
    last: Duration,
    longest: Duration,
}

impl Pace {
    fn new(deadline: Deadline, at_most: usize) -> Self {
        Self {
            deadline,
            at_most,
            parts: AtomicUsize::new(0),
            times: Mutex::default(),
        }
    }

    fn parts(&self) -> usize {
        self.parts.load(Ordering::Relaxed)
    }

    /// Notes the end of a part, and says whether there is time for another one.
    fn part_done(&self) -> bool {
        self.parts.fetch_add(1, Ordering::Relaxed);
        let now = self.deadline.elapsed();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.longest = times.longest.max(now.saturating_sub(times.last));
        times.last = now;
        drop(times);
        self.go_on()
    }

    /// Whether a part that takes half as long again as the longest so far would be done in time.
    fn go_on(&self) -> bool {
        let times = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let needed = times.longest + times.longest / 2;
        self.parts() < self.at_most && self.deadline.left() > needed
    }
}

/// One line in CloudWatch's embedded metric format.
fn metric_line(call: &Call<'_>, files: usize, items: u64) -> String {
    json!({
        "_aws": {
            "Timestamp": call.now_ms,
            "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": [["database"]],
                "Metrics": [
                    {"Name": "convert_files", "Unit": "Count"},
                    {"Name": "convert_items", "Unit": "Count"},
                    {"Name": "convert_ms", "Unit": "Milliseconds"},
                ],
            }],
        },
        "database": call.context.catalog.database,
        "request_id": call.request_id,
        "convert_files": files,
        "convert_items": items,
        "convert_ms": u64::try_from(call.deadline.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
    .to_string()
}
