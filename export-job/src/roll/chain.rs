//! Which baseline is rolled forward by which windows.

use dynalake_pipeline::baseline::BaselineRecord;
use dynalake_pipeline::shell::quoted;
use dynalake_pipeline::time;

use crate::error::{ExportError, RefusalKind};
use crate::manifest::{ExportKind, Summary};
use crate::request::MIN_WINDOW_MS;
use crate::state::{Complete, StateKind};

/// An incremental export, as far as the order of windows matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The export's id.
    pub export_id: String,
    /// The source table's ARN.
    pub table_arn: String,
    /// Begin, inclusive, milliseconds since 1970-01-01 UTC.
    pub from: i64,
    /// End, exclusive, milliseconds since 1970-01-01 UTC.
    pub to: i64,
    /// Bucket that it was exported to.
    pub s3_bucket: Option<String>,
    /// Prefix given at the export's request.
    pub s3_prefix: Option<String>,
}

impl Window {
    /// The window of an export's summary; `None` of a full export.
    pub fn of(summary: &Summary) -> Option<Self> {
        let ExportKind::Incremental { from, to, .. } = summary.kind else {
            return None;
        };
        Some(Self {
            export_id: summary.export_id.clone(),
            table_arn: summary.table_arn.clone(),
            from,
            to,
            s3_bucket: summary.s3_bucket.clone(),
            s3_prefix: summary.s3_prefix.clone(),
        })
    }

    /// The window of a converted export; `None` of another kind.
    pub(super) fn of_complete(complete: &Complete) -> Option<Self> {
        if complete.kind != StateKind::Incremental {
            return None;
        }
        Some(Self {
            export_id: complete.export_id.clone(),
            table_arn: complete.table_arn.clone(),
            from: complete.from_time?,
            to: complete.export_time,
            s3_bucket: None,
            s3_prefix: None,
        })
    }

    fn name(&self) -> String {
        format!(
            "{} ({} to {})",
            self.export_id,
            instant(self.from),
            instant(self.to)
        )
    }
}

/// What there is to roll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chain {
    /// A baseline of that very time is committed.
    Done(Box<BaselineRecord>),
    /// A baseline, and the windows that follow it without gap or overlap, in order.
    Roll(Box<BaselineRecord>, Vec<Window>),
}

/// Finds the newest baseline at which one of the windows begins, and the windows from there on.
///
/// Windows may come in any order. Of several exports of the very same window one is taken. Windows
/// that end before that baseline are in it already. With `again` a baseline at the end of the last
/// window does not count: it is to be made anew. `command_end` ends the commands that are told.
///
/// # Errors
/// No baseline to begin from, a window that is missing, windows that overlap, or several tables; with
/// what to do next.
pub fn chain(
    baselines: &[BaselineRecord],
    mut windows: Vec<Window>,
    again: bool,
    command_end: &str,
) -> Result<Chain, ExportError> {
    windows.sort_by(|a, b| (a.from, a.to, &a.export_id).cmp(&(b.from, b.to, &b.export_id)));
    // All exports of one window show the same.
    windows.dedup_by_key(|window| (window.from, window.to));
    let Some(end) = windows.iter().map(|window| window.to).max() else {
        return Err(ExportError::refused(
            RefusalKind::NoExport,
            "windows",
            "there is no incremental export to roll",
            "give one or several incremental exports",
        ));
    };
    let done = baselines.iter().find(|baseline| baseline.at_ms == end);
    if let Some(done) = done.filter(|_| !again) {
        return Ok(Chain::Done(Box::new(done.clone())));
    }
    let older = || baselines.iter().filter(|baseline| baseline.at_ms < end);
    let begins = |at: i64| windows.iter().any(|window| window.from == at);
    let base = older()
        .filter(|baseline| begins(baseline.at_ms))
        .max_by_key(|baseline| baseline.at_ms);
    let Some(base) = base else {
        let newest = older().max_by_key(|baseline| baseline.at_ms);
        return Err(without_base(newest, &windows, command_end));
    };
    let mut next = base.at_ms;
    windows.retain(|window| window.to > base.at_ms);
    for window in &windows {
        one_table(&base.table_arn, window)?;
        if window.from > next {
            return Err(missing(next, base.at_ms, window, command_end));
        }
        // An overlap is not safe to merge, even though newer windows win: a line is the net effect of
        // its own window only. An item that is inserted before the instant B at which the one window
        // ends, and deleted after it, has a line in the window that ends at B; in a window that began
        // before the insert it has none, since there it never was. So the row of the first window would
        // stay for ever.
        if window.from < next {
            return Err(overlapping(next, base.at_ms, window, command_end));
        }
        next = window.to;
    }
    Ok(Chain::Roll(Box::new(base.clone()), windows))
}

