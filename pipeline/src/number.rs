//! DynamoDB numbers, exactly.
//!
//! A number is a sign, up to 38 significant digits and a power of ten; its magnitude is 0 or between
//! 1E-130 and 9.9…9E+125 (Amazon DynamoDB Developer Guide, "Naming rules and data types"). Nothing
//! here passes through binary floating point, except [`Decimal::to_f64`] for `double` columns.

use std::cmp::Ordering;
use std::fmt;

/// Most significant digits a number may have.
const MAX_DIGITS: u32 = 38;
/// Largest power of ten of the first significant digit.
const MAX_MAGNITUDE: i64 = 125;
/// Smallest power of ten of the first significant digit.
const MIN_MAGNITUDE: i64 = -130;

/// Why a text is not a DynamoDB number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not digits, a sign, a point and an exponent.
    #[error("the text is not a number")]
    NotANumber,
    /// More than 38 significant digits.
    #[error("the number has more than 38 significant digits")]
    TooManyDigits,
    /// Outside ±1E-130 … ±9.9E+125.
    #[error("the number is outside the range 1E-130 to 9.9E+125")]
    OutOfRange,
}

/// A number by value: `digits * 10^exponent`, where `digits` does not end in 0. Zero is 0 × 10⁰.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    digits: u128,
    exponent: i32,
}

/// Checks a number's text; `true` when it is already canonical (see [`canonical`]).
///
/// # Errors
/// As [`Decimal::parse`].
pub fn check(text: &str) -> Result<bool, NumberError> {
    // Nearly all numbers are short canonical integers or decimals.
    let unsigned = text.strip_prefix('-').unwrap_or(text).as_bytes();
    if unsigned.len() <= 38 {
        let mut point = None;
        let plain = unsigned.iter().enumerate().all(|(at, &byte)| match byte {
            b'0'..=b'9' => true,
            b'.' if point.is_none() => {
                point = Some(at);
                true
            }
            _ => false,
        });
        let leading_zero = unsigned.first() == Some(&b'0');
        let canonical = plain
            && match point {
                None => !unsigned.is_empty() && (!leading_zero || text == "0"),
                Some(at) => {
                    at > 0
                        && (!leading_zero || at == 1)
                        && !matches!(unsigned.last(), Some(b'0' | b'.'))
                }
            };
        if canonical {
            return Ok(true);
        }
    }
    let decimal = Decimal::parse(text)?;
    Ok(text.len() > 38 && decimal.to_string() == text)
}

/// The canonical plain decimal, as DynamoDB returns it: no exponent, no `+`, no needless zeros.
///
/// # Errors
/// As [`Decimal::parse`].
pub fn canonical(text: &str) -> Result<String, NumberError> {
    Decimal::parse(text).map(|decimal| decimal.to_string())
}

/// Order by value of two numbers; text that is no number comes first.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (Decimal::parse(a), Decimal::parse(b)) {
        (Ok(a), Ok(b)) => a.compare(&b),
        (a, b) => a.is_ok().cmp(&b.is_ok()),
    }
}

