//! One line of an export in Amazon Ion, as the text that the line has in a DynamoDB JSON export.
//!
//! Input: a line of Ion 1.0 text as DynamoDB writes it, `$ion_1_0 {Item:{…}}` or, in an incremental
//! export, `$ion_1_0 {Record:{Keys:{…},Metadata:{…},OldImage:{…},NewImage:{…}}}`. Output:
//! `{"Item":{…}}` or `{"Keys":{…},"Metadata":{…},"NewImage":{…}}`, so that everything after it is the
//! same for both formats. Nobody reads old images, so nothing that is wrong with one matters.
//!
//! | Ion | DynamoDB JSON |
//! |---|---|
//! | decimal or int: `103.`, `6d2`, `-0.5`, `7` | `{"N":"103"}`, `{"N":"600"}`, … |
//! | string | `{"S":"…"}` |
//! | blob `{{AAE=}}` | `{"B":"AAE="}` |
//! | bool, `null` | `{"BOOL":true}`, `{"NULL":true}` |
//! | list, struct | `{"L":[…]}`, `{"M":{…}}` |
//! | list annotated `$dynamodb_SS`, `$dynamodb_NS`, `$dynamodb_BS` | `{"SS":[…]}`, … |
//!
//! Types: Amazon DynamoDB Developer Guide, "DynamoDB table export output format". Ion's other types
//! are no attribute values, and a line with one goes to quarantine. Numbers keep every digit.

mod guard;
mod write;

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dynalake_pipeline::json::write_escaped;
use dynalake_pipeline::number;
use dynalake_pipeline::reject::{ReasonCode, Reject};
use ion_rs::v1_0::Text;
use ion_rs::{IonError, IonResult, IonType, LazyList, LazyStruct, LazyValue, Reader, ValueRef};

use crate::format::DataFormat;
pub(crate) use write::from_json;

/// What is said of a line at which the library panicked.
const GAVE_UP: &str = "the Ion text cannot be read";

/// Writes a line's DynamoDB JSON text into `json`, in place of what was there. The text has no white
/// space and no needless escapes, and numbers are plain, as in AWS's JSON exports.
///
/// # Errors
/// Why the line is not what DynamoDB writes; `json` then holds nothing of use.
pub(crate) fn to_json(line: &[u8], json: &mut String) -> Result<(), Reject> {
    read(line, json, write_members)
}

/// As [`to_json`], but only the first of `Keys`, `NewImage` and `OldImage` that a line of an
/// incremental export has: what is left of it where another member cannot be read.
pub(crate) fn keys_to_json(line: &[u8], json: &mut String) -> Result<(), Reject> {
    read(line, json, write_keys)
}

