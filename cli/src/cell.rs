//! Values of Arrow arrays as text and as JSON, exactly: no number passes through a float, except
//! columns that are floats.

use std::fmt::Write;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, TimeUnit,
    TimestampMillisecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta};

/// The value as plain text; `None` is NULL. Nested values are JSON.
pub(crate) fn text(array: &dyn Array, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Binary => STANDARD.encode(array.as_binary::<i32>().value(row)),
        DataType::Date32 => date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            instant(array.as_primitive::<TimestampMillisecondType>().value(row))
        }
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::List(_) | DataType::Map(..) | DataType::Struct(_) => {
            let mut out = String::new();
            json(array, row, &mut out);
            out
        }
        _ => other(array, row),
    })
}

/// Appends the value as JSON. Booleans, integers and floats are JSON's own; decimals, binary
/// (base64), dates and timestamps (ISO 8601) are strings.
pub(crate) fn json(array: &dyn Array, row: usize, out: &mut String) {
    if array.is_null(row) {
        out.push_str("null");
        return;
    }
    match array.data_type() {
        DataType::Boolean | DataType::Int32 | DataType::Int64 => {
            out.push_str(&text(array, row).unwrap_or_default());
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            if value.is_finite() {
                out.push_str(&float(value));
            } else {
                string(&float(value), out);
            }
        }
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            out.push('[');
            for index in 0..values.len() {
                comma(index, out);
                json(&values, index, out);
            }
            out.push(']');
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            out.push('{');
            if let [keys, values] = entries.columns() {
                for index in 0..entries.len() {
                    comma(index, out);
                    string(&text(keys, index).unwrap_or_default(), out);
                    out.push(':');
                    json(values, index, out);
                }
            }
            out.push('}');
        }
        DataType::Struct(fields) => {
            let members = array.as_struct().columns();
            out.push('{');
            for (index, (field, member)) in fields.iter().zip(members).enumerate() {
                comma(index, out);
                string(field.name(), out);
                out.push(':');
                json(member, row, out);
            }
            out.push('}');
        }
        _ => string(&text(array, row).unwrap_or_default(), out),
    }
}

/// Appends a JSON string.
pub(crate) fn string(text: &str, out: &mut String) {
    // A string always serialises.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn comma(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

/// Days since 1970-01-01 as `YYYY-MM-DD`.
pub(crate) fn date(days: i32) -> String {
    DateTime::UNIX_EPOCH
        .checked_add_signed(TimeDelta::days(i64::from(days)))
        .map_or_else(
            || days.to_string(),
            |day| day.format("%Y-%m-%d").to_string(),
        )
}

/// Milliseconds since 1970-01-01 UTC as `YYYY-MM-DDTHH:MM:SS[.mmm]Z`.
pub(crate) fn instant(milliseconds: i64) -> String {
    let pattern = if milliseconds % 1000 == 0 {
        "%Y-%m-%dT%H:%M:%SZ"
    } else {
        "%Y-%m-%dT%H:%M:%S%.3fZ"
    };
    DateTime::from_timestamp_millis(milliseconds).map_or_else(
        || milliseconds.to_string(),
        |time| time.format(pattern).to_string(),
    )
}

fn float(value: f64) -> String {
    if value.is_finite() {
        // The shortest text that reads back as the same float.
        serde_json::to_string(&value).unwrap_or_default()
    } else {
        value.to_string()
    }
}

/// Types that dynalake does not write.
fn other(array: &dyn Array, row: usize) -> String {
    let mut out = String::new();
    if let Ok(formatter) = ArrayFormatter::try_new(array, &FormatOptions::default()) {
        // A value that cannot be formatted is shown as nothing.
        write!(out, "{}", formatter.value(row)).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, Decimal128Array, Float64Array, Int64Array, ListArray, MapBuilder,
        StringArray, StringBuilder, StructArray, TimestampMillisecondArray,
    };
    use arrow::datatypes::Field;

    use super::*;

    fn both(array: &dyn Array, row: usize) -> (Option<String>, String) {
        let mut out = String::new();
        json(array, row, &mut out);
        (text(array, row), out)
    }

    fn pair(text: &str, json: &str) -> (Option<String>, String) {
        (Some(text.to_owned()), json.to_owned())
    }

    #[test]
    fn numbers_are_exact() {
        let wide =
            Decimal128Array::from(vec![Some(123_456_789_012_345_678_901_234_567_i128), None])
                .with_precision_and_scale(38, 2)
                .unwrap();
        let digits = "1234567890123456789012345.67";
        assert_eq!(both(&wide, 0), pair(digits, &format!("\"{digits}\"")));
        assert_eq!(both(&wide, 1), (None, "null".to_owned()));
        let negative = Decimal128Array::from(vec![-5_i128])
            .with_precision_and_scale(12, 2)
            .unwrap();
        assert_eq!(both(&negative, 0), pair("-0.05", "\"-0.05\""));
        let long = Int64Array::from(vec![9_007_199_254_740_993]);
        assert_eq!(both(&long, 0), pair("9007199254740993", "9007199254740993"));
        let float = Float64Array::from(vec![0.1, 1e300, f64::NAN]);
        assert_eq!(both(&float, 0), pair("0.1", "0.1"));
        assert_eq!(both(&float, 1).1.parse(), Ok(1e300));
        assert_eq!(both(&float, 2), pair("NaN", "\"NaN\""));
    }

    #[test]
    fn times_are_iso_8601() {
        assert_eq!(instant(1_777_593_600_000), "2026-05-01T00:00:00Z");
        assert_eq!(instant(1_777_593_600_120), "2026-05-01T00:00:00.120Z");
        assert_eq!(instant(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(instant(i64::MAX), i64::MAX.to_string());
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(-719_162), "0001-01-01");
        assert_eq!(date(i32::MAX), i32::MAX.to_string());
        let array = TimestampMillisecondArray::from(vec![1_777_593_600_000]).with_timezone("UTC");
        assert_eq!(
            both(&array, 0),
            pair("2026-05-01T00:00:00Z", "\"2026-05-01T00:00:00Z\"")
        );
    }

    #[test]
    fn nested_values_are_json() {
        let names: ArrayRef = Arc::new(StringArray::from(vec![Some("緑茶 \"200g\""), None]));
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![2, 3]));
        let lines = StructArray::from(vec![
            (Arc::new(Field::new("name", DataType::Utf8, true)), names),
            (Arc::new(Field::new("qty", DataType::Int64, true)), counts),
        ]);
        let element = Arc::new(Field::new("element", lines.data_type().clone(), true));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([2, 0]);
        let list = ListArray::new(element, offsets, Arc::new(lines), None);
        let expected = r#"[{"name":"緑茶 \"200g\"","qty":2},{"name":null,"qty":3}]"#;
        assert_eq!(both(&list, 0), pair(expected, expected));
        assert_eq!(both(&list, 1), pair("[]", "[]"));

        let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        map.keys().append_value("a\n");
        map.values().append_null();
        map.append(true).unwrap();
        assert_eq!(
            both(&map.finish(), 0),
            pair(r#"{"a\n":null}"#, r#"{"a\n":null}"#)
        );

        let binary = BinaryArray::from(vec![&b"\x00\xff"[..]]);
        assert_eq!(both(&binary, 0), pair("AP8=", "\"AP8=\""));
    }
}
