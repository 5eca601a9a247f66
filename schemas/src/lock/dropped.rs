//! Columns with `transform = "drop"`: no file has them, but without them their attributes would go
//! to `_rest` in the clear, so that the lock keeps their names.

use super::nodes::reads;
use crate::model::{ColumnSource, Entity, Transform};

/// A column whose attribute is left out of the lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockedDrop {
    /// Name of the column.
    pub(crate) path: String,
    /// The attribute, where it was named.
    pub(crate) reads: Option<String>,
    /// Its attribute may be stored since a reviewed change.
    pub(crate) removed: bool,
}

/// The columns that an entity drops, in declared order.
pub(crate) fn dropped(entity: &Entity) -> Vec<LockedDrop> {
    entity
        .columns
        .iter()
        .filter(|column| column.transform == Some(Transform::Drop))
        .map(|column| LockedDrop {
            path: column.name.clone(),
            reads: match &column.source {
                ColumnSource::Attribute(attribute) => reads(attribute),
                ColumnSource::Capture(_) => None,
            },
            removed: false,
        })
        .collect()
}

/// What the lock says after this entity.
pub(super) fn update(entity: &Entity, before: &[LockedDrop]) -> Vec<LockedDrop> {
    let mut now = dropped(entity);
    for old in before {
        if !now.iter().any(|column| column.path == old.path) {
            now.push(LockedDrop {
                removed: true,
                ..old.clone()
            });
        }
    }
    now
}