fn read(
    line: &[u8],
    json: &mut String,
    write: fn(LazyStruct<'_, Text>, &mut String) -> Result<(), Reject>,
) -> Result<(), Reject> {
    json.clear();
    let text = std::str::from_utf8(line).map_err(|error| {
        malformed(format!(
            "the text is not UTF-8 at byte {}",
            error.valid_up_to()
        ))
    })?;
    if DataFormat::of_line(line) == Some(DataFormat::Json) {
        // It would be Ion as well, with `{S:"…"}` for a map of one attribute `S`.
        return Err(malformed("the line is JSON, not Ion"));
    }
    let text = guard::prepare(text)?;
    let read = || {
        let mut reader = Reader::new(Text, text.as_bytes()).map_err(not_ion)?;
        let Some(line) = reader.next().map_err(not_ion)? else {
            return Err(malformed("the line holds no Ion value"));
        };
        json.push('{');
        write(plain_struct(line, "the line")?, json)?;
        json.push('}');
        match reader.next().map_err(not_ion)? {
            None => Ok(()),
            Some(_) => Err(malformed("the line holds more than one Ion value")),
        }
    };
    // What is known to make the library panic was refused by now; what is not yet known must not
    // stop a conversion either.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(malformed(GAVE_UP)))
}

fn write_keys(line: LazyStruct<'_, Text>, json: &mut String) -> Result<(), Reject> {
    let record = match line.find("Record").map_err(not_ion)? {
        Some(record) => plain_struct(record, "`Record`")?,
        None => line,
    };
    for name in ["Keys", "NewImage", "OldImage"] {
        let item = record.find(name).map_err(not_ion)?;
        if let Some(item) = item.filter(|item| !is_null(*item)) {
            write_name(name, json);
            return write_map(plain_struct(item, name)?, json);
        }
    }
    Ok(())
}

/// The members of a line that mean something; others are passed over, as in JSON.
fn write_members(line: LazyStruct<'_, Text>, json: &mut String) -> Result<(), Reject> {
    for field in &line {
        let field = field.map_err(not_ion)?;
        let name = text_of(field.name())?;
        match name {
            // Null is absent, as in JSON.
            _ if is_null(field.value()) => {}
            "Record" => write_members(plain_struct(field.value(), "`Record`")?, json)?,
            "Item" | "Keys" | "Metadata" | "NewImage" => {
                let item = plain_struct(field.value(), name).map_err(|reject| reject.under(name));
                write_name(name, json);
                write_map(item?, json).map_err(|reject| reject.under(name))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_null(value: LazyValue<'_, Text>) -> bool {
    value.ion_type() == IonType::Null && !value.has_annotations()
}

fn plain_struct<'a>(
    value: LazyValue<'a, Text>,
    what: &str,
) -> Result<LazyStruct<'a, Text>, Reject> {
    let refused = || {
        Reject::new(
            ReasonCode::MalformedRecord,
            format!("{what} is not an Ion struct without annotations"),
        )
    };
    if value.has_annotations() || value.ion_type() != IonType::Struct {
        return Err(refused());
    }
    match value.read().map_err(not_ion)? {
        ValueRef::Struct(fields) => Ok(fields),
        _ => Err(refused()),
    }
}

fn write_map(fields: LazyStruct<'_, Text>, json: &mut String) -> Result<(), Reject> {
    json.push('{');
    for field in &fields {
        let field = field.map_err(not_ion)?;
        let name = text_of(field.name())?;
        write_name(name, json);
        write_value(field.value(), json).map_err(|reject| reject.under(name))?;
    }
    json.push('}');
    Ok(())
}

/// Writes `{"S":"…"}` and the like.
fn write_value(value: LazyValue<'_, Text>, json: &mut String) -> Result<(), Reject> {
    if value.has_annotations() {
        return write_set(value, json);
    }
    if let Some(what) = foreign(value.ion_type()) {
        return Err(no_attribute_value(what));
    }
    match value.read().map_err(not_ion)? {
        ValueRef::Null(IonType::Null) => json.push_str("{\"NULL\":true"),
        ValueRef::Bool(true) => json.push_str("{\"BOOL\":true"),
        ValueRef::Bool(false) => json.push_str("{\"BOOL\":false"),
        ValueRef::List(list) => {
            json.push_str("{\"L\":");
            write_elements(&list, json, write_value)?;
        }
        ValueRef::Struct(fields) => {
            json.push_str("{\"M\":");
            write_map(fields, json)?;
        }
        scalar => {
            let tag = tag_of(&scalar).ok_or_else(|| no_attribute_value("a null with a type"))?;
            json.push_str("{\"");
            json.push_str(tag);
            json.push_str("\":");
            write_scalar(scalar, json)?;
        }
    }
    json.push('}');
    Ok(())
}

/// A list with an annotation, which is how sets are written.
fn write_set(value: LazyValue<'_, Text>, json: &mut String) -> Result<(), Reject> {
    let mut annotations = value.annotations();
    let (set, element) = match annotations.next().map(text_of).transpose()? {
        Some("$dynamodb_SS") => ("SS", "S"),
        Some("$dynamodb_NS") => ("NS", "N"),
        Some("$dynamodb_BS") => ("BS", "B"),
        _ => {
            return Err(no_attribute_value(
                "a value with an annotation other than $dynamodb_SS, $dynamodb_NS and $dynamodb_BS",
            ));
        }
    };
    if annotations.next().is_some() {
        return Err(no_attribute_value("a value with several annotations"));
    }
    let not_a_list = || no_attribute_value("a set that is not a list");
    if value.ion_type() != IonType::List {
        return Err(not_a_list());
    }
    let ValueRef::List(list) = value.read().map_err(not_ion)? else {
        return Err(not_a_list());
    };
    json.push_str("{\"");
    json.push_str(set);
    json.push_str("\":");
    write_elements(&list, json, |value, json| {
        let other = || no_attribute_value("an element of another type than its set's");
        if value.has_annotations() || foreign(value.ion_type()).is_some() {
            return Err(other());
        }
        let value = value.read().map_err(not_ion)?;
        if tag_of(&value) == Some(element) {
            write_scalar(value, json)
        } else {
            Err(other())
        }
    })?;
    json.push('}');
    Ok(())
}

fn write_elements(
    list: &LazyList<'_, Text>,
    json: &mut String,
    write: impl Fn(LazyValue<'_, Text>, &mut String) -> Result<(), Reject>,
) -> Result<(), Reject> {
    json.push('[');
    for (position, element) in list.iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        write(element.map_err(not_ion)?, json).map_err(|reject| reject.under_index(position))?;
    }
    json.push(']');
    Ok(())
}

/// The data type of a scalar that is neither a truth value nor null.
fn tag_of(value: &ValueRef<'_, Text>) -> Option<&'static str> {
    match value {
        ValueRef::String(_) => Some("S"),
        ValueRef::Int(_) | ValueRef::Decimal(_) => Some("N"),
        ValueRef::Blob(_) => Some("B"),
        _ => None,
    }
}

/// A string, number or blob as its JSON string.
fn write_scalar(value: ValueRef<'_, Text>, json: &mut String) -> Result<(), Reject> {
    match value {
        ValueRef::String(text) => write_escaped(text.text(), json),
        ValueRef::Blob(bytes) => {
            json.push('"');
            STANDARD.encode_string(bytes.data(), json);
            json.push('"');
        }
        ValueRef::Int(integer) => write_number(json, |json| write!(json, "{integer}"))?,
        ValueRef::Decimal(decimal) => {
            let (coefficient, exponent) = (decimal.coefficient(), decimal.exponent());
            let sign = if coefficient.is_negative() { "-" } else { "" };
            let digits = coefficient.magnitude();
            write_number(json, |json| {
                write!(json, "{sign}")?;
                let start = json.len();
                write!(json, "{digits}")?;
                let places = exponent.checked_neg().and_then(|n| usize::try_from(n).ok());
                match places.and_then(|places| json.len().checked_sub(places)) {
                    Some(end) if end == json.len() => {}
                    // Plain right away, as nearly all are.
                    Some(point) if point > start => json.insert(point, '.'),
                    _ => write!(json, "e{exponent}")?,
                }
                Ok(())
            })?;
        }
        _ => return Err(no_attribute_value("a value of an unknown type")),
    }
    Ok(())
}

/// Writes a number in any spelling and makes it the plain one that DynamoDB returns.
fn write_number(
    json: &mut String,
    spell: impl FnOnce(&mut String) -> std::fmt::Result,
) -> Result<(), Reject> {
    json.push('"');
    let start = json.len();
    spell(json).map_err(|_| no_attribute_value("a number that cannot be written"))?;
    let spelled = json.get(start..).unwrap_or_default();
    let refused = |error: number::NumberError| {
        Reject::new(ReasonCode::MalformedAttributeValue, error.to_string())
    };
    if !number::check(spelled).map_err(refused)? {
        let plain = number::canonical(spelled).map_err(refused)?;
        json.truncate(start);
        json.push_str(&plain);
    }
    json.push('"');
    Ok(())
}

/// Writes `"name":`, with a comma before it unless it is the first after the brace.
fn write_name(name: &str, json: &mut String) {
    if !json.ends_with('{') {
        json.push(',');
    }
    write_escaped(name, json);
    json.push(':');
}

/// What a type is that DynamoDB does not write. Such a value is not even read.
fn foreign(ion_type: IonType) -> Option<&'static str> {
    match ion_type {
        IonType::Float => Some("an Ion float"),
        IonType::Timestamp => Some("an Ion timestamp"),
        IonType::Symbol => Some("an Ion symbol"),
        IonType::Clob => Some("an Ion clob"),
        IonType::SExp => Some("an Ion s-expression"),
        _ => None,
    }
}

/// The text of a field name or annotation.
fn text_of(symbol: IonResult<ion_rs::SymbolRef<'_>>) -> Result<&str, Reject> {
    let symbol = symbol.map_err(not_ion)?;
    symbol
        .text()
        .ok_or_else(|| malformed("a name or annotation is a symbol without text"))
}

fn no_attribute_value(what: &str) -> Reject {
    Reject::new(
        ReasonCode::MalformedAttributeValue,
        format!("{what} is no attribute value"),
    )
}

/// The library's own messages quote the text, so only the place is taken from them.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn not_ion(error: IonError) -> Reject {
    let position = match &error {
        IonError::Decoding(error) => error.position(),
        IonError::Incomplete(error) => Some(error.position()),
        _ => None,
    };
    malformed(match position {
        Some(at) => format!("the text is not Ion 1.0 at byte {}", at.byte_offset()),
        None => "the text is not Ion 1.0".to_owned(),
    })
}

fn malformed(message: impl Into<String>) -> Reject {
    Reject::new(ReasonCode::MalformedIon, message)
}

#[cfg(test)]
mod tests;