fn without_base(
    newest: Option<&BaselineRecord>,
    windows: &[Window],
    command_end: &str,
) -> ExportError {
    let Some(first) = windows.first() else {
        return ExportError::Setup("no windows".to_owned());
    };
    match newest {
        Some(baseline) if baseline.at_ms < first.from => {
            missing(baseline.at_ms, baseline.at_ms, first, command_end)
        }
        Some(baseline) => {
            // Baselines stand in the middle of windows only.
            let window = windows.iter().find(|window| window.to > baseline.at_ms);
            let at = baseline.at_ms;
            overlapping(at, at, window.unwrap_or(first), command_end)
        }
        None => ExportError::refused(
            RefusalKind::NoBase,
            first.name(),
            "the lake has no baseline before this incremental export that it could roll forward",
            format!(
                "make a full export first: `{}`",
                command(first, None, command_end)
            ),
        ),
    }
}

/// Nothing covers the time from `from` to the window. `base`: time of the baseline to be rolled.
fn missing(from: i64, base: i64, window: &Window, command_end: &str) -> ExportError {
    let gap = window.from.saturating_sub(from);
    let fill = if gap < MIN_WINDOW_MS {
        // DynamoDB makes no export of so little: only one that takes the window in, too.
        format!(
            "that is less than the 15 minutes of an export: make one of it and this window together, \
             in place of this one: `{}`",
            command(window, Some((from, Some(window.to))), command_end)
        )
    } else {
        format!(
            "fill it: `{}`, and give the others again",
            command(window, Some((from, Some(window.from))), command_end)
        )
    };
    ExportError::refused(
        RefusalKind::MissingWindow,
        window.name(),
        format!(
            "nothing is given for the time from {} to {}, so it cannot be rolled into the baseline",
            instant(from),
            instant(window.from)
        ),
        format!(
            "{}{fill}; or, where the table cannot be restored to that time any more, take a full \
             export",
            before(from, base)
        ),
    )
}

/// What to do first so that a command that begins at `from` finds a baseline there.
fn before(from: i64, base: i64) -> String {
    if from == base {
        return String::new();
    }
    format!(
        "convert the exports up to {} alone, for a baseline of that time; then ",
        instant(from)
    )
}

/// The window begins before `from`. `base`: time of the baseline to be rolled.
fn overlapping(from: i64, base: i64, window: &Window, command_end: &str) -> ExportError {
    let rest = window.to.saturating_sub(from);
    let to = (rest >= MIN_WINDOW_MS).then_some(window.to);
    let rest = match to {
        Some(_) => "export the rest of this one alone",
        None => "export what came after it",
    };
    ExportError::refused(
        RefusalKind::OverlappingWindow,
        window.name(),
        format!(
            "it begins before {}, where the baseline or the window before it ends; items that came \
             and went in between could not be told from items that stay",
            instant(from)
        ),
        format!(
            "leave one of the overlapping exports out; or {}{rest}: `{}`",
            before(from, base),
            command(window, Some((from, to)), command_end)
        ),
    )
}

fn one_table(table_arn: &str, window: &Window) -> Result<(), ExportError> {
    if window.table_arn == table_arn {
        return Ok(());
    }
    Err(ExportError::refused(
        RefusalKind::OtherTable,
        window.name(),
        format!(
            "it is an export of `{}`, the baseline is one of `{table_arn}`",
            window.table_arn
        ),
        "give exports of one table",
    ))
}

