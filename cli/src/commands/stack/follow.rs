//! Follows an execution of the export workflow until it is over.

use std::collections::BTreeSet;
use std::time::Duration;

use dynalake_export_job::request::Pauses;
use tokio::time::{Instant, sleep};

use crate::World;
use crate::args::BackfillArgs;
use crate::cloud::{Execution, ExecutionState, MapCounts, Refused, Workflow};
use crate::exit::Outcome;
use crate::waiting::{Teller, minutes};

/// First and longest pause between two looks.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Looks that may fail one after the other, each after the SDK's own attempts.
const FAILED_LOOKS: u32 = 10;

/// An execution that is over.
pub(super) struct Followed {
    pub(super) execution: Execution,
    /// The last step that it entered.
    pub(super) step: Option<String>,
}

/// What was seen of an execution so far.
#[derive(Default)]
struct Seen {
    /// Number of the newest event.
    event: i64,
    steps: BTreeSet<String>,
    step: Option<String>,
    map: Option<MapCounts>,
    /// The credentials do not allow more than the state: then there is no more.
    blind: bool,
}

pub(super) async fn follow(
    workflow: &Workflow,
    execution: &str,
    args: &BackfillArgs,
    world: &World,
    watched: bool,
) -> Outcome<Followed> {
    let began = Instant::now();
    let now = move || {
        let passed = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        world.now.saturating_add(passed)
    };
    let mut pauses = match args.poll_seconds.map(u64::from).map(Duration::from_secs) {
        Some(pause) => Pauses::new(pause, pause),
        None => Pauses::new(FIRST_PAUSE, LONGEST_PAUSE),
    };
    let mut teller = Teller::new(watched, "asking Step Functions");
    let mut seen = Seen::default();
    let mut failed_looks = 0;
    loop {
        let looked = match workflow.look(execution).await {
            Ok(looked) => looked,
            Err(refused) if refused.transient && failed_looks < FAILED_LOOKS => {
                failed_looks += 1;
                sleep(pauses.next_pause()).await;
                continue;
            }
            Err(refused) => return Err(refused.needing("states:DescribeExecution")),
        };
        failed_looks = 0;
        let changed = look_closer(workflow, execution, &mut seen).await;
        if looked.state != ExecutionState::Running {
            return Ok(Followed {
                execution: looked,
                step: seen.step,
            });
        }
        let passed = now() - looked.started_ms.unwrap_or(world.now);
        teller.tell(&sentence(&seen, passed), changed, now());
        sleep(pauses.next_pause()).await;
    }
}

/// Looks at steps and map; says whether there is something new. Not being able to is no failure: what
/// matters is how it ends.
async fn look_closer(workflow: &Workflow, execution: &str, seen: &mut Seen) -> bool {
    if seen.blind {
        return false;
    }
    let blind = |refused: &Refused| refused.is_definite();
    let mut changed = false;
    match workflow.steps(execution, seen.event).await {
        Ok((steps, event)) => {
            seen.event = event;
            for step in steps {
                changed |= seen.steps.insert(step.clone());
                seen.step = Some(step);
            }
        }
        Err(refused) => seen.blind |= blind(&refused),
    }
    match workflow.map(execution).await {
        Ok(map) => {
            let failed = |map: Option<MapCounts>| map.map_or(0, |map| map.failed);
            changed |= map.is_some() != seen.map.is_some() || failed(map) != failed(seen.map);
            seen.map = map;
        }
        Err(refused) => seen.blind |= blind(&refused),
    }
    changed
}

/// How far it is, in words.
fn sentence(seen: &Seen, passed_ms: i64) -> String {
    let step = seen.step.as_deref().unwrap_or("running");
    let map = match seen.map {
        Some(map) if map.total > 0 => {
            let failed = match map.failed {
                0 => String::new(),
                failed => format!(", {failed} failed"),
            };
            format!(", {} of {} parts done{failed}", map.succeeded, map.total)
        }
        _ => String::new(),
    };
    format!("{step}{map}, after {} min", minutes(passed_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_step_and_the_parts_done() {
        let mut seen = Seen::default();
        assert_eq!(sentence(&seen, 0), "running, after 0 min");
        seen.step = Some("Convert".to_owned());
        seen.map = Some(MapCounts {
            succeeded: 12,
            failed: 1,
            total: 40,
        });
        assert_eq!(
            sentence(&seen, 180_000),
            "Convert, 12 of 40 parts done, 1 failed, after 3 min"
        );
    }
}
