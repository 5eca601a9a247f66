//! What to ask for, from what the table's point-in-time recovery allows.

use super::error::Refusal;
use super::window::{MIN_WINDOW_MS, SETTLE_MS, floor_minute, floor_second, split};
use super::{ExportView, Wanted};

/// What DynamoDB says of a table's point-in-time recovery (`DescribeContinuousBackups`). Times are
/// milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Whether it is on.
    pub enabled: bool,
    /// Earliest instant that can be exported. After it was off, that is when it was turned on again.
    pub earliest_ms: Option<i64>,
    /// Latest instant that can be exported, some five minutes ago.
    pub latest_ms: Option<i64>,
}

impl Recovery {
    /// The range, or why there is none.
    fn range(self, now_ms: i64) -> Result<(i64, i64), Refusal> {
        if !self.enabled {
            return Err(Refusal::RecoveryOff);
        }
        let latest = self.latest_ms.unwrap_or(now_ms - SETTLE_MS);
        let earliest = self.earliest_ms.unwrap_or(latest);
        Ok((earliest, latest.max(earliest)))
    }
}

/// A full export at an instant, or at the latest that is possible.
///
/// # Errors
/// Point-in-time recovery is off, or does not reach to that instant.
pub fn plan_full(
    recovery: Recovery,
    asked_ms: Option<i64>,
    now_ms: i64,
) -> Result<Vec<Wanted>, Refusal> {
    let (earliest_ms, latest_ms) = recovery.range(now_ms)?;
    let at_ms = match asked_ms {
        None => floor_second(latest_ms),
        Some(at_ms) if at_ms < earliest_ms || at_ms > latest_ms => {
            return Err(Refusal::OutsideRecovery {
                at_ms,
                earliest_ms,
                latest_ms,
            });
        }
        Some(at_ms) => floor_second(at_ms),
    };
    Ok(vec![Wanted::Full { at_ms }])
}

/// The time that incremental exports are to cover: milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stretch {
    /// From here on: the last baseline's time, exactly. A window that began before it, if by
    /// milliseconds, would say nothing of an item that came before the baseline and went after it.
    pub from_ms: Option<i64>,
    /// Up to here; else to the last settled minute.
    pub to_ms: Option<i64>,
}

/// Incremental exports that cover a stretch of time.
///
/// # Errors
/// Point-in-time recovery is off; there is nothing to begin from; the stretch begins before the
/// earliest instant that can be exported, or ends after the latest; or it is shorter than 15 minutes.
pub fn plan_incremental(
    recovery: Recovery,
    stretch: Stretch,
    view: ExportView,
    now_ms: i64,
) -> Result<Vec<Wanted>, Refusal> {
    let (earliest_ms, latest_ms) = recovery.range(now_ms)?;
    let from_ms = stretch.from_ms.ok_or(Refusal::NoBaseline)?;
    if from_ms < earliest_ms {
        return Err(Refusal::ChainBroken {
            from_ms,
            earliest_ms,
        });
    }
    let to_ms = match stretch.to_ms {
        None => floor_minute(latest_ms.min(now_ms - SETTLE_MS)),
        Some(at_ms) if at_ms > latest_ms => {
            return Err(Refusal::OutsideRecovery {
                at_ms,
                earliest_ms,
                latest_ms,
            });
        }
        Some(at_ms) => at_ms,
    };
    let windows = split(from_ms, to_ms);
    if windows.is_empty() {
        return Err(match stretch.to_ms {
            Some(to_ms) => Refusal::TooShort { from_ms, to_ms },
            None => Refusal::TooEarly {
                from_ms,
                // The end of the window is a whole minute, rounded down.
                possible_ms: from_ms + MIN_WINDOW_MS + SETTLE_MS + 60_000,
            },
        });
    }
    Ok(windows
        .into_iter()
        .map(|window| Wanted::Incremental { window, view })
        .collect())
}
