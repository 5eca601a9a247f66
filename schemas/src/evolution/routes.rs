//! Items that other tables take from now on. No change tells the table that an item left: the stream
//! is read with the new schemas only. A new baseline puts that right (design of the current state: what
//! a complete baseline does not have is absent).

use crate::load::{LoadedEntity, UNMATCHED};
use crate::lock::{Lock, matching};
use crate::problem::Problems;

/// What to do about it.
pub(super) const NEW_BASELINE: &str = "take a full export later than ten minutes after the new \
    schemas are live, and convert it: its baseline leaves no item in a table that it left. Then run \
    `dynalake schemas lock`";

/// Warns of entities that take other items than those that were locked.
pub(super) fn check(loaded: &[LoadedEntity], lock: &Lock, problems: &mut Problems) {
    for LoadedEntity { entity, places, .. } in loaded {
        if problems.has_errors_in(&places.entity.file) {
            continue;
        }
        let table = &entity.table;
        let what = match lock.tables.get(table).filter(|table| !table.retired) {
            Some(locked) => match &locked.matching {
                Some(before) if *before != matching(entity) => format!(
                    "the `[match]` of `{}` is another than before ({before}): items that it takes now, \
                     or no longer takes, are in two tables",
                    entity.name
                ),
                // Locks of before the line have none.
                _ => continue,
            },
            None => format!(
                "table `{table}` is new: items that it takes and that the lake has already are in \
                 `{UNMATCHED}` or another table, too"
            ),
        };
        problems.warning(&places.matching, what, NEW_BASELINE);
    }
}
