//! One AttributeValue into one column buffer.
//!
//! Every function appends exactly one value or NULL, and says how well the value is held.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dynalake_schemas::TimeFormat;

use super::buffer::{ColumnBuffer, Data, offset};
use super::names::Slot;
use super::plan::{Kind, Node};
use crate::json::{Tag, Value, sorted_set, write_value};
use crate::number::Decimal;
use crate::time;

/// How well a column holds a value. The worst of its parts counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// Turning the column's value back gives the same AttributeValue.
    Exact,
    /// Only in part; the attribute is kept in `_rest` too.
    Inexact,
    /// Not at all (NULL); the attribute is kept in `_rest`.
    Mismatch,
}

/// What one row's values ran into: path index and how they fit. Only what is not exact.
pub(crate) type Notes = Vec<(usize, Fit)>;

/// Room that is used again from value to value.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) notes: Notes,
    pub(crate) text: String,
    slots: Vec<Slot>,
}

impl Scratch {
    fn note(&mut self, node: &Node, fit: Fit) -> Fit {
        if fit != Fit::Exact {
            self.notes.push((node.path, fit));
        }
        fit
    }
}

/// Appends a value, or NULL where it does not fit.
pub(crate) fn decode(
    node: &mut Node,
    buffer: &mut ColumnBuffer,
    value: Value<'_>,
    scratch: &mut Scratch,
) -> Fit {
    let tag = value.tag();
    if matches!(tag, Tag::Null | Tag::NullFalse) && !matches!(node.kind, Kind::Json) {
        buffer.push_null();
        return scratch.note(node, Fit::Inexact);
    }
    match &mut node.kind {
        Kind::Array(_) | Kind::Set(_) => list(node, buffer, value, scratch),
        Kind::Map(_) => map(node, buffer, value, scratch),
        Kind::Struct { .. } => structure(node, buffer, value, scratch),
        Kind::Json => {
            scratch.text.clear();
            let mut text = std::mem::take(&mut scratch.text);
            write_value(value, &mut text);
            buffer.push_bytes(text.as_bytes());
            scratch.text = text;
            Fit::Exact
        }
        kind => {
            let fit = scalar(kind, buffer, tag, value);
            scratch.note(node, fit)
        }
    }
}

fn scalar(kind: &Kind, buffer: &mut ColumnBuffer, tag: Tag, value: Value<'_>) -> Fit {
    match (kind, tag) {
        (Kind::Text, Tag::S) => {
            buffer.push_bytes(value.text().as_bytes());
            Fit::Exact
        }
        (Kind::NumberText, Tag::N) => {
            buffer.push_bytes(value.number().as_bytes());
            Fit::Exact
        }
        (Kind::Boolean, Tag::True | Tag::False) => {
            if let Data::Boolean(values) = &mut buffer.data {
                values.append(tag == Tag::True);
                buffer.present();
                return Fit::Exact;
            }
            mismatch(buffer)
        }
        (Kind::Binary, Tag::B) => binary(buffer, &value.text()),
        (Kind::Int | Kind::Bigint | Kind::Double | Kind::Decimal { .. }, Tag::N) => {
            number(kind, buffer, &value.number())
        }
        (Kind::Date(format), Tag::S) if is_text(format) => date_text(format, buffer, &value.text()),
        (Kind::Timestamp(format), Tag::S) if is_text(format) => {
            push_long(buffer, timestamp_text(format, &value.text()))
        }
        (Kind::Date(format), Tag::N) => push_int(
            buffer,
            epoch(format, &value.number()).and_then(time::day_of),
        ),
        (Kind::Timestamp(format), Tag::N) => push_long(buffer, epoch(format, &value.number())),
        _ => mismatch(buffer),
    }
}

