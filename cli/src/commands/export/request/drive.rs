//! Takes a request from step to step until its exports are whole in their bucket.

use std::time::Duration;

use dynalake_export_job::request::{
    Failed, Pauses, RequestRecord, Seen, Step, store as requests, usual_duration_ms,
};
use tokio::time::{Instant, sleep};

use super::watch::Watch;
use super::{Errand, table_arn, words};
use crate::World;
use crate::args::WaitArgs;
use crate::cloud::{Call, Exports, Refused, export_failed};
use crate::exit::{Failure, Outcome};

/// First and longest pause between two looks: an export takes five minutes at least.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Looks that may fail one after the other, each after the SDK's own attempts.
const FAILED_LOOKS: u32 = 10;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// All exports are whole.
    Exported,
    /// They run, and nobody waits.
    NotWaited,
}

/// Goes on with a request. Whatever happens, its record says how to go on.
pub(super) async fn drive(
    errand: &Errand<'_>,
    record: &mut RequestRecord,
    resume: &str,
    world: &World,
    watched: bool,
) -> Outcome<Ended> {
    let exports = Exports::open(&table_arn(&record.target.table_arn)?).await?;
    let began = Instant::now();
    let now = move || {
        let passed = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        world.now.saturating_add(passed)
    };
    let usual = record
        .exports
        .first()
        .and_then(|one| usual_duration_ms(errand.earlier, &record.target.table_arn, &one.wanted));
    let mut watch = Watch::new(watched, usual);
    let outcome = Box::pin(steps(errand, record, &exports, &mut watch, &now)).await;
    drop(watch);
    match outcome {
        Ok(ended) => Ok(ended),
        // Nothing was made for it, and nothing will be: it is as if nobody had asked.
        Err(End::Refused(failure)) if !record.has_exports() => {
            requests::forget(errand.store, record).await?;
            Err(failure)
        }
        Err(End::Refused(failure) | End::Failed(failure)) => Err(failure.hint(format!(
            "when that is mended, this asks again for what failed and keeps the rest: `{resume}`"
        ))),
        Err(End::Broken(failure)) => Err(failure.hint(format!("to go on: `{resume}`"))),
    }
}

/// Why there are no exports.
enum End {
    /// DynamoDB would not make one.
    Refused(Failure),
    /// One failed.
    Failed(Failure),
    /// Something else went wrong.
    Broken(Failure),
}

impl<E> From<E> for End
where
    Failure: From<E>,
{
    fn from(error: E) -> Self {
        Self::Broken(Failure::from(error))
    }
}

async fn steps(
    errand: &Errand<'_>,
    record: &mut RequestRecord,
    exports: &Exports,
    watch: &mut Watch,
    now: &impl Fn() -> i64,
) -> Result<Ended, End> {
    let target = record.target.clone();
    let call = Call {
        table_arn: &target.table_arn,
        bucket: &target.bucket,
    };
    let mut pauses = pauses(errand.wait);
    let (mut looked, mut failed_looks) = (false, 0);
    loop {
        match record.next(now()) {
            Step::Send(index) => {
                let Some(export) = record.exports.get(index) else {
                    return Ok(Ended::Exported);
                };
                match exports.send(&target, export).await {
                    Ok(seen) => note(errand, record, index, seen).await?,
                    Err(refused) => {
                        let failure = refused.failure(call);
                        if !refused.is_definite() {
                            return Err(End::Broken(failure));
                        }
                        record.refused(index, failed(refused));
                        requests::save(errand.store, record).await?;
                        return Err(End::Refused(failure));
                    }
                }
            }
            Step::Find(index) => {
                let Some(export) = record.exports.get(index) else {
                    return Ok(Ended::Exported);
                };
                let found = exports.find(&target, export).await;
                let found = found.map_err(|refused| End::Broken(refused.failure(call)))?;
                if let Some(seen) = found {
                    note(errand, record, index, seen).await?;
                } else {
                    record.ask_anew(index, now());
                    requests::save(errand.store, record).await?;
                }
            }
            Step::Look(_) if errand.wait.no_wait && looked => return Ok(Ended::NotWaited),
            Step::Look(running) => {
                // The first look is free: who resumes may find everything done.
                if looked {
                    watch.tell(record, now());
                    sleep(pauses.next_pause()).await;
                }
                looked = true;
                for index in running {
                    let arn = record
                        .exports
                        .get(index)
                        .and_then(|export| export.export_arn.clone());
                    match exports.look(arn.as_deref().unwrap_or_default()).await {
                        Ok(seen) => {
                            failed_looks = 0;
                            note(errand, record, index, seen).await?;
                        }
                        Err(refused) if refused.transient && failed_looks < FAILED_LOOKS => {
                            failed_looks += 1;
                        }
                        Err(refused) => return Err(End::Broken(refused.failure(call))),
                    }
                }
            }
            Step::Failed(indices) => {
                let first = indices.first().and_then(|index| record.exports.get(*index));
                let failure = match first.and_then(|one| Some((one, one.failure.as_ref()?))) {
                    Some((export, Failed { code, message })) => {
                        let what = format!("{}: {message}", words(&export.wanted));
                        export_failed(code, &what, call)
                    }
                    None => Failure::remote("an export failed"),
                };
                return Err(End::Failed(failure));
            }
            Step::Convert | Step::Done => return Ok(Ended::Exported),
        }
    }
}

/// Keeps what DynamoDB said.
async fn note(
    errand: &Errand<'_>,
    record: &mut RequestRecord,
    index: usize,
    seen: Seen,
) -> Result<(), End> {
    if record.saw(index, seen) {
        requests::save(errand.store, record).await?;
    }
    Ok(())
}

fn failed(refused: Refused) -> Failed {
    Failed {
        code: refused.code.unwrap_or_default(),
        message: refused.message,
    }
}

fn pauses(wait: &WaitArgs) -> Pauses {
    match wait.poll_seconds {
        Some(seconds) => {
            let pause = Duration::from_secs(u64::from(seconds));
            Pauses::new(pause, pause)
        }
        None => Pauses::new(FIRST_PAUSE, LONGEST_PAUSE),
    }
}
