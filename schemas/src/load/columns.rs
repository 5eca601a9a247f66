//! `[columns]` of an entity file.

use std::collections::{BTreeMap, BTreeSet};

use super::entity::on_mismatch;
use super::formats;
use super::lake::Lake;
use super::source::{Entry, Section, type_name};
use crate::model::{
    AttributeName, CaptureKind, Column, ColumnSource, ColumnType, Matcher, OnMismatch, Segment,
    Source, StringFormat, Transform,
};
use crate::naming::{AttributeCase, column_name, is_column_name, is_reserved_in_select};
use crate::problem::{Place, Problems};
use crate::types;

/// Partition columns of the changes and snapshot tables.
const PARTITION_COLUMNS: &[&str] = &["dt", "export"];

/// What a column is read in the light of.
struct Context<'c> {
    matcher: &'c Matcher,
    source: Option<&'c Source>,
    case: AttributeCase,
    /// The entity's choice.
    on_mismatch: OnMismatch,
}

/// `[columns]` as they were read.
pub(crate) struct ReadColumns {
    pub(crate) columns: Vec<Column>,
    /// Where each of them stands.
    pub(crate) places: BTreeMap<String, Place>,
    /// Those with a transform whose attribute may be clear in other entities' rows.
    pub(crate) clear_elsewhere: BTreeSet<String>,
}

/// Reads `[columns]`.
pub(crate) fn read(
    root: &mut Section<'_>,
    matcher: &Matcher,
    lake: Option<&Lake>,
    on_mismatch: OnMismatch,
    matching: &Place,
    problems: &mut Problems,
) -> ReadColumns {
    let context = Context {
        matcher,
        source: lake.map(|lake| &lake.source),
        case: lake.map_or(AttributeCase::Snake, |lake| lake.case),
        on_mismatch,
    };
    let mut columns: Vec<Column> = Vec::new();
    let mut places = BTreeMap::new();
    let mut clear_elsewhere = BTreeSet::new();
    let mut declared: Vec<&str> = Vec::new();
    if let Some(section) = root.section("columns", "[columns]", problems) {
        for (name, entry) in section.entries() {
            check_name(name, &declared, &entry.place, problems);
            declared.push(name);
            if let Some((column, is_clear_elsewhere)) =
                column(&section, name, &entry, &context, problems)
            {
                if is_clear_elsewhere {
                    clear_elsewhere.insert(column.name.clone());
                }
                columns.push(column);
            }
            places.insert(name.to_owned(), entry.place);
        }
    }
    check_captures(matcher, &columns, &declared, matching, problems);
    check_attributes(&columns, &places, problems);
    ReadColumns {
        columns,
        places,
        clear_elsewhere,
    }
}

fn check_name(name: &str, before: &[&str], place: &Place, problems: &mut Problems) {
    let ours = column_name(name);
    if let Some(other) = before.iter().find(|other| column_name(other) == ours) {
        problems.error(
            place,
            format!("`{other}` and `{name}` are both column `{ours}`"),
            format!("keep one, and name the other differently with `attribute = \"{name}\"`"),
        );
    } else if !is_column_name(name) {
        let usable = is_column_name(&ours) && !ours.trim_matches('_').is_empty();
        problems.error(
            place,
            format!("`{name}` is not a column name: names are made of a-z, 0-9 and _"),
            if usable {
                format!("write `{ours} = …`; it takes the attribute `{name}` by itself")
            } else {
                format!("choose a name and write `{{ type = \"…\", attribute = \"{name}\" }}`")
            },
        );
    } else if name.starts_with('_') {
        problems.error(
            place,
            format!("column `{name}` begins with `_`, as only row columns do"),
            format!(
                "write `{} = {{ type = \"…\", attribute = \"{name}\" }}`",
                name.trim_matches('_')
            ),
        );
    } else if PARTITION_COLUMNS.contains(&name) {
        problems.error(
            place,
            format!("`{name}` is a partition column of the tables"),
            format!("write `{name}_value = {{ type = \"…\", attribute = \"{name}\" }}`"),
        );
    } else if is_reserved_in_select(name) {
        problems.warning(
            place,
            format!("`{name}` is a reserved word of SQL"),
            format!(
                "queries must write \"{name}\" in double quotes; or choose another name and \
                     `attribute = \"{name}\"`"
            ),
        );
    } else if name.starts_with(|first: char| first.is_ascii_digit()) {
        problems.warning(
            place,
            format!("`{name}` begins with a digit"),
            format!(
                "queries must write \"{name}\" in double quotes; or choose another name and \
                     `attribute = \"{name}\"`"
            ),
        );
    }
}

