//! Field ids: kept from the lock by path, given out in order otherwise.

use std::collections::BTreeMap;

use super::Lock;
use crate::model::{ColumnType, Entity, Transform};
use crate::row_columns::FIRST_TYPED_ID;

/// Gives every stored column and every part of one its field id. What the lock knows keeps its id,
/// removed columns that come back included; the rest gets the next ones in declared order.
pub(crate) fn assign_ids(entity: &mut Entity, lock: Option<&Lock>) {
    let locked = lock.and_then(|lock| lock.tables.get(&entity.table));
    let known = locked.map(|table| {
        table
            .columns
            .iter()
            .map(|column| (column.node.path.as_str(), column.node.id))
            .collect()
    });
    let mut ids = Ids {
        known: known.unwrap_or_default(),
        next: locked.map_or(FIRST_TYPED_ID, |table| table.next_id),
    };
    for column in &mut entity.columns {
        if column.transform == Some(Transform::Drop) {
            continue;
        }
        column.field_id = ids.of(&column.name);
        ids.parts(&column.name, &mut column.ty);
    }
}

struct Ids<'l> {
    known: BTreeMap<&'l str, i32>,
    next: i32,
}

impl Ids<'_> {
    fn of(&mut self, path: &str) -> i32 {
        self.known.get(path).copied().unwrap_or_else(|| {
            let id = self.next;
            self.next = self.next.saturating_add(1);
            id
        })
    }

    fn parts(&mut self, path: &str, ty: &mut ColumnType) {
        match ty {
            ColumnType::Array(child) | ColumnType::Set(child) => {
                let path = format!("{path}.element");
                child.field_id = self.of(&path);
                self.parts(&path, &mut child.ty);
            }
            ColumnType::Map { key_id, value } => {
                *key_id = self.of(&format!("{path}.key"));
                let path = format!("{path}.value");
                value.field_id = self.of(&path);
                self.parts(&path, &mut value.ty);
            }
            ColumnType::Struct(members) => {
                for member in members {
                    let path = format!("{path}.{}", member.name);
                    member.field_id = self.of(&path);
                    self.parts(&path, &mut member.ty);
                }
            }
            _ => {}
        }
    }
}
