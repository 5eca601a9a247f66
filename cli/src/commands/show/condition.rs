//! `--where column=value`: the value read as the column's type, compared exactly, and row groups
//! left out that cannot hold it.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array,
    Int32Array, Int64Array, Scalar, StringArray, TimestampMillisecondArray,
};
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowPredicate, ArrowPredicateFn, ArrowReaderMetadata};

use crate::exit::{Failure, Outcome};

/// A column that must equal a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    /// Column name.
    pub(super) column: String,
    value: String,
}

impl Condition {
    /// Parses `column=value`; the value may hold further `=`.
    pub(super) fn parse(text: &str) -> Outcome<Self> {
        match text.split_once('=') {
            Some((column, value)) if !column.trim().is_empty() => Ok(Self {
                column: column.trim().to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(
                Failure::usage(format!("`--where {text}` is not `column=value`"))
                    .hint("for example `--where status=paid`; repeat it to ask for more than one"),
            ),
        }
    }

    /// The value as a one-element array of the column's type; `None` when no value of that type
    /// can equal it (more fraction digits than the column holds).
    pub(super) fn value(&self, ty: &DataType) -> Outcome<Option<ArrayRef>> {
        let text = self.value.as_str();
        let array = match ty {
            DataType::Utf8 => Some(array(StringArray::from(vec![text]))),
            DataType::Boolean => match text {
                "true" => Some(array(BooleanArray::from(vec![true]))),
                "false" => Some(array(BooleanArray::from(vec![false]))),
                _ => None,
            },
            DataType::Int32 => text
                .parse()
                .ok()
                .map(|value: i32| array(Int32Array::from(vec![value]))),
            DataType::Int64 => text
                .parse()
                .ok()
                .map(|value: i64| array(Int64Array::from(vec![value]))),
            DataType::Float64 => text
                .parse()
                .ok()
                .map(|value: f64| array(Float64Array::from(vec![value]))),
            DataType::Decimal128(precision, scale) => match decimal(text, *scale) {
                Some(None) => return Ok(None),
                Some(Some(value)) => Decimal128Array::from(vec![value])
                    .with_precision_and_scale(*precision, *scale)
                    .ok()
                    .map(array),
                None => None,
            },
            DataType::Date32 => NaiveDate::parse_from_str(text, "%Y-%m-%d")
                .ok()
                .and_then(|day| i32::try_from((day - NaiveDate::default()).num_days()).ok())
                .map(|days| array(Date32Array::from(vec![days]))),
            DataType::Timestamp(TimeUnit::Millisecond, zone) => instant(text).map(|time| {
                let times = TimestampMillisecondArray::from(vec![time]);
                array(times.with_timezone_opt(zone.clone()))
            }),
            DataType::Binary => STANDARD
                .decode(text)
                .ok()
                .map(|bytes| array(BinaryArray::from(vec![bytes.as_slice()]))),
            _ => {
                return Err(Failure::usage(format!(
                    "`--where {}=…` is not possible: the column is nested",
                    self.column
                ))
                .hint("print the rows with `--format json` and filter them there"));
            }
        };
        array.map(Some).ok_or_else(|| {
            Failure::usage(format!(
                "`{text}` is not a value of column `{}`, which is {}",
                self.column,
                describe(ty)
            ))
        })
    }
}

fn array(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn describe(ty: &DataType) -> &'static str {
    match ty {
        DataType::Boolean => "a boolean (`true` or `false`)",
        DataType::Int32 => "an int",
        DataType::Int64 => "a bigint",
        DataType::Float64 => "a double",
        DataType::Decimal128(..) => "a decimal (such as `12.50`) of limited digits",
        DataType::Date32 => "a date (`YYYY-MM-DD`)",
        DataType::Timestamp(..) => "a timestamp (`YYYY-MM-DDTHH:MM:SS[.mmm]Z`)",
        DataType::Binary => "binary (base64)",
        _ => "text",
    }
}

/// Plain decimal text, times ten to the scale. `None`: not a decimal, or beyond 128 bits;
/// `Some(None)`: a decimal with more fraction digits than the scale.
#[expect(clippy::option_option, reason = "three answers, local")]
fn decimal(text: &str, scale: i8) -> Option<Option<i128>> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let scale = usize::try_from(scale).ok()?;
    if fraction.len() > scale {
        return Some(None);
    }
    let scaled: i128 = format!("{whole}{fraction:0<scale$}")
        .parse()
        .ok()
        .or_else(|| (whole.len() + scale == 0).then_some(0))?;
    Some(Some(sign * scaled))
}

fn instant(text: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_millis());
    }
    let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    Some(time.and_utc().timestamp_millis())
}

/// Conditions bound to one object.
pub(super) struct Bound {
    /// Row groups that may hold a matching row.
    pub(super) row_groups: Vec<usize>,
    /// One filter per condition.
    pub(super) filters: Vec<Box<dyn ArrowPredicate>>,
}

