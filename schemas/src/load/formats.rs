//! `format`, `formats` and `fields` of a column: what is laid over its type.
//!
//! A path names members: `price.currency`. Elements of arrays and sets and values of maps are
//! passed through without a name, so `formats = { at = "epoch_ms" }` reaches the member `at` of
//! `array<struct<at:timestamp>>`, and `format` the elements of `array<timestamp>`.

use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::source::{Entry, Section, SourceFile, type_name};
use crate::model::{AttributeName, ColumnType, Member, StringFormat, TimeFormat};
use crate::naming::AttributeCase;
use crate::problem::{Place, Problems, did_you_mean, list_names};

const TIME_FORMATS: &[&str] = &["iso8601", "epoch_s", "epoch_ms", "epoch_us"];

/// What is wrong and what to do.
type Fault = (String, String);

/// Spells the attributes of all struct members after the table's case.
pub(crate) fn apply_case(ty: &mut ColumnType, case: AttributeCase) {
    match ty {
        ColumnType::Array(child)
        | ColumnType::Set(child)
        | ColumnType::Map { value: child, .. } => {
            apply_case(&mut child.ty, case);
        }
        ColumnType::Struct(members) => {
            for member in members {
                member.attribute = AttributeName::Named(case.attribute(&member.name));
                apply_case(&mut member.ty, case);
            }
        }
        _ => {}
    }
}

/// `format = "…"` of a column, or one entry of `formats`.
pub(crate) fn apply_format(
    ty: &mut ColumnType,
    column: &str,
    path: &str,
    format: &str,
    place: &Place,
    problems: &mut Problems,
) {
    if let Err((what, remedy)) = leaf(ty, column, path).and_then(|leaf| set_format(leaf, format)) {
        problems.error(place, what, remedy);
    }
}

/// `formats = { path = "format" }`.
pub(crate) fn apply_formats(
    file: &SourceFile,
    ty: &mut ColumnType,
    column: &str,
    entry: &Entry<'_>,
    problems: &mut Problems,
) {
    for (path, format, place) in entries(file, entry, "formats", "epoch_ms", problems) {
        apply_format(ty, column, &path, &format, &place, problems);
    }
}

/// `fields = { path = "Attribute" }`.
pub(crate) fn apply_fields(
    file: &SourceFile,
    ty: &mut ColumnType,
    column: &str,
    entry: &Entry<'_>,
    problems: &mut Problems,
) {
    for (path, attribute, place) in entries(file, entry, "fields", "UnitPrice", problems) {
        if attribute.is_empty() {
            problems.error(
                &place,
                "an attribute's name is empty",
                "write it as the item has it",
            );
            continue;
        }
        match member(ty, column, &path) {
            Ok(member) => member.attribute = AttributeName::Exact(attribute),
            Err((what, remedy)) => problems.error(&place, what, remedy),
        }
    }
    if let Some((first, second, attribute)) = claimed_twice(ty) {
        problems.error(
            &entry.place,
            format!("members `{first}` and `{second}` both take the attribute `{attribute}`"),
            "give each member its own attribute",
        );
    }
}

/// Entries by dotted path: `{ "a.b" = "x" }` and `{ a.b = "x" }` are the same.
fn entries(
    file: &SourceFile,
    entry: &Entry<'_>,
    key: &str,
    example: &str,
    problems: &mut Problems,
) -> Vec<(String, String, Place)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), entry.clone())];
    while let Some((path, entry)) = open.pop() {
        if let Some(text) = entry.item.as_str() {
            found.push((path, text.to_owned(), entry.place));
            continue;
        }
        let Some(table) = entry.item.as_table_like() else {
            problems.error(
                &entry.place,
                format!(
                    "`{key}` holds {} where a string should be",
                    type_name(entry.item)
                ),
                format!("write `{key} = {{ member = \"{example}\" }}`"),
            );
            continue;
        };
        let section = Section::new(file, table, key, entry.place.clone());
        for (name, inner) in section.entries() {
            let path = if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            };
            open.push((path, inner));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The scalar at a path.
fn leaf<'t>(ty: &'t mut ColumnType, column: &str, path: &str) -> Result<&'t mut ColumnType, Fault> {
    let inner = if path.is_empty() {
        ty
    } else {
        &mut member(ty, column, path)?.ty
    };
    match through(inner) {
        ColumnType::Struct(members) => {
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            Err((
                format!(
                    "a struct has no format of its own; it has members {}",
                    list_names(&names)
                ),
                "write `formats = { member = \"epoch_ms\" }`".to_owned(),
            ))
        }
        scalar => Ok(scalar),
    }
}

