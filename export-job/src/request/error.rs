//! Why no export is asked for, and why a record of one cannot be read.

use dynalake_pipeline::store::StoreError;
use dynalake_pipeline::time::format_iso8601;

use super::TableArn;

/// Why no export is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Point-in-time recovery is off.
    #[error("the table has no point-in-time recovery (PITR), which exports are made from")]
    RecoveryOff,
    /// A full export at an instant to which recovery does not reach.
    #[error(
        "{} cannot be exported: point-in-time recovery reaches from {} to {}",
        text(*at_ms), text(*earliest_ms), text(*latest_ms)
    )]
    OutsideRecovery {
        /// What was asked for.
        at_ms: i64,
        /// Earliest possible instant.
        earliest_ms: i64,
        /// Latest possible instant.
        latest_ms: i64,
    },
    /// An incremental export with nothing to go on from.
    #[error("the lake has no baseline of this table that an incremental export could continue")]
    NoBaseline,
    /// The chain of incremental exports has left the recovery range.
    #[error(
        "the last baseline is of {}, but point-in-time recovery reaches back to {} only: the \
         changes between them cannot be exported any more",
        text(*from_ms), text(*earliest_ms)
    )]
    ChainBroken {
        /// Time of the last baseline.
        from_ms: i64,
        /// Earliest possible instant.
        earliest_ms: i64,
    },
    /// A stretch of time that is no window of an incremental export.
    #[error(
        "an incremental export covers 15 minutes at least, which {} to {} is not",
        text(*from_ms), text(*to_ms)
    )]
    TooShort {
        /// Begin.
        from_ms: i64,
        /// End.
        to_ms: i64,
    },
    /// Too little time since the last baseline.
    #[error(
        "the last baseline is of {}, and an incremental export covers 15 minutes at least and ends \
         5 minutes ago",
        text(*from_ms)
    )]
    TooEarly {
        /// Time of the last baseline.
        from_ms: i64,
        /// When the next one is possible.
        possible_ms: i64,
    },
}

impl Refusal {
    /// What to do. `full_command`: the command that takes a full export instead.
    pub fn remedy(&self, table: &TableArn, full_command: &str) -> String {
        match self {
            Self::RecoveryOff => format!(
                "turn it on, wait some five minutes, and run the same command again: \
                 `{}`",
                table.enable_recovery_command()
            ),
            Self::OutsideRecovery { .. } => {
                "give a time within that range, or none for the latest".to_owned()
            }
            Self::NoBaseline => format!("take a full export first: `{full_command}`"),
            Self::ChainBroken { .. } => {
                format!("take a full export, from which the chain begins anew: `{full_command}`")
            }
            Self::TooShort { .. } => {
                format!("give a later end, or take a full export: `{full_command}`")
            }
            Self::TooEarly { possible_ms, .. } => {
                format!("run the same command at {} or later", text(*possible_ms))
            }
        }
    }
}

/// Why a request's record cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Reading or writing the lake failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record is not of a form that this software reads.
    #[error("`{address}` is not the record of an export request: {problem}")]
    Unreadable {
        /// The object.
        address: String,
        /// What is wrong.
        problem: String,
    },
}

fn text(at_ms: i64) -> String {
    format_iso8601(at_ms).unwrap_or_else(|| format!("{at_ms} ms"))
}