impl Decimal {
    /// Reads every spelling DynamoDB accepts or emits: canonical, signs, leading and trailing zeros,
    /// `.5`, `5.` (Ion), exponents.
    ///
    /// # Errors
    /// What is wrong. Nothing is rounded.
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] | rest => (false, rest),
        };
        let mut digits = 0_u128;
        let mut kept = 0_u32; // significant digits in `digits`
        let mut zeros = 0_u32; // zeros seen since, significant only if a digit follows
        let mut exponent = 0_i64;
        let mut any_digit = false;
        let mut in_fraction = false;
        let mut rest = unsigned;
        while let [byte, tail @ ..] = rest {
            match byte {
                b'0' => {
                    any_digit = true;
                    exponent -= i64::from(in_fraction);
                    if kept > 0 {
                        zeros = zeros.saturating_add(1);
                    }
                }
                b'1'..=b'9' => {
                    any_digit = true;
                    exponent -= i64::from(in_fraction);
                    kept = kept.saturating_add(zeros).saturating_add(1);
                    if kept > MAX_DIGITS {
                        // Well-formed or not decides which error it is.
                        return Err(Self::error_of(tail, NumberError::TooManyDigits));
                    }
                    let shift = 10_u128.pow(zeros + 1);
                    digits = digits * shift + u128::from(byte - b'0');
                    zeros = 0;
                }
                b'.' if !in_fraction => in_fraction = true,
                b'e' | b'E' if any_digit => {
                    exponent = exponent.saturating_add(parse_exponent(tail)?);
                    rest = &[];
                    break;
                }
                _ => return Err(NumberError::NotANumber),
            }
            rest = tail;
        }
        if !any_digit || !rest.is_empty() {
            return Err(NumberError::NotANumber);
        }
        if digits == 0 {
            return Ok(Self {
                negative: false,
                digits: 0,
                exponent: 0,
            });
        }
        exponent = exponent.saturating_add(i64::from(zeros));
        let magnitude = exponent.saturating_add(i64::from(kept) - 1);
        if !(MIN_MAGNITUDE..=MAX_MAGNITUDE).contains(&magnitude) {
            return Err(NumberError::OutOfRange);
        }
        let exponent = i32::try_from(exponent).map_err(|_| NumberError::OutOfRange)?;
        Ok(Self {
            negative,
            digits,
            exponent,
        })
    }

    fn error_of(rest: &[u8], error: NumberError) -> NumberError {
        let well_formed = rest
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
        if well_formed {
            error
        } else {
            NumberError::NotANumber
        }
    }

    /// The value as a whole number of `10^-scale`, if it is one and fits.
    pub fn to_scaled(self, scale: i32) -> Option<i128> {
        if self.digits == 0 {
            return Some(0);
        }
        let shift = u32::try_from(self.exponent.checked_add(scale)?).ok()?;
        let unsigned = self.digits.checked_mul(10_u128.checked_pow(shift)?)?;
        let unsigned = i128::try_from(unsigned).ok()?;
        Some(if self.negative { -unsigned } else { unsigned })
    }

    /// The largest whole number of `10^-scale` not above the value (floor), and whether it is exact.
    pub fn floor_scaled(self, scale: i32) -> Option<(i128, bool)> {
        if let Some(exact) = self.to_scaled(scale) {
            return Some((exact, true));
        }
        let drop = self.exponent.checked_add(scale)?.checked_neg()?;
        let drop = u32::try_from(drop).ok()?;
        // 10^39 is above every 38-digit number.
        let whole = 10_u128
            .checked_pow(drop)
            .map_or(0, |power| self.digits / power);
        let whole = i128::try_from(whole).ok()?;
        Some((if self.negative { -whole - 1 } else { whole }, false))
    }

    /// The nearest 64-bit float, and whether its shortest decimal text is the number again.
    pub fn to_f64(self) -> Option<(f64, bool)> {
        let sign = if self.negative { "-" } else { "" };
        let nearest: f64 = format!("{sign}{}e{}", self.digits, self.exponent)
            .parse()
            .ok()?;
        let exact = Self::parse(&format!("{nearest:e}")).is_ok_and(|back| back == self);
        Some((nearest, exact))
    }

    fn compare(&self, other: &Self) -> Ordering {
        let sign = |d: &Self| {
            if d.digits == 0 {
                0
            } else {
                1 - 2 * i32::from(d.negative)
            }
        };
        let unsigned = || {
            let magnitude = |d: &Self| {
                i64::from(d.exponent) + i64::from(d.digits.checked_ilog10().unwrap_or(0))
            };
            magnitude(self).cmp(&magnitude(other)).then_with(|| {
                // Same magnitude: bring both to 38 digits.
                let full = |d: &Self| {
                    let missing = 37_u32.saturating_sub(d.digits.checked_ilog10().unwrap_or(0));
                    d.digits.saturating_mul(10_u128.saturating_pow(missing))
                };
                full(self).cmp(&full(other))
            })
        };
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            1 => unsigned(),
            -1 => unsigned().reverse(),
            _ => Ordering::Equal,
        })
    }
}

impl fmt::Display for Decimal {
    /// The canonical plain decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        let digits = self.digits.to_string();
        let Ok(places) = usize::try_from(self.exponent.unsigned_abs()) else {
            return Err(fmt::Error);
        };
        if self.exponent >= 0 {
            return write!(f, "{digits}{}", "0".repeat(places));
        }
        match digits.len().checked_sub(places).filter(|&whole| whole > 0) {
            Some(whole) => {
                let (whole, fraction) = digits.split_at(whole);
                write!(f, "{whole}.{fraction}")
            }
            None => write!(f, "0.{}{digits}", "0".repeat(places - digits.len())),
        }
    }
}

