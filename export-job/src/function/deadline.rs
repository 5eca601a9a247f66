//! The end of an invocation's time.

use std::time::Duration;

use dynalake_pipeline::compact;

use crate::roll;

/// Time left for what comes after the work: the answer, and a put that is under way.
const LEAST_MARGIN: Duration = Duration::from_secs(5);

/// When an invocation must have come to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    clock: fn() -> Duration,
    /// On the clock.
    end: Duration,
    begun: Duration,
}

impl Deadline {
    /// Of an invocation that began at `now_ms` and is ended by Lambda at `deadline_ms`.
    pub(super) fn new(clock: fn() -> Duration, now_ms: i64, deadline_ms: i64) -> Self {
        let begun = clock();
        let given = u64::try_from(deadline_ms.saturating_sub(now_ms)).unwrap_or_default();
        let given = Duration::from_millis(given);
        let margin = (given / 20).max(LEAST_MARGIN);
        Self {
            clock,
            end: begun.saturating_add(given.saturating_sub(margin)),
            begun,
        }
    }

    /// Time since the invocation began.
    pub(super) fn elapsed(&self) -> Duration {
        (self.clock)().saturating_sub(self.begun)
    }

    /// Time that is left.
    pub(super) fn left(&self) -> Duration {
        self.end.saturating_sub((self.clock)())
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

impl compact::Watch for Deadline {
    fn stop(&self) -> bool {
        self.is_over()
    }
}

impl roll::Watch for Deadline {
    fn stop(&self) -> bool {
        self.is_over()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(100) };
    }

    fn clock() -> Duration {
        Duration::from_secs(NOW.get())
    }

    #[test]
    fn the_end_leaves_a_margin() {
        NOW.set(100);
        let deadline = Deadline::new(clock, 0, 900_000);
        assert_eq!(deadline.left(), Duration::from_secs(855));
        NOW.set(900);
        assert_eq!(deadline.elapsed(), Duration::from_secs(800));
        assert!(!deadline.is_over());
        NOW.set(955);
        assert!(deadline.is_over());
        assert!(Deadline::new(clock, 10, 5).is_over());
        assert!(!Deadline::new(clock, 0, i64::MAX).is_over());
    }
}
