//! Windows of incremental exports.

use serde::{Deserialize, Serialize};

const MINUTE_MS: i64 = 60_000;
/// Shortest window of an incremental export (API reference, `IncrementalExportSpecification`).
pub const MIN_WINDOW_MS: i64 = 15 * MINUTE_MS;
/// Longest window of an incremental export (same).
pub const MAX_WINDOW_MS: i64 = 24 * 60 * MINUTE_MS;
/// How far before now the newest point in time is that can be exported: `LatestRestorableDateTime`
/// "is typically 5 minutes before the current time" (API reference).
pub const SETTLE_MS: i64 = 5 * MINUTE_MS;

/// A window: milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// First instant.
    pub from_ms: i64,
    /// First instant after it.
    pub to_ms: i64,
}

impl Window {
    /// Length in milliseconds.
    pub fn length_ms(self) -> i64 {
        self.to_ms.saturating_sub(self.from_ms)
    }
}

/// Splits a stretch of time into windows that DynamoDB takes: contiguous, each of 15 minutes to 24
/// hours, whole days as far as possible. Empty where the stretch is shorter than 15 minutes.
pub fn split(from_ms: i64, to_ms: i64) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut from = from_ms;
    while to_ms.saturating_sub(from) >= MIN_WINDOW_MS {
        let left = to_ms - from;
        let length = if left <= MAX_WINDOW_MS {
            left
        } else {
            // What is left for the last window must not be too short for one.
            MAX_WINDOW_MS.min(left - MIN_WINDOW_MS)
        };
        windows.push(Window {
            from_ms: from,
            to_ms: from + length,
        });
        from += length;
    }
    windows
}

/// An instant rounded down to whole minutes.
pub(super) fn floor_minute(at_ms: i64) -> i64 {
    at_ms - at_ms.rem_euclid(MINUTE_MS)
}

/// An instant rounded down to whole seconds: requests and partitions know no finer time.
pub(super) fn floor_second(at_ms: i64) -> i64 {
    at_ms - at_ms.rem_euclid(1000)
}
