//! `ApproximateCreationDateTime` to milliseconds.
//!
//! DynamoDB Streams gives whole seconds (`1480642020`, also written `1693997155.0`), emulators give
//! fractions, and records that came by way of Kinesis hold milliseconds or microseconds. The unit is
//! told by the magnitude, which has no overlap between the years 1973 and 5138. The arithmetic is
//! decimal: a 64-bit float would move microseconds.

/// Digits before the point below which a time is in seconds, milliseconds, microseconds.
const SECONDS_DIGITS: usize = 11;
const MILLIS_DIGITS: usize = 14;
const MICROS_DIGITS: usize = 17;

/// Digits and exponents beyond this are no time.
const MAX_DIGITS: usize = 64;

/// Milliseconds since 1970-01-01 UTC of a JSON number's text, rounded down; `None` when it is not a
/// number or no time in seconds, milliseconds or microseconds.
pub(super) fn creation_ms(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if whole.is_empty()
        || digits.len() > MAX_DIGITS
        || exponent.unsigned_abs() > 64
        || !digits.iter().all(u8::is_ascii_digit)
        || mantissa.ends_with('.')
    {
        return None;
    }
    // The value is 0.digits times ten to the power of `point`.
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..zeros);
    let point = i64::try_from(whole.len()).ok()? - i64::try_from(zeros).ok()? + i64::from(exponent);
    let whole_digits = usize::try_from(point).unwrap_or(0);
    let (shift, _) = [(3, SECONDS_DIGITS), (0, MILLIS_DIGITS), (-3, MICROS_DIGITS)]
        .into_iter()
        .find(|(_, digits)| whole_digits <= *digits)?;
    // Below zero nothing is left before the point.
    let length = usize::try_from(point + shift).unwrap_or(0);
    let lost = digits
        .get(length..)
        .is_some_and(|rest| rest.iter().any(|digit| *digit != b'0'));
    digits.resize(length, b'0');
    let millis = digits
        .iter()
        .fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some(if negative {
        -millis - i64::from(lost)
    } else {
        millis
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_magnitude_tells_the_unit() {
        for (text, expected) in [
            ("1480642020", 1_480_642_020_000),
            ("1693997155.0", 1_693_997_155_000),
            ("1428537600.123999", 1_428_537_600_123),
            ("1.795003600123E9", 1_795_003_600_123),
            ("1646157866523", 1_646_157_866_523),
            ("1646157866523.9", 1_646_157_866_523),
            ("1795003600123456", 1_795_003_600_123),
            ("99999999999", 99_999_999_999_000),
            ("100000000000", 100_000_000_000),
            ("0", 0),
            ("0.0015", 1),
            ("1e-3", 1),
            ("1e-9", 0),
            ("-1", -1_000),
            ("-0.0001", -1),
            ("-0", 0),
        ] {
            assert_eq!(creation_ms(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "-",
            "abc",
            "1.",
            ".5",
            "1e",
            "1e999999999999",
            "true",
            "null",
            "\"1\"",
            "1 ",
            "1646157866523000000",
            "0x10",
            "1_000",
            "+1",
            "NaN",
        ] {
            assert_eq!(creation_ms(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            creation_ms(&text);
        }

        #[test]
        fn seconds_with_fraction_are_exact(ms in 0_i64..99_999_999_999_999) {
            let text = format!("{}.{:03}", ms / 1_000, ms % 1_000);
            prop_assert_eq!(creation_ms(&text), Some(ms));
            prop_assert_eq!(creation_ms(&format!("{text}9999")), Some(ms));
        }

        #[test]
        fn any_number_is_read_or_refused(text in "-?[0-9]{1,80}(\\.[0-9]{1,80})?([eE][+-]?[0-9]{1,12})?") {
            creation_ms(&text);
        }
    }
}
