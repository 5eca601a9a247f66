//! Progress of a conversion: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dynalake_export_job::Progress;
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

fn say(text: &str) {
    // Nothing can be done about a closed stderr.
    drop(writeln!(io::stderr(), "{text}"));
}
