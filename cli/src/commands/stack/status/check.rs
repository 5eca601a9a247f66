//! One thing that was looked at.

use serde::Serialize;
use serde_json::{Value, json};

use crate::waiting::minutes;

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// Somebody should look at it.
    Attention,
    /// It cannot be told; the sentence says why.
    Unknown,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    /// What was looked at.
    pub(super) name: &'static str,
    /// How it is.
    pub(super) verdict: Verdict,
    /// For people.
    pub(super) says: String,
    /// What to do.
    pub(super) next: Option<String>,
    /// For programs; null where it is unknown.
    pub(super) facts: Value,
}

impl Check {
    /// As it should be, unless `attention` is set.
    pub(super) fn new(
        name: &'static str,
        attention: bool,
        says: impl Into<String>,
        facts: Value,
    ) -> Self {
        Self {
            name,
            verdict: if attention {
                Verdict::Attention
            } else {
                Verdict::Ok
            },
            says: says.into(),
            next: None,
            facts,
        }
    }

    /// It cannot be told, for this reason.
    pub(super) fn unknown(name: &'static str, reason: impl AsRef<str>) -> Self {
        Self {
            name,
            verdict: Verdict::Unknown,
            says: reason.as_ref().to_owned(),
            next: None,
            facts: json!(null),
        }
    }

    /// What to do about it, where something needs attention.
    pub(super) fn next(mut self, next: impl Into<String>) -> Self {
        if self.verdict == Verdict::Attention {
            self.next = Some(next.into());
        }
        self
    }

    pub(super) fn needs_attention(&self) -> bool {
        self.verdict == Verdict::Attention
    }
}

/// A time that has passed, for people: the greatest unit that gives two and more.
pub(super) fn age(ms: i64) -> String {
    let minutes = minutes(ms);
    if minutes < 120 {
        format!("{minutes} min")
    } else if minutes < 48 * 60 {
        format!("{} h", minutes / 60)
    } else {
        format!("{} days", minutes / (24 * 60))
    }
}

/// A duration in milliseconds, for people.
pub(super) fn span(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..120_000 => format!("{} s", ms / 1000),
        _ => age(i64::try_from(ms).unwrap_or(i64::MAX)),
    }
}

/// A metric's value, which is a count or a time in milliseconds, as a whole number.
pub(super) fn whole(value: f64) -> u64 {
    format!("{:.0}", value.max(0.0)).parse().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!(age(61 * 60_000), "61 min");
        assert_eq!(age(5 * 3_600_000), "5 h");
        assert_eq!(age(72 * 3_600_000), "3 days");
        assert_eq!(span(350), "0.3 s");
        assert_eq!(span(63_000), "63 s");
        assert_eq!(span(900_000), "15 min");
        assert_eq!(whole(2.6), 3);
        assert_eq!(whole(-1.0), 0);
    }

    #[test]
    fn only_what_needs_attention_says_what_to_do() {
        assert!(
            Check::new("x", false, "fine", json!(1))
                .next("do")
                .next
                .is_none()
        );
        assert!(
            Check::new("x", true, "bad", json!(1))
                .next("do")
                .next
                .is_some()
        );
        assert!(!Check::unknown("x", "no right").needs_attention());
    }
}
