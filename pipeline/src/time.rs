//! Days and instants as items spell them.
//!
//! Every reader says whether the column's format would spell the value exactly so again; if not, the
//! value is held inexactly and the attribute stays in `_rest` too.

use std::fmt::Write;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use crate::number::Decimal;

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;
/// 0001-01-01T00:00:00Z in milliseconds: the first instant a column holds.
const MIN_MS: i64 = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999Z in milliseconds: the last instant a column holds.
const MAX_MS: i64 = 253_402_300_799_999;

/// A value as far as its column can hold it, and whether that is all of it.
pub type Held<T> = (T, bool);

/// RFC 3339 text as milliseconds; exact when it is spelled `YYYY-MM-DDTHH:MM:SS[.mmm]Z` with a
/// fraction only when that is not zero.
pub fn parse_iso8601(text: &str) -> Option<Held<i64>> {
    let date = parse_iso_date(text.get(..10)?)?;
    let rest = text.get(10..)?;
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let bytes = time.as_bytes();
    let [h1, h2, b':', m1, m2, b':', s1, s2, tail @ ..] = bytes else {
        return None;
    };
    let time = NaiveTime::from_hms_opt(two(*h1, *h2)?, two(*m1, *m2)?, two(*s1, *s2)?)?;
    let seconds = i64::from(date) * 86_400 + i64::from(time.num_seconds_from_midnight());
    let digits = match tail {
        [b'.', fraction @ ..] => fraction.iter().take_while(|b| b.is_ascii_digit()).count(),
        _ => 0,
    };
    let (fraction, zone) = if digits > 0 {
        tail.get(1..)?.split_at(digits)
    } else {
        (tail.get(..0)?, tail)
    };
    let mut millis = 0;
    for place in 0..3 {
        millis = millis * 10
            + fraction
                .get(place)
                .map_or(0, |digit| i64::from(digit - b'0'));
    }
    let offset_minutes = match zone {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (two(*h1, *h2)?, two(*m1, *m2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = i64::from(hours * 60 + minutes);
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let at = in_range((seconds - offset_minutes * 60) * 1000 + millis)?;
    let exact =
        zone == b"Z" && rest.starts_with('T') && (tail == b"Z" || (digits == 3 && millis != 0));
    Some((at, exact))
}

/// `YYYY-MM-DD` as days since 1970-01-01; years 0001 to 9999.
pub fn parse_iso_date(text: &str) -> Option<i32> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
        return None;
    };
    let year = two(*y1, *y2)? * 100 + two(*y3, *y4)?;
    days(NaiveDate::from_ymd_opt(
        i32::try_from(year).ok()?,
        two(*m1, *m2)?,
        two(*d1, *d2)?,
    )?)
}

/// Text after a `strftime` pattern as milliseconds; a pattern without an offset means UTC.
pub fn parse_pattern(text: &str, pattern: &str) -> Option<Held<i64>> {
    let (at, spelled) = if let Ok(zoned) = DateTime::parse_from_str(text, pattern) {
        (zoned.timestamp_millis(), zoned.to_utc().fixed_offset())
    } else {
        let naive = NaiveDateTime::parse_from_str(text, pattern)
            .ok()
            .or_else(|| {
                NaiveDate::parse_from_str(text, pattern)
                    .ok()
                    .map(|date| date.and_time(NaiveTime::MIN))
            })?;
        (
            naive.and_utc().timestamp_millis(),
            naive.and_utc().fixed_offset(),
        )
    };
    let held = DateTime::from_timestamp_millis(in_range(at)?)?.fixed_offset();
    let exact = spelled == held && format_pattern(&held, pattern).as_deref() == Some(text);
    Some((at, exact))
}

/// Text after a `strftime` date pattern as days.
pub fn parse_date_pattern(text: &str, pattern: &str) -> Option<Held<i32>> {
    let date = NaiveDate::parse_from_str(text, pattern).ok()?;
    let mut spelled = String::new();
    let exact = write!(spelled, "{}", date.format(pattern)).is_ok() && spelled == text;
    Some((days(date)?, exact))
}

fn format_pattern(at: &DateTime<chrono::FixedOffset>, pattern: &str) -> Option<String> {
    let mut text = String::new();
    write!(text, "{}", at.format(pattern)).ok()?;
    Some(text)
}

/// A number of `10^-unit_scale` seconds since 1970 as milliseconds, rounded down; exact when nothing
/// finer was there.
pub fn from_epoch(number: Decimal, unit_scale: i32) -> Option<Held<i64>> {
    let (millis, exact) = number.floor_scaled(3 - unit_scale)?;
    Some((in_range(i64::try_from(millis).ok()?)?, exact))
}

/// An instant's day; exact when the instant is midnight UTC.
pub fn day_of(millis: Held<i64>) -> Option<Held<i32>> {
    let day = i32::try_from(millis.0.div_euclid(DAY_MS)).ok()?;
    Some((day, millis.1 && millis.0.rem_euclid(DAY_MS) == 0))
}

/// Milliseconds as `YYYY-MM-DDTHH:MM:SS[.mmm]Z`, the fraction only when it is not zero.
pub fn format_iso8601(millis: i64) -> Option<String> {
    let at = DateTime::from_timestamp_millis(millis)?;
    let pattern = if millis.rem_euclid(1000) == 0 {
        "%Y-%m-%dT%H:%M:%SZ"
    } else {
        "%Y-%m-%dT%H:%M:%S%.3fZ"
    };
    format_pattern(&at.fixed_offset(), pattern)
}

/// Milliseconds after a `strftime` pattern, in UTC.
pub fn format_millis(millis: i64, pattern: &str) -> Option<String> {
    format_pattern(
        &DateTime::from_timestamp_millis(millis)?.fixed_offset(),
        pattern,
    )
}

/// Days since 1970-01-01 as `YYYY-MM-DD`.
pub fn format_date(days: i32) -> Option<String> {
    format_millis(i64::from(days) * DAY_MS, "%Y-%m-%d")
}

/// Days since 1970-01-01 after a `strftime` date pattern.
pub fn format_days(days: i32, pattern: &str) -> Option<String> {
    let date = DateTime::from_timestamp_millis(i64::from(days) * DAY_MS)?.date_naive();
    let mut text = String::new();
    write!(text, "{}", date.format(pattern)).ok()?;
    Some(text)
}

fn in_range(millis: i64) -> Option<i64> {
    (MIN_MS..=MAX_MS).contains(&millis).then_some(millis)
}

fn days(date: NaiveDate) -> Option<i32> {
    (1..=9999)
        .contains(&date.year())
        .then(|| date.num_days_from_ce() - 719_163)
}

fn two(tens: u8, ones: u8) -> Option<u32> {
    (tens.is_ascii_digit() && ones.is_ascii_digit())
        .then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn iso8601_is_exact_only_in_its_own_spelling() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some((0, true))),
            ("1970-01-01T00:00:00.250Z", Some((250, true))),
            ("1970-01-01T00:00:00.000Z", Some((0, false))),
            ("1970-01-01T00:00:00.25Z", Some((250, false))),
            ("1970-01-01T00:00:00.2504Z", Some((250, false))),
            ("1970-01-01 00:00:01z", Some((1000, false))),
            ("1970-01-01T09:00:00+09:00", Some((0, false))),
            ("1970-01-01T00:00:00+00:00", Some((0, false))),
            ("9999-12-31T23:59:59Z", Some((253_402_300_799_000, true))),
            ("0001-01-01T00:00:00Z", Some((MIN_MS, true))),
            ("0001-01-01T00:00:00+01:00", None),
            ("0000-01-01T00:00:00Z", None),
            ("2023-02-29T00:00:00Z", None),
            ("2016-12-31T23:59:60Z", None),
            ("2016-12-31T24:00:00Z", None),
            ("2016-12-31T23:59:59", None),
            ("2016-12-31T23:59:59.Z", None),
            ("2016-12-31", None),
            ("", None),
            ("ééééé", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_iso8601(text), expected, "{text}");
        }
    }

    #[test]
    fn patterns_are_exact_when_they_spell_the_same_text() {
        let zoned = "%Y-%m-%dT%H:%M:%S%:z";
        assert_eq!(
            parse_pattern("1970-01-01T00:00:00+00:00", zoned),
            Some((0, true))
        );
        assert_eq!(
            parse_pattern("1970-01-01T09:00:00+09:00", zoned),
            Some((0, false))
        );
        let js = "%Y-%m-%dT%H:%M:%S%.3fZ";
        assert_eq!(
            parse_pattern("1970-01-01T00:00:00.000Z", js),
            Some((0, true))
        );
        assert_eq!(
            parse_pattern("1970-01-02 00:00", "%Y-%m-%d %H:%M"),
            Some((DAY_MS, true))
        );
        assert_eq!(
            parse_pattern("1970-01-02 0:00", "%Y-%m-%d %H:%M"),
            Some((DAY_MS, false))
        );
        assert_eq!(parse_pattern("nonsense", js), None);
        assert_eq!(
            parse_date_pattern("02/01/1970", "%d/%m/%Y"),
            Some((1, true))
        );
        assert_eq!(parse_date_pattern("2/1/1970", "%d/%m/%Y"), Some((1, false)));
    }

    #[test]
    fn epochs_keep_what_fits_in_milliseconds() {
        let parse = |text| Decimal::parse(text).unwrap();
        assert_eq!(
            from_epoch(parse("1700000000.5"), 0),
            Some((1_700_000_000_500, true))
        );
        assert_eq!(
            from_epoch(parse("1700000000123456"), 6),
            Some((1_700_000_000_123, false))
        );
        assert_eq!(from_epoch(parse("-1"), 3), Some((-1, true)));
        assert_eq!(from_epoch(parse("1e30"), 0), None);
        assert_eq!(day_of((DAY_MS + 1, true)), Some((1, false)));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_exactly(millis in MIN_MS..=MAX_MS) {
            let text = format_iso8601(millis).unwrap();
            prop_assert_eq!(parse_iso8601(&text), Some((millis, true)));
            let day = i32::try_from(millis.div_euclid(DAY_MS)).unwrap();
            prop_assert_eq!(parse_iso_date(&format_date(day).unwrap()), Some(day));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}", pattern in "[%YmdHMSfzZ:.T -]{0,12}") {
            parse_iso8601(&text);
            parse_date_pattern(&text, &pattern);
            parse_pattern(&text, &pattern);
        }
    }
}
