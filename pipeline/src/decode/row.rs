//! One item into one row: every column, then `_rest` with what no column holds exactly.

use dynalake_schemas::{OnMismatch, Source, Transform};

use super::buffer::ColumnBuffer;
use super::names::{Claim, Name, NameId, Slot};
use super::plan::{ColumnPlan, EntityPlan};
use super::transform::{self, HmacKey};
use super::value::{Fit, Notes, Scratch, decode, decode_capture};
use crate::json::{Value, write_named};
use crate::reject::{ReasonCode, Reject};

/// Key attributes that `_pk` and `_sk` hold exactly: those of the declared type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldKeys<'a> {
    pub(crate) source: &'a Source,
    pub(crate) partition_key: bool,
    pub(crate) sort_key: bool,
}

impl HeldKeys<'_> {
    fn hold(self, name: &str) -> bool {
        (self.partition_key && name == self.source.partition_key.name)
            || (self.sort_key
                && self
                    .source
                    .sort_key
                    .as_ref()
                    .is_some_and(|key| name == key.name))
    }
}

/// Room for one row, used again from row to row.
#[derive(Debug, Default)]
pub(crate) struct RowScratch {
    values: Scratch,
    slots: Vec<Slot>,
    members: Vec<Member>,
    /// Attributes of this row without a column.
    pub(crate) undeclared: Vec<NameId>,
    /// Number of those whose names are not remembered, being too many.
    pub(crate) undeclared_unknown: usize,
    rest: String,
}

impl RowScratch {
    /// What this row's values ran into.
    pub(crate) fn notes(&self) -> &Notes {
        &self.values.notes
    }
}

/// An attribute of the item: positions of its name and value, and whether some column (or key) holds
/// it exactly.
#[derive(Debug, Clone, Copy)]
struct Member {
    name: usize,
    value: usize,
    held: bool,
}

/// Appends one row: a value to each of `columns`, and to `rest`.
///
/// `item` is `None` for a row without attributes (a tombstone). On `Err` the columns are left uneven:
/// the caller cuts them back.
pub(crate) fn decode_row(
    plan: &mut EntityPlan,
    item: Option<Value<'_>>,
    keys: HeldKeys<'_>,
    captures: &[Option<&str>],
    (columns, rest): (&mut [ColumnBuffer], &mut ColumnBuffer),
    hmac_key: Option<&HmacKey>,
    scratch: &mut RowScratch,
) -> Result<(), Reject> {
    scratch.values.notes.clear();
    scratch.undeclared.clear();
    scratch.undeclared_unknown = 0;
    scratch.members.clear();
    scratch.slots.clear();
    scratch.slots.resize(plan.columns.len(), Slot::Empty);
    if let Some(item) = item {
        fill_slots(plan, item, keys, scratch)?;
    }
    for (index, column) in plan.columns.iter_mut().enumerate() {
        let mut dropped = None;
        let buffer = match column.stored {
            Some(position) => columns.get_mut(position),
            None => dropped.as_mut(),
        };
        let slot = scratch.slots.get(index).copied().unwrap_or(Slot::Empty);
        let fit = match (column.capture, slot) {
            (Some(capture), _) => {
                let text = captures.get(capture).copied().flatten();
                fill_capture(column, buffer, text, &mut scratch.values)
            }
            (
                None,
                Slot::Filled {
                    member,
                    by_name,
                    alone,
                },
            ) => {
                let Some((item, member)) = item.zip(scratch.members.get_mut(member)) else {
                    continue;
                };
                let value = item.at(member.value);
                fill_attribute(
                    column,
                    buffer,
                    value,
                    by_name && alone,
                    member,
                    hmac_key,
                    &mut scratch.values,
                )
            }
            (None, Slot::Empty) => {
                push_null(buffer);
                Fit::Exact
            }
            (None, Slot::Contested) => {
                push_null(buffer);
                scratch.values.notes.push((column.node.path, Fit::Mismatch));
                Fit::Mismatch
            }
        };
        if fit == Fit::Mismatch && column.on_mismatch == OnMismatch::Quarantine {
            return Err(mismatch(column, &plan.paths, scratch.notes()));
        }
    }
    match item {
        Some(item) => write_rest(item, rest, scratch),
        None => rest.push_null(),
    }
    Ok(())
}

fn fill_slots(
    plan: &mut EntityPlan,
    item: Value<'_>,
    keys: HeldKeys<'_>,
    scratch: &mut RowScratch,
) -> Result<(), Reject> {
    for (index, (name, value)) in item.members().enumerate() {
        let resolved = plan.names.resolve(name);
        let meaning = match &resolved {
            Ok(id) => plan.names.get(*id),
            Err(meaning) => Some(meaning),
        };
        let Some(Name {
            text,
            claims,
            ignored,
        }) = meaning
        else {
            continue;
        };
        let held = keys.hold(text);
        scratch.members.push(Member {
            name: name.position(),
            value: value.position(),
            held,
        });
        if claims.is_empty() && !ignored && !held {
            match &resolved {
                Ok(id) => scratch.undeclared.push(*id),
                Err(_) => scratch.undeclared_unknown += 1,
            }
        }
        for Claim { column, by_name } in claims {
            let Some(slot) = scratch.slots.get_mut(*column) else {
                continue;
            };
            let transformed = plan
                .columns
                .get(*column)
                .is_some_and(|c| c.transform.is_some());
            if transformed && *slot != Slot::Empty {
                return Err(Reject::new(
                    ReasonCode::Mismatch,
                    "two attributes claim a column with a transform; keeping either would put a clear \
                     value into the lake. Name one with `attribute = \"…\"` and declare the other",
                )
                .at(text.clone()));
            }
            slot.claim(index, *by_name);
        }
    }
    Ok(())
}