/// The member at a path.
fn member<'t>(ty: &'t mut ColumnType, column: &str, path: &str) -> Result<&'t mut Member, Fault> {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let ColumnType::Struct(members) = through(ty) else {
        return Err((
            format!("`{column}` has no member `{name}`: there is no struct"),
            "check the path against the column's type".to_owned(),
        ));
    };
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    match members.iter_mut().find(|member| member.name == name) {
        Some(found) => match rest {
            None => Ok(found),
            Some(rest) => member(&mut found.ty, &format!("{column}.{name}"), rest),
        },
        None => Err((
            format!("`{column}` has no member `{name}`"),
            match did_you_mean(name, names.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("its members are {}", list_names(&names)),
            },
        )),
    }
}

/// What stands inside arrays, sets and maps.
fn through(ty: &mut ColumnType) -> &mut ColumnType {
    match ty {
        ColumnType::Array(child) | ColumnType::Set(child) => through(&mut child.ty),
        ColumnType::Map { value, .. } => through(&mut value.ty),
        other => other,
    }
}

/// Two members of one struct that take the same attribute, at any depth.
fn claimed_twice(ty: &mut ColumnType) -> Option<(String, String, String)> {
    let ColumnType::Struct(members) = through(ty) else {
        return None;
    };
    for (index, member) in members.iter().enumerate() {
        let mut others = members.iter().take(index);
        if let Some(other) =
            others.find(|other| other.attribute.as_str() == member.attribute.as_str())
        {
            let attribute = member.attribute.as_str().to_owned();
            return Some((other.name.clone(), member.name.clone(), attribute));
        }
    }
    members
        .iter_mut()
        .find_map(|member| claimed_twice(&mut member.ty))
}

fn set_format(ty: &mut ColumnType, format: &str) -> Result<(), Fault> {
    match ty {
        ColumnType::String(current) => match format {
            "text" => *current = StringFormat::Text,
            "number" => *current = StringFormat::Number,
            other => {
                return Err((
                    format!("`{other}` is not a format of string"),
                    "write \"number\" for a number kept as text, or leave the format out"
                        .to_owned(),
                ));
            }
        },
        ColumnType::Date(current) => *current = time_format(format, is_whole_date)?,
        ColumnType::Timestamp(current) => *current = time_format(format, is_whole_timestamp)?,
        other => {
            return Err((
                format!("{} has no format", crate::athena::athena_type(other)),
                "only date, timestamp and string have formats".to_owned(),
            ));
        }
    }
    Ok(())
}

