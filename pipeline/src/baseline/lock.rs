//! The lock under which the state of a lake is changed.
//!
//! One object, made by a conditional put, so that of several that try at once exactly one has it.
//! A holder that died leaves it behind. The same holder with the same purpose takes it up again:
//! whatever is done under the lock is safe to do again. Everybody else is told who has it.

use serde::{Deserialize, Serialize};

use super::error::BaselineError;
use super::record::json;
use crate::store::Store;

/// Key of the lock.
const KEY: &str = "state/lock.json";

/// `state/lock.json`: who changes the lake's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRecord {
    /// Who: a person on a machine, or an execution.
    pub holder: String,
    /// What for.
    pub purpose: String,
    /// Since when, milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
}

/// The lock, held.
#[derive(Debug)]
#[must_use = "a lock that is not released stays"]
pub struct Lock {
    store: Store,
    record: LockRecord,
}

impl Lock {
    /// Takes the lock, or takes it up again where the same holder left it with the same purpose.
    ///
    /// # Errors
    /// [`BaselineError::Locked`] names who has it; or the store failed.
    pub async fn acquire(
        store: &Store,
        holder: &str,
        purpose: &str,
        now_ms: i64,
    ) -> Result<Self, BaselineError> {
        let wanted = LockRecord {
            holder: holder.to_owned(),
            purpose: purpose.to_owned(),
            since_ms: now_ms,
        };
        // Twice: the lock may be released between a put that lost and the look at the winner.
        for _ in 0..2 {
            if store.put_if_absent(KEY, json(&wanted)?).await? {
                return Ok(Self {
                    store: store.clone(),
                    record: wanted,
                });
            }
            match lock_holder(store).await? {
                // Also a put whose answer was lost and that met its own object.
                Some(there) if there.is_of(&wanted) => {
                    return Ok(Self {
                        store: store.clone(),
                        record: there,
                    });
                }
                Some(there) => {
                    return Err(BaselineError::Locked {
                        holder: there.holder,
                        purpose: there.purpose,
                        since_ms: there.since_ms,
                        address: store.address(KEY),
                    });
                }
                None => {}
            }
        }
        Err(BaselineError::LostLock {
            address: store.address(KEY),
        })
    }

    /// Makes sure that nobody has removed the lock. Called before a step that must not happen
    /// without it.
    ///
    /// # Errors
    /// [`BaselineError::LostLock`], or the store failed.
    pub async fn check(&self) -> Result<(), BaselineError> {
        match lock_holder(&self.store).await? {
            Some(there) if there == self.record => Ok(()),
            _ => Err(BaselineError::LostLock {
                address: self.store.address(KEY),
            }),
        }
    }

    /// Releases the lock, whatever came of the work, and gives that back.
    ///
    /// # Errors
    /// That of the work; else that of the release.
    pub async fn release<T, E: From<BaselineError>>(self, outcome: Result<T, E>) -> Result<T, E> {
        let released = release(&self.store, &self.record).await;
        let value = outcome?;
        released?;
        Ok(value)
    }
}

/// Removes the lock if this holder left it with this purpose.
pub(super) async fn release_left(
    store: &Store,
    holder: &str,
    purpose: &str,
) -> Result<(), BaselineError> {
    match lock_holder(store).await? {
        Some(there) if there.holder == holder && there.purpose == purpose => {
            Ok(store.delete(KEY).await?)
        }
        _ => Ok(()),
    }
}

async fn release(store: &Store, record: &LockRecord) -> Result<(), BaselineError> {
    match lock_holder(store).await? {
        Some(there) if there == *record => Ok(store.delete(KEY).await?),
        _ => Ok(()),
    }
}

/// Who has the lock; `None` when it is free.
///
/// # Errors
/// The store failed.
pub async fn lock_holder(store: &Store) -> Result<Option<LockRecord>, BaselineError> {
    let Some(bytes) = store.get(KEY).await? else {
        return Ok(None);
    };
    if let Ok(record) = serde_json::from_slice(&bytes) {
        return Ok(Some(record));
    }
    // A lock that cannot be read is a lock.
    Ok(store.head(KEY).await?.map(|meta| LockRecord {
        holder: "unknown".to_owned(),
        purpose: "its record is not readable".to_owned(),
        since_ms: meta.modified_ms,
    }))
}

/// Removes the lock by hand, whoever has it; gives who had it.
///
/// # Errors
/// The store failed.
pub async fn unlock(store: &Store) -> Result<Option<LockRecord>, BaselineError> {
    let there = lock_holder(store).await?;
    if there.is_some() {
        store.delete(KEY).await?;
    }
    Ok(there)
}

impl LockRecord {
    fn is_of(&self, wanted: &Self) -> bool {
        self.holder == wanted.holder && self.purpose == wanted.purpose
    }
}
