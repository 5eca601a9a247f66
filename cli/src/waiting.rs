//! For commands that wait for something that goes on without them: a line that moves on a terminal, a
//! line now and then elsewhere, and a word when they are interrupted.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sanitize;

/// A minute in milliseconds.
pub(crate) const MINUTE_MS: i64 = 60_000;
/// Elsewhere than on a terminal, a line comes when something has changed and after so much time.
const QUIET_MS: i64 = 5 * MINUTE_MS;

/// Tells how far something is.
pub(crate) struct Teller {
    bar: Option<ProgressBar>,
    told_ms: Option<i64>,
}

impl Teller {
    /// `watched`: stderr is a terminal. `first`: shown on it until there is something to tell.
    pub(crate) fn new(watched: bool, first: &'static str) -> Self {
        let bar = watched.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // A pattern that cannot be parsed leaves the default one.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_message(first);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, told_ms: None }
    }

    /// Tells how far it is. `changed`: something has happened since it was told last.
    pub(crate) fn tell(&mut self, text: &str, changed: bool, now_ms: i64) {
        let text = sanitize::inline(text);
        if let Some(bar) = &self.bar {
            bar.set_message(text.into_owned());
            return;
        }
        if changed || self.told_ms.is_none_or(|told| now_ms - told >= QUIET_MS) {
            say(&text);
            self.told_ms = Some(now_ms);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Says how to go on when it is dropped, which Ctrl-C does.
pub(crate) struct Unfinished<'a> {
    /// What goes on without us, with its end: "what DynamoDB does goes on without us".
    what: &'a str,
    /// The command that goes on.
    resume: &'a str,
    over: bool,
}

impl<'a> Unfinished<'a> {
    pub(crate) fn new(what: &'a str, resume: &'a str) -> Self {
        Self {
            what,
            resume,
            over: false,
        }
    }

    /// The work ended by itself, well or not.
    pub(crate) fn over(mut self) {
        self.over = true;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.over {
            say(&sanitize::inline(&format!(
                "interrupted; {}: `{}`",
                self.what, self.resume
            )));
        }
    }
}

/// Milliseconds as minutes.
pub(crate) fn minutes(ms: i64) -> i64 {
    (ms.max(0) + MINUTE_MS / 2) / MINUTE_MS
}

fn say(text: &str) {
    // Nothing can be done about a closed stderr.
    drop(writeln!(io::stderr(), "{text}"));
}