/// Binds conditions to an object; `None` when none of its rows can match.
pub(super) fn bind(
    conditions: &[Condition],
    object: &ArrowReaderMetadata,
) -> Outcome<Option<Bound>> {
    let metadata = object.metadata();
    let mut bound = Bound {
        row_groups: (0..metadata.num_row_groups()).collect(),
        filters: Vec::new(),
    };
    for condition in conditions {
        // An object of an older schema version, without the column: NULL equals nothing.
        let Ok(index) = object.schema().index_of(&condition.column) else {
            return Ok(None);
        };
        let Some(value) = condition.value(object.schema().field(index).data_type())? else {
            return Ok(None);
        };
        let value = Scalar::new(value);
        prune(&mut bound.row_groups, &condition.column, object, &value);
        if bound.row_groups.is_empty() {
            return Ok(None);
        }
        let mask = ProjectionMask::roots(object.parquet_schema(), [index]);
        bound
            .filters
            .push(Box::new(ArrowPredicateFn::new(mask, move |batch| {
                cmp::eq(batch.column(0), &value)
            })));
    }
    Ok(Some(bound))
}

/// Drops row groups whose least and greatest value exclude the one looked for.
fn prune(
    row_groups: &mut Vec<usize>,
    column: &str,
    object: &ArrowReaderMetadata,
    value: &Scalar<ArrayRef>,
) {
    let metadata = object.metadata();
    let excluded = || -> Option<(BooleanArray, BooleanArray)> {
        let statistics =
            StatisticsConverter::try_new(column, object.schema(), object.parquet_schema()).ok()?;
        let least = statistics.row_group_mins(metadata.row_groups()).ok()?;
        let greatest = statistics.row_group_maxes(metadata.row_groups()).ok()?;
        Some((
            cmp::gt(&least, value).ok()?,
            cmp::lt(&greatest, value).ok()?,
        ))
    };
    if let Some((above, below)) = excluded() {
        let yes = |array: &BooleanArray, index| array.is_valid(index) && array.value(index);
        row_groups.retain(|group| !yes(&above, *group) && !yes(&below, *group));
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{Decimal128Type, TimestampMillisecondType};

    use super::*;

    fn condition(text: &str) -> Condition {
        Condition::parse(text).unwrap()
    }

    #[test]
    fn conditions_split_at_the_first_equals_sign() {
        assert_eq!(
            condition("a=b=c"),
            Condition {
                column: "a".into(),
                value: "b=c".into()
            }
        );
        assert_eq!(
            condition("a="),
            Condition {
                column: "a".into(),
                value: String::new()
            }
        );
        assert!(Condition::parse("a").is_err());
        assert!(Condition::parse("=b").is_err());
    }

    #[test]
    fn decimals_are_compared_by_value_and_never_rounded() {
        assert_eq!(decimal("12.5", 2), Some(Some(1250)));
        assert_eq!(decimal("12.500", 2), Some(Some(1250)));
        assert_eq!(decimal("-0.05", 2), Some(Some(-5)));
        assert_eq!(decimal("+7", 0), Some(Some(7)));
        assert_eq!(decimal(".5", 1), Some(Some(5)));
        assert_eq!(decimal("0.", 0), Some(Some(0)));
        assert_eq!(decimal("12.345", 2), Some(None));
        for wrong in ["", ".", "-", "1e3", "1.2.3", "abc", &"9".repeat(40)] {
            assert_eq!(decimal(wrong, 2), None, "{wrong}");
        }
    }

    #[test]
    fn values_are_read_as_the_columns_type() {
        let value = |text: &str, ty: DataType| condition(text).value(&ty);
        let total = value("total=12.5", DataType::Decimal128(12, 2))
            .unwrap()
            .unwrap();
        assert_eq!(total.as_primitive::<Decimal128Type>().value(0), 1250);
        assert!(
            value("total=12.345", DataType::Decimal128(12, 2))
                .unwrap()
                .is_none()
        );
        let zone = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let at = value("at=2026-05-01T09:00:00+09:00", zone.clone())
            .unwrap()
            .unwrap();
        assert_eq!(
            at.as_primitive::<TimestampMillisecondType>().value(0),
            1_777_593_600_000
        );
        let at = value("at=2026-05-01T00:00:00.5", zone).unwrap().unwrap();
        assert_eq!(
            at.as_primitive::<TimestampMillisecondType>().value(0),
            1_777_593_600_500
        );
        assert!(value("day=2026-02-30", DataType::Date32).is_err());
        assert!(value("n=1.5", DataType::Int64).is_err());
        assert!(value("flag=yes", DataType::Boolean).is_err());
        let nested = DataType::Struct(Vec::<arrow::datatypes::Field>::new().into());
        assert!(value("x=1", nested).unwrap_err().message.contains("nested"));
    }
}