/// The command that makes the export of a window, which may be open at its end, or a full one.
fn command(near: &Window, window: Option<(i64, Option<i64>)>, command_end: &str) -> String {
    let mut text = format!(
        "dynalake export run --table-arn {} --bucket {}",
        quoted(&near.table_arn),
        quoted(near.s3_bucket.as_deref().unwrap_or("BUCKET"))
    );
    if let Some(prefix) = &near.s3_prefix {
        text.push_str(" --prefix ");
        text.push_str(&quoted(prefix));
    }
    if let Some((from, to)) = window {
        text.push_str(" --incremental --from ");
        text.push_str(&instant(from));
        if let Some(to) = to {
            text.push_str(" --to ");
            text.push_str(&instant(to));
        }
    }
    text.push(' ');
    text.push_str(command_end);
    text
}

fn instant(at_ms: i64) -> String {
    time::format_iso8601(at_ms).unwrap_or_else(|| at_ms.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dynalake_pipeline::baseline::{BaselineKind, VERSION};
    use dynalake_pipeline::layout;

    use super::*;

    const HOUR: i64 = 3_600_000;
    const T0: i64 = 1_795_000_000_000;
    const END: &str = "--lake l --schemas s";

    fn baseline(hours: i64) -> BaselineRecord {
        let at_ms = T0 + hours * HOUR;
        BaselineRecord {
            version: VERSION,
            label: layout::export_label(at_ms).unwrap(),
            at_ms,
            kind: BaselineKind::FullExport,
            export_id: format!("e{hours}"),
            table_arn: "arn:t".to_owned(),
            schema_fingerprint: None,
            tables: BTreeMap::new(),
            committed_at_ms: 0,
        }
    }

    fn window(from: i64, to: i64) -> Window {
        Window {
            export_id: format!("w{from}-{to}"),
            table_arn: "arn:t".to_owned(),
            from: T0 + from * HOUR,
            to: T0 + to * HOUR,
            s3_bucket: Some("b".to_owned()),
            s3_prefix: Some("p/q".to_owned()),
        }
    }

    /// Base and windows in hours; or the refusal.
    fn found(baselines: &[i64], windows: &[(i64, i64)]) -> Result<String, (RefusalKind, String)> {
        let baselines: Vec<_> = baselines.iter().map(|&hours| baseline(hours)).collect();
        let windows = windows.iter().map(|&(from, to)| window(from, to)).collect();
        match chain(&baselines, windows, false, END) {
            Ok(Chain::Done(baseline)) => Ok(format!("done {}", baseline.export_id)),
            Ok(Chain::Roll(base, windows)) => {
                let ids: Vec<_> = windows.into_iter().map(|window| window.export_id).collect();
                Ok(format!("{} {}", base.export_id, ids.join(" ")))
            }
            Err(error) => Err((error.refusal().unwrap(), error.to_string())),
        }
    }

    #[test]
    fn windows_in_any_order_follow_the_newest_baseline_that_one_begins_at() {
        assert_eq!(found(&[0], &[(6, 8), (0, 6)]).unwrap(), "e0 w0-6 w6-8");
        assert_eq!(found(&[0, 6], &[(0, 6), (6, 8)]).unwrap(), "e6 w6-8");
        // A baseline in the middle of a window is none to begin from, and does no harm.
        assert_eq!(found(&[0, 3], &[(0, 6)]).unwrap(), "e0 w0-6");
        assert_eq!(found(&[0, 3, 9], &[(3, 6)]).unwrap(), "e3 w3-6");
        assert_eq!(found(&[0], &[(0, 6), (0, 6)]).unwrap(), "e0 w0-6");
        assert_eq!(found(&[0, 6], &[(0, 6)]).unwrap(), "done e6");
    }

    #[test]
    fn a_missing_window_is_refused_with_the_command_that_fills_it() {
        for (baselines, windows) in [
            (&[0][..], &[(2, 6)][..]),
            (&[-2, 0], &[(2, 6), (6, 8)]),
            (&[-2], &[(-2, 0), (2, 6)]),
        ] {
            let (kind, message) = found(baselines, windows).unwrap_err();
            assert_eq!(kind, RefusalKind::MissingWindow);
            assert!(
                message.contains(
                    "`dynalake export run --table-arn arn:t --bucket b --prefix p/q --incremental \
                     --from 2026-11-18T11:06:40Z --to 2026-11-18T13:06:40Z --lake l --schemas s`"
                ),
                "{message}"
            );
        }
        let (kind, message) = found(&[9], &[(0, 6)]).unwrap_err();
        assert_eq!(kind, RefusalKind::NoBase);
        assert!(
            message.contains(
                "`dynalake export run --table-arn arn:t --bucket b --prefix p/q --lake l"
            ),
            "{message}"
        );
    }

    #[test]
    fn windows_that_overlap_are_refused() {
        for (baselines, windows) in [
            (&[0][..], &[(0, 6), (5, 8)][..]),
            (&[0], &[(0, 6), (0, 8)]),
            (&[1], &[(0, 6)]),
            (&[0, 3], &[(0, 6), (3, 6)]),
        ] {
            let (kind, message) = found(baselines, windows).unwrap_err();
            assert_eq!(kind, RefusalKind::OverlappingWindow, "{message}");
            assert!(
                message.contains("--incremental --from 2026-11-18T"),
                "{message}"
            );
        }
    }

    #[test]
    fn what_is_too_short_for_an_export_is_made_with_what_follows() {
        let baselines = [baseline(0)];
        let told = |windows: Vec<Window>| chain(&baselines, windows, false, END).unwrap_err();
        let minutes = |window: Window, minutes: i64| Window {
            from: window.from + minutes * 60_000,
            ..window
        };
        // Fourteen minutes are missing, then fifteen.
        let short = told(vec![minutes(window(0, 6), 14)]).to_string();
        let together = "--from 2026-11-18T11:06:40Z --to 2026-11-18T17:06:40Z --lake";
        assert!(short.contains(together), "{short}");
        assert!(short.contains("in place of this one"), "{short}");
        let enough = told(vec![minutes(window(0, 6), 15)]).to_string();
        let alone = "--from 2026-11-18T11:06:40Z --to 2026-11-18T11:21:40Z --lake";
        assert!(enough.contains(alone), "{enough}");
        // Fourteen minutes are left after an overlap.
        let ends = Window {
            to: T0 + 6 * HOUR + 14 * 60_000,
            ..window(5, 7)
        };
        let rest = told(vec![window(0, 6), ends]).to_string();
        assert!(
            rest.contains("--from 2026-11-18T17:06:40Z --lake"),
            "{rest}"
        );
    }

    #[test]
    fn a_command_that_begins_at_no_baseline_is_told_what_comes_first() {
        for windows in [[(0, 6), (7, 8)], [(0, 6), (5, 8)]] {
            let (_, message) = found(&[0], &windows).unwrap_err();
            let first = "convert the exports up to 2026-11-18T17:06:40Z alone";
            assert!(message.contains(first), "{message}");
        }
        let (_, message) = found(&[0], &[(1, 2)]).unwrap_err();
        assert!(!message.contains("alone, for a baseline"), "{message}");
    }

    #[test]
    fn words_of_commands_are_quoted() {
        let odd = Window {
            s3_prefix: Some("it's a prefix".to_owned()),
            ..window(2, 6)
        };
        let error = chain(&[baseline(0)], vec![odd], false, END).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(r"--prefix 'it'\''s a prefix'"),
            "{message}"
        );
    }

    #[test]
    fn windows_of_another_table_are_refused() {
        let mut other = window(0, 6);
        other.table_arn = "arn:u".to_owned();
        let error = chain(&[baseline(0)], vec![other], false, END).unwrap_err();
        assert_eq!(error.refusal(), Some(RefusalKind::OtherTable));
    }
}