/// A column, and whether it says `elsewhere = "clear"`.
fn column(
    columns: &Section<'_>,
    name: &str,
    entry: &Entry<'_>,
    context: &Context<'_>,
    problems: &mut Problems,
) -> Option<(Column, bool)> {
    let capture = context
        .matcher
        .captures
        .iter()
        .position(|capture| capture == name);
    if let Some(text) = entry.item.as_str() {
        let mut ty = parse_type(text, &entry.place, problems)?;
        formats::apply_case(&mut ty, context.case);
        let source = match capture {
            Some(index) => ColumnSource::Capture(index),
            None => ColumnSource::Attribute(AttributeName::Named(context.case.attribute(name))),
        };
        let column = Column {
            name: name.to_owned(),
            source,
            ty,
            transform: None,
            on_mismatch: context.on_mismatch,
            lossless: true,
            field_id: 0,
        };
        check_capture(&column, &entry.place, problems);
        return Some((column, false));
    }
    let Some(table) = entry.item.as_table_like() else {
        problems.error(
            &entry.place,
            format!("column `{name}` is {}, not a type", type_name(entry.item)),
            format!("write `{name} = \"string\"` or `{name} = {{ type = \"…\", … }}`"),
        );
        return None;
    };
    let title = format!("column `{name}`");
    let mut section = Section::new(columns.file(), table, title, entry.place.clone());
    let transform = transform(&mut section, problems);
    let is_clear_elsewhere = elsewhere(&mut section, name, transform, problems);
    let ty = column_type(&mut section, name, transform, problems);
    let attribute = section.string("attribute", problems);
    if let Some(("", place)) = &attribute {
        problems.error(
            place,
            "an attribute's name is empty",
            "write the name as the item has it",
        );
    }
    let source = match (capture, attribute) {
        (_, Some((attribute, _))) => {
            ColumnSource::Attribute(AttributeName::Exact(attribute.to_owned()))
        }
        (Some(index), None) => ColumnSource::Capture(index),
        (None, None) => ColumnSource::Attribute(AttributeName::Named(context.case.attribute(name))),
    };
    let on_mismatch = on_mismatch(&mut section, context.on_mismatch, problems);
    let lossless = section.boolean("lossless", problems);
    // All keys are asked for before the type is known to be readable.
    let format = section.string("format", problems);
    let fields = section.get("fields");
    let formats = section.get("formats");
    let place = section.place().clone();
    let file = section.file();
    section.finish(problems);
    let mut ty = ty?;
    formats::apply_case(&mut ty, context.case);
    if let Some((format, place)) = format {
        formats::apply_format(&mut ty, name, "", format, &place, problems);
    }
    if let Some(fields) = fields {
        formats::apply_fields(file, &mut ty, name, &fields, problems);
    }
    if let Some(formats) = formats {
        formats::apply_formats(file, &mut ty, name, &formats, problems);
    }
    let column = Column {
        name: name.to_owned(),
        source,
        ty,
        transform,
        on_mismatch,
        lossless: lossless.as_ref().is_none_or(|(value, _)| *value),
        field_id: 0,
    };
    check_capture(&column, &place, problems);
    check_transform(&column, context.source, &place, problems);
    if let (ColumnSource::Capture(_), Some((false, place))) = (&column.source, &lossless) {
        problems.error(
            place,
            format!("`lossless` says nothing about `{name}`, which comes from the key"),
            "remove it; the key's text is always kept in _pk and _sk",
        );
    }
    Some((column, is_clear_elsewhere))
}

