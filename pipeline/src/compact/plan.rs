//! Which objects of a day are merged next: a function of what is there.

use std::collections::BTreeSet;

use dynalake_schemas::Entity;
use sha2::{Digest, Sha256};

use super::record::VERSION;
use crate::encode::properties::WRITER;
use crate::layout::{CHANGES, hex};
use crate::store::ObjectMeta;

/// Small objects that must have come late for a day to be compacted once more. Fewer are left: a
/// query does not notice them.
pub(super) const LATE_OBJECTS: usize = 8;
/// Objects merged at once; their footers are held in memory.
const MAX_INPUTS: usize = 1000;
/// Bytes merged at once, in targets; the spool holds them.
const MAX_INPUT_TARGETS: u64 = 4;
/// Hex digits of an id.
const ID_HEX: usize = 32;
/// What the names of our outputs begin with.
const PREFIX: &str = "compacted-";

/// What decides, besides the inputs, on what comes out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) entity: &'a Entity,
    /// `YYYY-MM-DD`.
    pub(super) day: &'a str,
    pub(super) target_bytes: u64,
}

/// Objects that are merged into one, or a few large ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) id: String,
    /// Sorted by key.
    pub(super) inputs: Vec<ObjectMeta>,
}

/// What to merge next of a day, of which `live` are the objects that readers need, sorted by key.
/// `recorded` says whether an output is in a record. `None` when the day is as it should be.
pub(super) fn next_unit(
    frame: Frame<'_>,
    live: &[ObjectMeta],
    recorded: impl Fn(&str) -> bool,
) -> Option<Unit> {
    // Outputs without a record: either those of a compaction that died before its record (their
    // inputs are still there and are going to give the same), or those whose inputs and record are
    // long gone. What becomes of the day without them tells which.
    let unrecorded: BTreeSet<&str> = live
        .iter()
        .filter(|meta| !recorded(&meta.key))
        .filter_map(|meta| id_of(&meta.key))
        .collect();
    for id in unrecorded {
        let rest: Vec<&ObjectMeta> = live
            .iter()
            .filter(|meta| id_of(&meta.key) != Some(id))
            .collect();
        if let Some(unit) = choose(frame, &rest).filter(|unit| unit.id == id) {
            return Some(unit);
        }
    }
    choose(frame, &live.iter().collect::<Vec<_>>())
}

fn choose(frame: Frame<'_>, live: &[&ObjectMeta]) -> Option<Unit> {
    let is_small = |meta: &&ObjectMeta| meta.size < frame.target_bytes / 2;
    let was_compacted = live.iter().any(|meta| id_of(&meta.key).is_some());
    let (compacted, late): (Vec<&ObjectMeta>, Vec<&ObjectMeta>) = live
        .iter()
        .copied()
        .filter(is_small)
        .partition(|meta| id_of(&meta.key).is_some());
    let due = !was_compacted || late.len() >= LATE_OBJECTS || compacted.len() >= 2;
    let (mut inputs, mut bytes) = (Vec::new(), 0_u64);
    for meta in late.into_iter().chain(compacted).take(MAX_INPUTS) {
        bytes = bytes.saturating_add(meta.size);
        if bytes > frame.target_bytes.saturating_mul(MAX_INPUT_TARGETS) {
            break;
        }
        inputs.push(meta.clone());
    }
    if !due || inputs.len() < 2 {
        return None;
    }
    inputs.sort_by(|a, b| a.key.cmp(&b.key));
    Some(Unit {
        id: id(frame, &inputs),
        inputs,
    })
}

/// Key of an output.
pub(super) fn output_key(frame: Frame<'_>, id: &str, part: usize) -> String {
    let (table, day) = (&frame.entity.table, frame.day);
    format!("{CHANGES}/{table}/dt={day}/{PREFIX}{id}-{part:05}.parquet")
}

/// The id in the key of an output; `None` of other objects.
fn id_of(key: &str) -> Option<&str> {
    let (_, name) = key.rsplit_once('/')?;
    let (id, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some(id)
}

/// Digest over all that decides on the outputs' bytes.
fn id(frame: Frame<'_>, inputs: &[ObjectMeta]) -> String {
    let mut digest = Sha256::new();
    let mut feed = |text: &str| {
        digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(text.as_bytes());
    };
    feed(&format!("{VERSION} {WRITER} {}", frame.target_bytes));
    feed(&format!("{} {}", frame.entity.name, frame.entity.version));
    feed(&format!("{:?}", frame.entity.arrow_schema()));
    for input in inputs {
        feed(&input.key);
        feed(&input.size.to_string());
    }
    hex(digest, ID_HEX)
}
