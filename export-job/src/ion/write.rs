//! The other way round: a line of a DynamoDB JSON export as DynamoDB writes it in Ion. For exports
//! that the demo and tests make.

use dynalake_pipeline::json;
use dynalake_pipeline::number;
use dynalake_pipeline::reject::{ReasonCode, Reject};

/// The Ion text of a line in DynamoDB JSON, without a line feed. A number that is none becomes a
/// symbol, so that exports in Ion, too, can be made with something for quarantine.
///
/// # Errors
/// Why the line is not one of an export, or a value in it no AttributeValue.
pub(crate) fn from_json(line: &[u8]) -> Result<String, Reject> {
    let members = json::members(line)?;
    let record = members.iter().all(|(name, _)| name != "Item");
    let mut ion = String::from("$ion_1_0 {");
    if record {
        ion.push_str("Record:{");
    }
    for (name, item) in members {
        write_name(&name, &mut ion);
        match item {
            b"null" => ion.push_str("null"),
            item => write_struct(item, &mut ion)?,
        }
    }
    ion.push_str(if record { "}}" } else { "}" });
    Ok(ion)
}

fn write_struct(map: &[u8], ion: &mut String) -> Result<(), Reject> {
    ion.push('{');
    for (name, value) in json::members(map)? {
        write_name(&name, ion);
        write_value(value, ion)?;
    }
    ion.push('}');
    Ok(())
}

fn write_value(value: &[u8], ion: &mut String) -> Result<(), Reject> {
    let members = json::members(value)?;
    let [(tag, value)] = members.as_slice() else {
        return Err(no_attribute_value());
    };
    match (tag.as_ref(), *value) {
        ("M", map) => return write_struct(map, ion),
        ("NULL", b"true") => ion.push_str("null"),
        ("BOOL", b"true") => ion.push_str("true"),
        ("BOOL", b"false") => ion.push_str("false"),
        ("L", list) => write_elements(list, ion, write_value)?,
        ("SS" | "NS" | "BS", set) => {
            ion.push_str("$dynamodb_");
            ion.push_str(tag);
            ion.push_str("::");
            write_elements(set, ion, |element, ion| write_scalar(tag, element, ion))?;
        }
        (tag, scalar) => write_scalar(tag, scalar, ion)?,
    }
    Ok(())
}

/// A string, number or binary value, or one of a set of those.
fn write_scalar(tag: &str, value: &[u8], ion: &mut String) -> Result<(), Reject> {
    let text: String = serde_json::from_slice(value).map_err(|_| no_attribute_value())?;
    match tag {
        "S" | "SS" => write_quoted('"', &text, ion),
        "N" | "NS" => match number::canonical(&text) {
            Ok(plain) => write_number(&plain, ion),
            Err(_) => write_quoted('\'', &text, ion),
        },
        "B" | "BS" => {
            ion.push_str("{{");
            ion.push_str(&text);
            ion.push_str("}}");
        }
        _ => return Err(no_attribute_value()),
    }
    Ok(())
}

fn write_elements(
    list: &[u8],
    ion: &mut String,
    write: impl Fn(&[u8], &mut String) -> Result<(), Reject>,
) -> Result<(), Reject> {
    ion.push('[');
    for (position, element) in json::elements(list)?.into_iter().enumerate() {
        if position > 0 {
            ion.push(',');
        }
        write(element, ion)?;
    }
    ion.push(']');
    Ok(())
}

fn no_attribute_value() -> Reject {
    Reject::new(
        ReasonCode::MalformedAttributeValue,
        "there is no Ion for what is no AttributeValue",
    )
}

/// Writes `name:`, with a comma before it unless it is the first after the brace.
fn write_name(name: &str, ion: &mut String) {
    if !ion.ends_with('{') {
        ion.push(',');
    }
    if is_identifier(name) {
        ion.push_str(name);
    } else {
        write_quoted('\'', name, ion);
    }
    ion.push(':');
}

/// A name that needs no quotes: no keyword, and not of the form of a symbol's id (`$10`).
fn is_identifier(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let begins = name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    let id = name.strip_prefix('$').unwrap_or("x");
    begins
        && name.bytes().all(word)
        && !id.bytes().all(|byte| byte.is_ascii_digit())
        && !matches!(name, "null" | "true" | "false" | "nan")
}

fn write_quoted(quote: char, text: &str, ion: &mut String) {
    ion.push(quote);
    for character in text.chars() {
        match character {
            '\n' => ion.push_str("\\n"),
            '\r' => ion.push_str("\\r"),
            '\t' => ion.push_str("\\t"),
            '\0' => ion.push_str("\\0"),
            '\\' => ion.push_str("\\\\"),
            _ if character == quote => {
                ion.push('\\');
                ion.push(quote);
            }
            // Those of the first 256 code points, which are all.
            _ if character.is_control() => {
                ion.push_str("\\x");
                for digit in [u32::from(character) >> 4, u32::from(character) & 15] {
                    ion.push(char::from_digit(digit, 16).unwrap_or('0'));
                }
            }
            _ => ion.push(character),
        }
    }
    ion.push(quote);
}

/// A number as a decimal: `103.`, `6d2`, `0.5`, `7d-130`.
fn write_number(plain: &str, ion: &mut String) {
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let digits = whole.trim_end_matches('0');
    let zeros = whole.len() - digits.len();
    let small = fraction.trim_start_matches('0');
    let unit = whole.trim_start_matches('-');
    if fraction.is_empty() && zeros > 0 && unit != "0" {
        ion.push_str(digits);
        ion.push('d');
        ion.push_str(&zeros.to_string());
    } else if unit == "0" && fraction.len() > small.len() + 5 {
        let sign = whole.trim_end_matches('0');
        ion.push_str(sign);
        ion.push_str(small);
        ion.push_str("d-");
        ion.push_str(&fraction.len().to_string());
    } else {
        ion.push_str(whole);
        ion.push('.');
        ion.push_str(fraction);
    }
}