/// `elsewhere = "clear"` beside a transform.
fn elsewhere(
    section: &mut Section<'_>,
    name: &str,
    transform: Option<Transform>,
    problems: &mut Problems,
) -> bool {
    let given = section.get("transform").is_some();
    let Some((value, place)) = section.string("elsewhere", problems) else {
        return false;
    };
    if value != "clear" {
        problems.error(
            &place,
            format!("`elsewhere` cannot be `{value}`"),
            "write \"clear\": other entities' items may hold the attribute in the clear",
        );
    } else if transform.is_none() && !given {
        problems.error(
            &place,
            format!("`elsewhere` says nothing about `{name}`, which has no transform"),
            "remove it",
        );
    }
    value == "clear"
}

fn parse_type(text: &str, place: &Place, problems: &mut Problems) -> Option<ColumnType> {
    types::parse(text)
        .map_err(|error| problems.error(place, error.what, error.remedy))
        .ok()
}

fn column_type(
    section: &mut Section<'_>,
    name: &str,
    transform: Option<Transform>,
    problems: &mut Problems,
) -> Option<ColumnType> {
    let given = section.get("type").is_some();
    if let Some((text, place)) = section.string("type", problems) {
        return parse_type(text, &place, problems);
    }
    match transform {
        Some(Transform::Drop) => Some(ColumnType::Json),
        Some(Transform::Mask | Transform::HmacSha256) => {
            Some(ColumnType::String(StringFormat::Text))
        }
        None => {
            if !given {
                problems.error(
                    section.place(),
                    format!("column `{name}` has no type"),
                    format!("write `{name} = {{ type = \"string\", … }}`"),
                );
            }
            None
        }
    }
}

fn transform(section: &mut Section<'_>, problems: &mut Problems) -> Option<Transform> {
    match section.string("transform", problems)? {
        ("drop", _) => Some(Transform::Drop),
        ("mask", _) => Some(Transform::Mask),
        ("hmac_sha256", _) => Some(Transform::HmacSha256),
        (other, place) => {
            problems.error(
                &place,
                format!("`{other}` is not a transform"),
                "write \"drop\" (nowhere in the lake), \"mask\" (the constant ***) or \
                 \"hmac_sha256\" (equal values stay equal)",
            );
            None
        }
    }
}

/// What cannot be read from the text of a key.
fn check_capture(column: &Column, place: &Place, problems: &mut Problems) {
    if !matches!(column.source, ColumnSource::Capture(_)) {
        return;
    }
    let name = &column.name;
    let readable = matches!(
        column.ty,
        ColumnType::String(StringFormat::Text)
            | ColumnType::Int
            | ColumnType::Bigint
            | ColumnType::Double
            | ColumnType::Decimal { .. }
            | ColumnType::Date(_)
            | ColumnType::Timestamp(_)
    );
    if !readable {
        problems.error(
            place,
            format!("`{name}` is captured from a key, whose text cannot be of this type"),
            "use string, int, bigint, decimal(p,s), double, date or timestamp",
        );
    }
    if column.transform.is_some() {
        problems.error(
            place,
            format!("`{name}` is captured from a key, and the key stays clear in _pk and _sk"),
            "remove the transform; data that must not be in the lake must not be in keys",
        );
    }
}

