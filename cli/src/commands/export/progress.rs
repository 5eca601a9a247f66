//! Progress of a conversion: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dynalake_export_job::Progress;
use dynalake_export_job::roll::Watch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{bytes, number};

/// A bar over the compressed bytes.
pub(super) struct Bar {
    inner: ProgressBar,
    files: AtomicU64,
    done: AtomicU64,
}

impl Bar {
    pub(super) fn new() -> Self {
        // Nothing is drawn before the plan is known.
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        // A pattern that cannot be parsed leaves the default one.
        if let Ok(style) = ProgressStyle::with_template(
            "{wide_bar} {binary_bytes} of {binary_total_bytes}, {msg}, {eta} left",
        ) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            inner: bar,
            files: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Takes the bar off the terminal.
    pub(super) fn clear(&self) {
        self.inner.finish_and_clear();
    }

    fn say(&self, done: u64) {
        let files = self.files.load(Ordering::Relaxed);
        self.inner
            .set_message(format!("{} of {} files", number(done), number(files)));
    }
}

impl Progress for Bar {
    fn planned(&self, files: u64, _items: u64, bytes: u64) {
        self.files.store(files, Ordering::Relaxed);
        self.inner.set_length(bytes);
        self.inner.set_draw_target(ProgressDrawTarget::stderr());
        self.say(0);
    }

    fn advanced(&self, _items: u64, bytes: u64) {
        self.inner.inc(bytes);
    }

    fn file_done(&self, _name: &str, _resumed: bool) {
        self.say(self.done.fetch_add(1, Ordering::Relaxed) + 1);
    }
}

/// Lines on stderr: the plan, and one per tenth of the files.
#[derive(Default)]
pub(super) struct Lines {
    files: AtomicU64,
    done: AtomicU64,
}

impl Progress for Lines {
    fn planned(&self, files: u64, items: u64, size: u64) {
        self.files.store(files, Ordering::Relaxed);
        say(&format!(
            "{} data files, {} items, {} compressed",
            number(files),
            number(items),
            bytes(size)
        ));
    }

    fn file_done(&self, _name: &str, _resumed: bool) {
        let files = self.files.load(Ordering::Relaxed).max(1);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let tenth = |done: u64| done * 10 / files;
        if tenth(done) > tenth(done - 1) {
            say(&format!(
                "{} of {} data files done",
                number(done),
                number(files)
            ));
        }
    }
}

/// A bar over the rows of the table that is merged.
pub(super) struct RollBar(ProgressBar);

impl RollBar {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        // A pattern that cannot be parsed leaves the default one.
        if let Ok(style) = ProgressStyle::with_template(
            "{wide_bar} {human_pos} of {human_len} rows of {msg}, {eta} left",
        ) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Takes the bar off the terminal.
    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Watch for RollBar {
    fn table(&self, table: &str, base_rows: u64, window_rows: u64) {
        self.0.reset();
        self.0.set_length(base_rows + window_rows);
        self.0.set_message(format!("`{table}`"));
        self.0.set_draw_target(ProgressDrawTarget::stderr());
    }

    fn advanced(&self, rows: u64) {
        self.0.inc(rows);
    }
}

/// A line on stderr per table that is merged.
pub(super) struct RollLines;

impl Watch for RollLines {
    fn table(&self, table: &str, base_rows: u64, window_rows: u64) {
        say(&format!(
            "rolling `{table}`: {} rows of the baseline, {} of windows",
            number(base_rows),
            number(window_rows)
        ));
    }
}

fn say(text: &str) {
    // Nothing can be done about a closed stderr.
    drop(writeln!(io::stderr(), "{text}"));
}
