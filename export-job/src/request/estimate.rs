//! How long an export will take, and how often to look at it.

use std::time::Duration;

use super::{RequestRecord, Wanted};

/// How long the newest finished export of the same kind of the same table took, milliseconds. AWS
/// gives no figure of its own while an export runs.
pub fn usual_duration_ms(
    records: &[RequestRecord],
    table_arn: &str,
    wanted: &Wanted,
) -> Option<i64> {
    let same_kind = |other: &Wanted| {
        matches!(other, Wanted::Full { .. }) == matches!(wanted, Wanted::Full { .. })
    };
    records
        .iter()
        .filter(|record| record.target.table_arn == table_arn)
        .flat_map(|record| &record.exports)
        .filter(|export| same_kind(&export.wanted))
        .filter_map(|export| Some((export.start_ms?, export.end_ms?)))
        .max()
        .map(|(start, end)| end.saturating_sub(start).max(0))
}

/// Pauses between looks at exports that run: they grow by half each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    /// From a first pause up to a longest one.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            next: first,
            longest: longest.max(first),
        }
    }

    /// The next pause.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_add(pause / 2).min(self.longest);
        pause
    }
}