fn time_format(format: &str, is_whole: fn(&[Item<'_>]) -> bool) -> Result<TimeFormat, Fault> {
    match format {
        "iso8601" => return Ok(TimeFormat::Iso8601),
        "epoch_s" => return Ok(TimeFormat::EpochSeconds),
        "epoch_ms" => return Ok(TimeFormat::EpochMillis),
        "epoch_us" => return Ok(TimeFormat::EpochMicros),
        _ => {}
    }
    if !format.contains('%') {
        return Err((
            format!("`{format}` is not a format of dates and times"),
            match did_you_mean(format, TIME_FORMATS.iter().copied()) {
                Some(meant) => format!("write \"{meant}\""),
                None => "write iso8601, epoch_s, epoch_ms, epoch_us, or a pattern such as \
                         \"%Y-%m-%dT%H:%M:%S%:z\""
                    .to_owned(),
            },
        ));
    }
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    if items.iter().any(|item| matches!(item, Item::Error)) {
        return Err((
            format!("`{format}` holds a `%` that is no strftime specifier"),
            "write `%%` for the character itself; the specifiers are those of chrono's strftime"
                .to_owned(),
        ));
    }
    if !is_whole(&items) {
        return Err((
            format!("`{format}` does not tell the whole date or time, or cannot be read back"),
            "a date needs year, month and day; a timestamp also hour and minute: \
             \"%Y-%m-%d %H:%M:%S\""
                .to_owned(),
        ));
    }
    Ok(TimeFormat::Pattern(format.to_owned()))
}

/// Samples that differ in every field, in and out of summer time, both halves of the day.
fn samples() -> impl Iterator<Item = DateTime<Utc>> {
    [
        (2026, 11, 30, 23, 56),
        (2024, 2, 29, 1, 7),
        (1987, 6, 5, 14, 30),
    ]
    .into_iter()
    .filter_map(|(year, month, day, hour, minute)| {
        let date = NaiveDate::from_ymd_opt(year, month, day)?;
        Some(date.and_hms_opt(hour, minute, 0)?.and_utc())
    })
}

fn is_whole_timestamp(items: &[Item<'_>]) -> bool {
    samples()
        .all(|sample| read_back(sample, items).and_then(|parsed| instant(&parsed)) == Some(sample))
}

fn is_whole_date(items: &[Item<'_>]) -> bool {
    samples().all(|sample| {
        let date = sample.date_naive();
        // A pattern with a time of day must spell midnight, which is what a date is.
        let midnight = date.and_hms_opt(0, 0, 0).map(|time| time.and_utc());
        midnight
            .and_then(|midnight| read_back(midnight, items))
            .and_then(|parsed| parsed.to_naive_date().ok())
            .is_some_and(|back| back.num_days_from_ce() == date.num_days_from_ce())
    })
}

/// Time without an offset is UTC.
fn instant(parsed: &Parsed) -> Option<DateTime<Utc>> {
    match parsed.to_datetime() {
        Ok(time) => Some(time.to_utc()),
        Err(_) => parsed
            .to_naive_datetime_with_offset(0)
            .ok()
            .map(|time| time.and_utc()),
    }
}

fn read_back(time: DateTime<Utc>, items: &[Item<'_>]) -> Option<Parsed> {
    use std::fmt::Write;
    let mut text = String::new();
    write!(text, "{}", time.format_with_items(items.iter())).ok()?;
    let mut parsed = Parsed::new();
    parse(&mut parsed, &text, items.iter()).ok()?;
    Some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(ty: &str, format: &str) -> Result<ColumnType, Fault> {
        let mut ty = crate::types::parse(ty).unwrap();
        leaf(&mut ty, "c", "").and_then(|leaf| set_format(leaf, format))?;
        Ok(ty)
    }

    #[test]
    fn patterns_must_tell_the_whole_time() {
        for good in [
            "%Y-%m-%dT%H:%M:%S%:z",
            "%Y-%m-%d %H:%M",
            "%d.%m.%Y %I:%M %p",
            "%s",
            "%+",
        ] {
            assert!(formatted("timestamp", good).is_ok(), "{good}");
        }
        for bad in [
            "%Y-%m-%d",
            "%H:%M:%S",
            "%Q",
            "%Y-%m-%dT%I:%M",
            "%Y-%m-%dT%H:%M%",
        ] {
            assert!(formatted("timestamp", bad).is_err(), "{bad}");
        }
        for good in [
            "%Y%m%d",
            "%d/%m/%Y",
            "%Y-%j",
            "%G-W%V-%u",
            "%Y-%m-%dT%H:%M:%SZ",
        ] {
            assert!(formatted("date", good).is_ok(), "{good}");
        }
        for bad in ["%Y-%m", "%m-%d", "%H:%M"] {
            assert!(formatted("date", bad).is_err(), "{bad}");
        }
        assert!(
            formatted("timestamp", "epoch_sec")
                .unwrap_err()
                .1
                .contains("epoch_s")
        );
        assert!(
            formatted("int", "number")
                .unwrap_err()
                .0
                .contains("int has no format")
        );
    }

    #[test]
    fn formats_reach_through_containers() {
        let ty = formatted("map<string,array<timestamp>>", "epoch_ms").unwrap();
        let ColumnType::Map { value, .. } = ty else {
            panic!()
        };
        let ColumnType::Array(element) = value.ty else {
            panic!()
        };
        assert_eq!(element.ty, ColumnType::Timestamp(TimeFormat::EpochMillis));
        let error = formatted("array<struct<a:int>>", "epoch_ms").unwrap_err();
        assert!(error.0.contains("members `a`"));
    }
}
