//! Progress of exports that run: a line that moves on a terminal, a line now and then elsewhere.

use std::io::{self, Write};
use std::time::Duration;

use dynalake_export_job::request::{ExportStatus, RequestRecord};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sanitize;

const MINUTE_MS: i64 = 60_000;
/// Elsewhere than on a terminal, a line comes when something has changed and after so much time.
const QUIET_MS: i64 = 5 * MINUTE_MS;

/// Tells how far a request is.
pub(super) struct Watch {
    bar: Option<ProgressBar>,
    usual_ms: Option<i64>,
    told: Option<(usize, i64)>,
}

impl Watch {
    /// `usual_ms`: how long such an export takes.
    pub(super) fn new(watched: bool, usual_ms: Option<i64>) -> Self {
        let bar = watched.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // A pattern that cannot be parsed leaves the default one.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_message("asking DynamoDB");
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            bar,
            usual_ms,
            told: None,
        }
    }

    /// Says how far it is.
    pub(super) fn tell(&mut self, record: &RequestRecord, now_ms: i64) {
        let text = sentence(record, self.usual_ms, now_ms);
        if let Some(bar) = &self.bar {
            bar.set_message(text);
            return;
        }
        let done = done(record);
        let due = self
            .told
            .is_none_or(|(before, at)| before != done || now_ms - at >= QUIET_MS);
        if due {
            say(&text);
            self.told = Some((done, now_ms));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Says how to go on with a request when it is dropped, which Ctrl-C does.
pub(super) struct Unfinished<'a> {
    /// The command that goes on.
    resume: &'a str,
    over: bool,
}

impl<'a> Unfinished<'a> {
    pub(super) fn new(resume: &'a str) -> Self {
        Self {
            resume,
            over: false,
        }
    }

    /// The work ended by itself, well or not.
    pub(super) fn over(mut self) {
        self.over = true;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.over {
            say(&sanitize::inline(&format!(
                "interrupted; what DynamoDB does goes on without us. To go on: `{}`",
                self.resume
            )));
        }
    }
}

fn done(record: &RequestRecord) -> usize {
    let is = |status| status == ExportStatus::Completed;
    record.exports.iter().filter(|one| is(one.status)).count()
}

/// How far a request is, in words.
pub(super) fn sentence(record: &RequestRecord, usual_ms: Option<i64>, now_ms: i64) -> String {
    let began = record.exports.iter().filter_map(|one| one.start_ms).min();
    let passed = now_ms.saturating_sub(began.unwrap_or(record.requested_at_ms));
    let minutes = |ms: i64| (ms.max(0) + MINUTE_MS / 2) / MINUTE_MS;
    let estimate = match usual_ms {
        Some(usual) if passed < usual => {
            format!("about {} min left", minutes(usual - passed).max(1))
        }
        Some(usual) => format!("longer than the last one, {} min", minutes(usual)),
        None => "DynamoDB takes 5 min at least".to_owned(),
    };
    format!(
        "{} of {} exports done after {} min, {estimate}",
        done(record),
        record.exports.len(),
        minutes(passed)
    )
}

fn say(text: &str) {
    // Nothing can be done about a closed stderr.
    drop(writeln!(io::stderr(), "{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynalake_export_job::request::{RequestFormat, Target, Wanted};

    #[test]
    fn the_estimate_is_what_the_last_export_took() {
        let target = Target {
            table_arn: "arn".to_owned(),
            bucket: "b".to_owned(),
            prefix: None,
            bucket_owner: None,
            kms_key: None,
            format: RequestFormat::Json,
        };
        let record = RequestRecord::new(target, &[Wanted::Full { at_ms: 0 }], 0);
        let at = |minutes: i64, usual: Option<i64>| {
            sentence(
                &record,
                usual.map(|usual| usual * MINUTE_MS),
                minutes * MINUTE_MS,
            )
        };
        assert_eq!(
            at(2, Some(10)),
            "0 of 1 exports done after 2 min, about 8 min left"
        );
        assert_eq!(
            at(12, Some(10)),
            "0 of 1 exports done after 12 min, longer than the last one, 10 min"
        );
        assert!(at(1, None).ends_with("DynamoDB takes 5 min at least"));
    }
}