fn check_transform(
    column: &Column,
    source: Option<&Source>,
    place: &Place,
    problems: &mut Problems,
) {
    let Some(transform) = column.transform else {
        return;
    };
    let name = &column.name;
    if transform != Transform::Drop && column.ty != ColumnType::String(StringFormat::Text) {
        problems.error(
            place,
            format!("column `{name}` is transformed to text, so its type is string"),
            format!("write `{name} = {{ type = \"string\", … }}`"),
        );
    }
    let ColumnSource::Attribute(attribute) = &column.source else {
        return;
    };
    let keys = source
        .into_iter()
        .flat_map(|source| std::iter::once(&source.partition_key).chain(source.sort_key.as_ref()));
    for key in keys {
        if attribute.may_take(&key.name) {
            problems.error(
                place,
                format!(
                    "column `{name}` transforms the key attribute `{}`",
                    key.name
                ),
                "remove the transform; keys stay clear in _pk and _sk",
            );
        }
    }
}

/// Every capture needs a column, because it needs a type.
fn check_captures(
    matcher: &Matcher,
    columns: &[Column],
    declared: &[&str],
    matching: &Place,
    problems: &mut Problems,
) {
    for (index, capture) in matcher.captures.iter().enumerate() {
        let has_column = columns
            .iter()
            .any(|column| column.source == ColumnSource::Capture(index));
        // A column of the name that could not be read is a problem already.
        let by_attribute = columns.iter().any(|column| column.name == *capture);
        if has_column || declared.contains(&capture.as_str()) && !by_attribute {
            continue;
        }
        let ty = suggested_type(matcher, index);
        problems.error(
            matching,
            if by_attribute {
                format!("capture `{capture}` has no column: column `{capture}` reads an attribute")
            } else {
                format!("capture `{capture}` has no column")
            },
            if by_attribute {
                format!(
                    "remove `attribute` from the column, rename the capture, or write `{{_}}` \
                         instead of `{{{capture}}}`"
                )
            } else {
                format!(
                    "add `{capture} = \"{ty}\"` to [columns], or write `{{_}}` instead of \
                         `{{{capture}}}`"
                )
            },
        );
    }
}

fn suggested_type(matcher: &Matcher, capture: usize) -> &'static str {
    let mut segments = matcher
        .partition_key
        .iter()
        .chain(&matcher.sort_key)
        .flat_map(|template| &template.segments);
    let kind = segments.find_map(|segment| match segment {
        Segment::Capture {
            index: Some(index),
            kind,
        } if *index == capture => Some(*kind),
        _ => None,
    });
    match kind {
        Some(CaptureKind::Int) => "bigint",
        Some(CaptureKind::Date) => "date",
        _ => "string",
    }
}

/// No attribute fills two columns.
fn check_attributes(columns: &[Column], places: &BTreeMap<String, Place>, problems: &mut Problems) {
    for (index, column) in columns.iter().enumerate() {
        let Some(place) = places.get(&column.name) else {
            continue;
        };
        let ColumnSource::Attribute(ours) = &column.source else {
            continue;
        };
        for other in columns.iter().take(index) {
            let ColumnSource::Attribute(theirs) = &other.source else {
                continue;
            };
            if ours.as_str() == theirs.as_str() {
                problems.error(
                    place,
                    format!(
                        "columns `{}` and `{}` both take the attribute `{}`",
                        other.name,
                        column.name,
                        ours.as_str()
                    ),
                    "keep one of them, or give the other its own `attribute = \"…\"`",
                );
                continue;
            }
            let (exact, named) = match (ours, theirs) {
                (AttributeName::Exact(exact), AttributeName::Named(named)) => {
                    ((column, exact), (other, named))
                }
                (AttributeName::Named(named), AttributeName::Exact(exact)) => {
                    ((other, exact), (column, named))
                }
                _ => continue,
            };
            if column_name(exact.1) == column_name(named.1) {
                problems.warning(
                    place,
                    format!(
                        "attribute `{}` goes to column `{}`, so column `{}` takes only attributes \
                         of other spellings",
                        exact.1, exact.0.name, named.0.name
                    ),
                    format!("give column `{}` its own `attribute = \"…\"`", named.0.name),
                );
            }
        }
    }
}
