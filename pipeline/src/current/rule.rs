//! The rule: which row is the state of a key.
//!
//! For a key, let S be its change rows, s* the one with the greatest (`_stream`, `_seq`), and m the
//! greatest `_at` over S; they may come from different rows, since times are not promised to rise with
//! sequence numbers. With a baseline of time B and a margin M: if S is not empty and m ≥ B − M, the
//! state is s* (a REMOVE means absent); otherwise it is the baseline's row, and if the baseline has
//! none, the key is absent.
//!
//! It holds if every write made since B − 2M was, or will be, delivered by the stream.

/// M, in milliseconds: the same as in the views.
pub const MARGIN_MS: i64 = dynalake_schemas::views::MARGIN_MS;

/// What is known of the change rows of one key; rows may be seen in any order, and more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChanges<R> {
    stream: Option<String>,
    sequence_number: Option<String>,
    /// Time and schema version of the newest row.
    rank: (i64, i32),
    newest: R,
    latest_at: i64,
}

impl<R> KeyChanges<R> {
    /// The first change row that is seen of a key.
    pub fn new(
        stream: Option<&str>,
        sequence_number: Option<&str>,
        at: i64,
        schema: i32,
        row: R,
    ) -> Self {
        Self {
            stream: stream.map(str::to_owned),
            sequence_number: sequence_number.map(str::to_owned),
            rank: (at, schema),
            newest: row,
            latest_at: at,
        }
    }

    /// Another change row of the same key. `sequence_number` is padded to 40 digits, as in `_seq`.
    /// Among rows of the same position, which are the same change, the one with the greatest time
    /// counts, then the one of the newest schema version, then the first: as in the views, and as a
    /// compaction keeps them.
    pub fn observe(
        &mut self,
        stream: Option<&str>,
        sequence_number: Option<&str>,
        at: i64,
        schema: i32,
        row: R,
    ) {
        self.latest_at = self.latest_at.max(at);
        let newest = (self.stream.as_deref(), self.sequence_number.as_deref());
        if (stream, sequence_number, (at, schema)) > (newest.0, newest.1, self.rank) {
            self.rank = (at, schema);
            self.stream = stream.map(str::to_owned);
            self.sequence_number = sequence_number.map(str::to_owned);
            self.newest = row;
        }
    }

    /// s*, if the key's state is decided by its changes; `None` if by the baseline.
    ///
    /// `baseline_at` is B in milliseconds; `None` where there is no baseline, and changes decide alone.
    pub fn decide(&self, baseline_at: Option<i64>) -> Option<&R> {
        let decided = baseline_at.is_none_or(|at| self.latest_at >= at.saturating_sub(MARGIN_MS));
        decided.then_some(&self.newest)
    }
}

/// The first day (days since 1970) whose change rows can matter beside a baseline of this time: one
/// whole day before that of B − M, because the newest row of a key may be dated a little earlier than
/// the latest one.
pub fn first_day(baseline_at: i64) -> i32 {
    crate::layout::day_of(baseline_at.saturating_sub(MARGIN_MS)).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: i64 = 1_000_000_000;

    fn seq(number: &str) -> String {
        format!("{number:0>40}")
    }

    #[test]
    fn the_newest_row_decides_from_the_margin_on() {
        let changes = |at| KeyChanges::new(Some("s"), Some("1"), at, 1, "row");
        assert_eq!(changes(B).decide(Some(B)), Some(&"row"));
        assert_eq!(changes(B - MARGIN_MS).decide(Some(B)), Some(&"row"));
        assert_eq!(changes(B - MARGIN_MS - 1).decide(Some(B)), None);
        assert_eq!(changes(0).decide(None), Some(&"row"));
    }

    #[test]
    fn the_latest_time_may_come_from_another_row_than_the_newest() {
        let mut changes = KeyChanges::new(Some("s"), Some(&seq("9")), B, 1, "older");
        changes.observe(Some("s"), Some(&seq("10")), B - MARGIN_MS - 5, 1, "newer");
        assert_eq!(changes.decide(Some(B)), Some(&"newer"));
    }

    #[test]
    fn a_later_stream_is_newer_whatever_its_numbers() {
        let mut changes = KeyChanges::new(
            Some("2026-05-01T00:00:00.000"),
            Some(&seq("99")),
            B,
            1,
            "old",
        );
        changes.observe(
            Some("2026-06-01T00:00:00.000"),
            Some(&seq("1")),
            B,
            1,
            "new",
        );
        changes.observe(
            Some("2026-05-01T00:00:00.000"),
            Some(&seq("100")),
            B,
            1,
            "old again",
        );
        assert_eq!(changes.decide(Some(B)), Some(&"new"));
    }

    #[test]
    fn of_rows_of_one_change_the_latest_counts_then_the_newest_schema_then_the_first() {
        let rows = [
            (B, 1, "a"),
            (B + 9, 1, "b"),
            (B + 9, 2, "c"),
            (B + 9, 2, "d"),
        ];
        let mut orders = [rows, rows];
        orders[1].reverse();
        for (rows, expected) in orders.into_iter().zip(["c", "d"]) {
            let mut changes = KeyChanges::new(Some("s"), Some("1"), B, 0, "first");
            for (at, schema, row) in rows {
                changes.observe(Some("s"), Some("1"), at, schema, row);
            }
            assert_eq!(changes.decide(None), Some(&expected));
        }
    }

    #[test]
    fn days_are_read_one_wider_than_the_margin() {
        let day = crate::time::DAY_MS;
        assert_eq!(first_day(10 * day), 8);
        assert_eq!(first_day(10 * day + MARGIN_MS), 9);
    }
}