fn push_null(buffer: Option<&mut ColumnBuffer>) {
    if let Some(buffer) = buffer {
        buffer.push_null();
    }
}

fn fill_capture(
    column: &ColumnPlan,
    buffer: Option<&mut ColumnBuffer>,
    text: Option<&str>,
    scratch: &mut Scratch,
) -> Fit {
    match (buffer, text) {
        (Some(buffer), Some(text)) => decode_capture(&column.node, buffer, text, scratch),
        (buffer, _) => {
            push_null(buffer);
            Fit::Exact
        }
    }
}

fn fill_attribute(
    column: &mut ColumnPlan,
    buffer: Option<&mut ColumnBuffer>,
    value: Value<'_>,
    tells_name: bool,
    member: &mut Member,
    hmac_key: Option<&HmacKey>,
    scratch: &mut Scratch,
) -> Fit {
    if let Some(transform) = column.transform {
        member.held = true;
        if let Some(buffer) = buffer {
            buffer.push_text(transform::apply(transform, hmac_key, value).as_deref());
        }
        return Fit::Exact;
    }
    let Some(buffer) = buffer else {
        return Fit::Exact;
    };
    let mut fit = decode(&mut column.node, buffer, value, scratch);
    if fit == Fit::Exact && !tells_name && !member.held {
        fit = Fit::Inexact;
        scratch.notes.push((column.node.path, fit));
    }
    member.held |= fit == Fit::Exact || (fit == Fit::Inexact && !column.lossless);
    fit
}

fn mismatch(column: &ColumnPlan, paths: &[String], notes: &Notes) -> Reject {
    let path = notes.iter().rev().find(|(_, fit)| *fit == Fit::Mismatch);
    let path = path
        .and_then(|(path, _)| paths.get(*path))
        .unwrap_or(&column.name);
    Reject::new(
        ReasonCode::Mismatch,
        format!(
            "a value does not fit its type, and column `{}` says `on_mismatch = \"quarantine\"`",
            column.name
        ),
    )
    .at(path.clone())
}

fn write_rest(item: Value<'_>, rest: &mut ColumnBuffer, scratch: &mut RowScratch) {
    let mut left: Vec<_> = scratch
        .members
        .iter()
        .filter(|member| !member.held)
        .map(|member| (item.at(member.name).text(), item.at(member.value)))
        .collect();
    if left.is_empty() {
        rest.push_null();
        return;
    }
    left.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    scratch.rest.clear();
    scratch.rest.push('{');
    for (name, value) in left {
        write_named(&name, value, &mut scratch.rest);
    }
    scratch.rest.push('}');
    rest.push_bytes(scratch.rest.as_bytes());
}

/// Notes which attributes of an image this entity transforms, in the order of the image's members.
pub(crate) fn collect_transforms(
    plan: &mut EntityPlan,
    image: Value<'_>,
    transforms: &mut Vec<Option<Transform>>,
) {
    for (index, (name, _)) in image.members().enumerate() {
        if transforms.len() <= index {
            transforms.push(None);
        }
        let resolved = plan.names.resolve(name);
        let meaning = match &resolved {
            Ok(id) => plan.names.get(*id),
            Err(meaning) => Some(meaning),
        };
        let claims = meaning
            .map(|meaning| meaning.claims.as_slice())
            .unwrap_or_default();
        let found = claims
            .iter()
            .find_map(|claim| plan.columns.get(claim.column)?.transform);
        if let (Some(slot), Some(found)) = (transforms.get_mut(index), found) {
            // The one that shows least wins.
            *slot = match (*slot, found) {
                (Some(Transform::Drop), _) | (_, Transform::Drop) => Some(Transform::Drop),
                (Some(Transform::Mask), _) | (_, Transform::Mask) => Some(Transform::Mask),
                _ => Some(Transform::HmacSha256),
            };
        }
    }
}

/// An image as canonical DynamoDB JSON, its transformed attributes as the lake shows them.
pub(crate) fn image_text(
    image: Value<'_>,
    transforms: &[Option<Transform>],
    hmac_key: Option<&HmacKey>,
) -> String {
    let mut members: Vec<_> = image
        .members()
        .enumerate()
        .map(|(index, (name, value))| {
            (name.text(), value, transforms.get(index).copied().flatten())
        })
        .collect();
    members.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
    let mut text = String::from("{");
    for (name, value, transform) in members {
        match transform {
            None => write_named(&name, value, &mut text),
            Some(transform) => {
                if let Some(shown) = transform::apply(transform, hmac_key, value) {
                    if !text.ends_with('{') {
                        text.push(',');
                    }
                    crate::json::write_escaped(&name, &mut text);
                    text.push_str(":{\"S\":");
                    crate::json::write_escaped(&shown, &mut text);
                    text.push('}');
                }
            }
        }
    }
    text.push('}');
    text
}