fn parse_exponent(text: &[u8]) -> Result<i64, NumberError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    if digits.is_empty() {
        return Err(NumberError::NotANumber);
    }
    let mut value = 0_i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return Err(NumberError::NotANumber);
        }
        value = value
            .saturating_mul(10)
            .saturating_add(i64::from(byte - b'0'))
            .min(1_000_000_000);
    }
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_becomes_the_one_dynamodb_returns() {
        let zeros = |n| "0".repeat(n);
        let cases = [
            ("0", "0".to_owned()),
            ("-0", "0".to_owned()),
            ("0e1000", "0".to_owned()),
            ("0.000", "0".to_owned()),
            ("+7", "7".to_owned()),
            ("00042", "42".to_owned()),
            ("4.2000", "4.2".to_owned()),
            (".25", "0.25".to_owned()),
            ("-.25", "-0.25".to_owned()),
            ("103.", "103".to_owned()),
            ("2E+3", "2000".to_owned()),
            ("25e-3", "0.025".to_owned()),
            ("-17.4E37", format!("-174{}", zeros(36))),
            ("1.234e16", "12340000000000000".to_owned()),
            ("7e125", format!("7{}", zeros(125))),
            ("7e-130", format!("0.{}7", zeros(129))),
            (
                "110111111111111110000000000000000000000",
                "110111111111111110000000000000000000000".to_owned(),
            ),
            ("-9007199254740998.25", "-9007199254740998.25".to_owned()),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(text).as_ref(), Ok(&expected), "{text}");
            assert_eq!(check(text), Ok(text == expected), "{text}");
            assert_eq!(check(&expected), Ok(true), "{expected}");
        }
    }

    #[test]
    fn what_dynamodb_refuses_is_refused() {
        let nines = |n| "9".repeat(n);
        assert_eq!(canonical(&nines(38)), Ok(nines(38)));
        assert_eq!(canonical(&nines(39)), Err(NumberError::TooManyDigits));
        assert_eq!(canonical("1e126"), Err(NumberError::OutOfRange));
        assert_eq!(canonical("1e-131"), Err(NumberError::OutOfRange));
        assert_eq!(
            canonical("1e99999999999999999999"),
            Err(NumberError::OutOfRange)
        );
        for text in [
            "", " 1", "1 ", "NaN", "Infinity", "+", "-", ".", "e5", "1e", "1e+", "1.2.3", "--1",
            "0x1", "1_0", "١",
        ] {
            assert_eq!(canonical(text), Err(NumberError::NotANumber), "{text}");
            assert_eq!(check(text), Err(NumberError::NotANumber), "{text}");
        }
    }

    #[test]
    fn floor_and_float_say_whether_they_are_exact() {
        let parse = |text| Decimal::parse(text).unwrap();
        assert_eq!(parse("1.5").floor_scaled(0), Some((1, false)));
        assert_eq!(parse("-1.5").floor_scaled(0), Some((-2, false)));
        assert_eq!(parse("-1e-100").floor_scaled(3), Some((-1, false)));
        assert_eq!(parse("12").floor_scaled(3), Some((12000, true)));
        assert_eq!(parse("1e60").floor_scaled(0), None);
        assert_eq!(parse("0.1").to_f64(), Some((0.1, true)));
        assert!(!parse("9007199254740993").to_f64().unwrap().1);
        assert!(!parse("0.10000000000000000001").to_f64().unwrap().1);
    }

    proptest! {
        #[test]
        fn canonical_text_is_a_fixed_point_and_keeps_the_value(
            negative: bool, digits in "[0-9]{1,38}", exponent in -90i32..80
        ) {
            let text = format!("{}{digits}e{exponent}", if negative { "-" } else { "" });
            let canonical = canonical(&text).unwrap();
            prop_assert_eq!(check(&canonical), Ok(true));
            prop_assert_eq!(Decimal::parse(&canonical), Decimal::parse(&text));
            prop_assert_eq!(compare(&canonical, &text), Ordering::Equal);
        }

        #[test]
        fn order_is_numeric(a in -1_000_000i64..1_000_000, b in -1_000_000i64..1_000_000, scale in 0u32..6) {
            let spell = |n: i64| format!("{n}e-{scale}");
            prop_assert_eq!(compare(&spell(a), &spell(b)), a.cmp(&b));
        }

        #[test]
        fn check_agrees_with_canonical(text in "[-+]?[0-9.]{0,42}(e[-+]?[0-9]{1,3})?") {
            prop_assert_eq!(check(&text), canonical(&text).map(|c| c == text));
        }
    }
}