/// Text captured from a key. What it loses is no loss: the key is in `_pk` and `_sk`.
pub(crate) fn decode_capture(
    node: &Node,
    buffer: &mut ColumnBuffer,
    text: &str,
    scratch: &mut Scratch,
) -> Fit {
    let fit = match &node.kind {
        Kind::Text => {
            buffer.push_bytes(text.as_bytes());
            Fit::Exact
        }
        Kind::NumberText => match crate::number::canonical(text) {
            Ok(number) => {
                buffer.push_bytes(number.as_bytes());
                Fit::Exact
            }
            Err(_) => mismatch(buffer),
        },
        Kind::Boolean => match bool::from_str(text) {
            Ok(value) => {
                if let Data::Boolean(values) = &mut buffer.data {
                    values.append(value);
                }
                buffer.present();
                Fit::Exact
            }
            Err(_) => mismatch(buffer),
        },
        Kind::Binary => binary(buffer, text),
        Kind::Int | Kind::Bigint | Kind::Double | Kind::Decimal { .. } => {
            number(&node.kind, buffer, text)
        }
        Kind::Date(format) if is_text(format) => date_text(format, buffer, text),
        Kind::Timestamp(format) if is_text(format) => {
            push_long(buffer, timestamp_text(format, text))
        }
        Kind::Date(format) => push_int(buffer, epoch(format, text).and_then(time::day_of)),
        Kind::Timestamp(format) => push_long(buffer, epoch(format, text)),
        Kind::Array(_) | Kind::Set(_) | Kind::Map(_) | Kind::Struct { .. } | Kind::Json => {
            mismatch(buffer)
        }
    };
    if fit == Fit::Mismatch {
        scratch.note(node, fit)
    } else {
        Fit::Exact
    }
}

fn mismatch(buffer: &mut ColumnBuffer) -> Fit {
    buffer.push_null();
    Fit::Mismatch
}

fn binary(buffer: &mut ColumnBuffer, base64: &str) -> Fit {
    let Data::Bytes(bytes) = &mut buffer.data else {
        return mismatch(buffer);
    };
    match bytes.push_with(|out| STANDARD.decode_vec(base64, out)) {
        Ok(()) => {
            buffer.present();
            Fit::Exact
        }
        Err(_) => mismatch(buffer),
    }
}

fn number(kind: &Kind, buffer: &mut ColumnBuffer, text: &str) -> Fit {
    match (kind, &mut buffer.data) {
        (Kind::Int, Data::Int(values)) => match integer::<i32>(text) {
            Some(value) => values.push(value),
            None => return mismatch(buffer),
        },
        (Kind::Bigint, Data::Long(values)) => match integer::<i64>(text) {
            Some(value) => values.push(value),
            None => return mismatch(buffer),
        },
        (Kind::Decimal { precision, scale }, Data::Decimal(values)) => {
            let scaled = Decimal::parse(text)
                .ok()
                .and_then(|decimal| decimal.to_scaled(*scale));
            let limit = 10_u128.pow(u32::from(*precision));
            match scaled.filter(|scaled| scaled.unsigned_abs() < limit) {
                Some(scaled) => values.push(scaled),
                None => return mismatch(buffer),
            }
        }
        (Kind::Double, Data::Double(values)) => {
            match Decimal::parse(text).ok().and_then(Decimal::to_f64) {
                Some((value, exact)) => {
                    values.push(value);
                    buffer.present();
                    return if exact { Fit::Exact } else { Fit::Inexact };
                }
                None => return mismatch(buffer),
            }
        }
        _ => return mismatch(buffer),
    }
    buffer.present();
    Fit::Exact
}

/// An integral number, by value: canonical text parses at once, other spellings by way of `Decimal`.
fn integer<T: FromStr + TryFrom<i128>>(text: &str) -> Option<T> {
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    Decimal::parse(text)
        .ok()?
        .to_scaled(0)
        .and_then(|value| T::try_from(value).ok())
}

fn is_text(format: &TimeFormat) -> bool {
    matches!(format, TimeFormat::Iso8601 | TimeFormat::Pattern(_))
}

fn timestamp_text(format: &TimeFormat, text: &str) -> Option<time::Held<i64>> {
    match format {
        TimeFormat::Pattern(pattern) => time::parse_pattern(text, pattern),
        _ => time::parse_iso8601(text),
    }
}

fn date_text(format: &TimeFormat, buffer: &mut ColumnBuffer, text: &str) -> Fit {
    let days = match format {
        TimeFormat::Pattern(pattern) => time::parse_date_pattern(text, pattern),
        _ => time::parse_iso_date(text).map(|days| (days, true)),
    };
    push_int(buffer, days)
}

fn epoch(format: &TimeFormat, text: &str) -> Option<time::Held<i64>> {
    let unit_scale = match format {
        TimeFormat::EpochSeconds => 0,
        TimeFormat::EpochMillis => 3,
        TimeFormat::EpochMicros => 6,
        TimeFormat::Iso8601 | TimeFormat::Pattern(_) => return None,
    };
    time::from_epoch(Decimal::parse(text).ok()?, unit_scale)
}

fn push_int(buffer: &mut ColumnBuffer, held: Option<time::Held<i32>>) -> Fit {
    match (&mut buffer.data, held) {
        (Data::Int(values), Some((value, exact))) => {
            values.push(value);
            buffer.present();
            if exact { Fit::Exact } else { Fit::Inexact }
        }
        _ => mismatch(buffer),
    }
}

