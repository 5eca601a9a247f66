//! What was dropped stays dropped, unless somebody says that it is meant otherwise.

use crate::load::LoadedEntity;
use crate::lock::{LockedTable, dropped};
use crate::problem::Problems;

/// Refuses that the attribute of a dropped column gets into the lake unnoticed.
pub(super) fn check(
    loaded: &LoadedEntity,
    locked: &LockedTable,
    changes: &mut Vec<String>,
    problems: &mut Problems,
) {
    let LoadedEntity {
        entity,
        places,
        removed,
        ..
    } = loaded;
    let now = dropped(entity);
    for before in locked.dropped.iter().filter(|column| !column.removed) {
        if now.contains(before) {
            continue;
        }
        let path = before.path.as_str();
        if removed.iter().any(|(name, _)| name == path) {
            changes.push(format!("`{path}` is not dropped any more"));
            continue;
        }
        let attribute = before.reads.as_deref().unwrap_or(path);
        let what = if now.iter().any(|column| column.path == path) {
            format!(
                "`{path}` drops another attribute than before: `{attribute}` would go to `_rest` \
                 in the clear"
            )
        } else if entity.columns.iter().any(|column| column.name == path) {
            format!(
                "`{path}` was dropped and would be stored: attribute `{attribute}` was never in the lake"
            )
        } else {
            format!(
                "`{path}` was dropped and is gone: attribute `{attribute}` would go to `_rest` in \
                 the clear"
            )
        };
        let remedy = match &before.reads {
            None => format!("`{path} = {{ transform = \"drop\" }}`"),
            Some(reads) => {
                format!("`{path} = {{ attribute = {reads:?}, transform = \"drop\" }}`")
            }
        };
        problems.error(
            places.column(path),
            what,
            format!(
                "keep {remedy}; or, if its values are meant to be stored from now on, write \
                 `removed = [\"{path}\"]` (beside the column, if there is one), and run \
                 `dynalake schemas lock` after a review"
            ),
        );
    }
}