fn push_long(buffer: &mut ColumnBuffer, held: Option<time::Held<i64>>) -> Fit {
    match (&mut buffer.data, held) {
        (Data::Long(values), Some((value, exact))) => {
            values.push(value);
            buffer.present();
            if exact { Fit::Exact } else { Fit::Inexact }
        }
        _ => mismatch(buffer),
    }
}

fn list(
    node: &mut Node,
    buffer: &mut ColumnBuffer,
    value: Value<'_>,
    scratch: &mut Scratch,
) -> Fit {
    let tag = value.tag();
    let set = matches!(tag, Tag::Ss | Tag::Ns | Tag::Bs);
    let fits = match &node.kind {
        Kind::Array(_) => set || tag == Tag::L,
        Kind::Set(element) => {
            tag == match element.kind {
                Kind::Text => Tag::Ss,
                Kind::Binary => Tag::Bs,
                _ => Tag::Ns,
            }
        }
        _ => false,
    };
    let (true, Data::List { offsets, child }) = (fits, &mut buffer.data) else {
        buffer.push_null();
        return scratch.note(node, Fit::Mismatch);
    };
    let mut fit = Fit::Exact;
    if let Kind::Array(element) | Kind::Set(element) = &mut node.kind {
        if set {
            for value in sorted_set(value) {
                fit = fit.max(decode(element, child, value, scratch));
            }
        } else {
            for value in value.elements() {
                fit = fit.max(decode(element, child, value, scratch));
            }
        }
    }
    offsets.push(offset(child.len()));
    buffer.present();
    if set && matches!(node.kind, Kind::Array(_)) {
        fit = fit.max(scratch.note(node, Fit::Inexact));
    }
    fit
}

fn map(node: &mut Node, buffer: &mut ColumnBuffer, value: Value<'_>, scratch: &mut Scratch) -> Fit {
    let (
        Tag::M,
        Data::Map {
            offsets,
            keys,
            values,
        },
    ) = (value.tag(), &mut buffer.data)
    else {
        buffer.push_null();
        return scratch.note(node, Fit::Mismatch);
    };
    let mut fit = Fit::Exact;
    if let Kind::Map(element) = &mut node.kind {
        let mut members: Vec<_> = value
            .members()
            .map(|(name, value)| (name.text(), value))
            .collect();
        members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, value) in members {
            keys.push_bytes(name.as_bytes());
            fit = fit.max(decode(element, values, value, scratch));
        }
    }
    offsets.push(offset(keys.len()));
    buffer.present();
    fit
}

fn structure(
    node: &mut Node,
    buffer: &mut ColumnBuffer,
    value: Value<'_>,
    scratch: &mut Scratch,
) -> Fit {
    let (Tag::M, Data::Struct(children)) = (value.tag(), &mut buffer.data) else {
        buffer.push_null();
        return scratch.note(node, Fit::Mismatch);
    };
    let mut fit = Fit::Exact;
    let mut own = Fit::Exact;
    if let Kind::Struct { names, members } = &mut node.kind {
        let base = scratch.slots.len();
        scratch.slots.resize(base + members.len(), Slot::Empty);
        for (name, value) in value.members() {
            let resolved = names.resolve(name);
            let claims = match &resolved {
                Ok(id) => names
                    .get(*id)
                    .map(|name| name.claims.as_slice())
                    .unwrap_or_default(),
                Err(name) => name.claims.as_slice(),
            };
            if claims.is_empty() {
                own = Fit::Inexact;
            }
            for claim in claims {
                if let Some(slot) = scratch.slots.get_mut(base + claim.column) {
                    // A member that loses its claim is held by nothing.
                    if *slot != Slot::Empty {
                        own = Fit::Inexact;
                    }
                    slot.claim(value.position(), claim.by_name);
                }
            }
        }
        for (index, (member, child)) in members.iter_mut().zip(children).enumerate() {
            match scratch
                .slots
                .get(base + index)
                .copied()
                .unwrap_or(Slot::Empty)
            {
                Slot::Empty => child.push_null(),
                Slot::Contested => {
                    child.push_null();
                    fit = fit.max(scratch.note(member, Fit::Mismatch));
                }
                Slot::Filled {
                    member: position,
                    by_name,
                    ..
                } => {
                    fit = fit.max(decode(member, child, value.at(position), scratch));
                    if !by_name {
                        own = Fit::Inexact;
                    }
                }
            }
        }
        scratch.slots.truncate(base);
    }
    buffer.present();
    fit.max(scratch.note(node, own))
}
