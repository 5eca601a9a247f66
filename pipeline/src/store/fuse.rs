//! Test hook: stops a store after so many operations, to try out what a crash leaves behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations that are still let through.
#[derive(Debug, Clone)]
pub(super) struct Fuse(Arc<AtomicU64>);

impl Fuse {
    pub(super) fn new(operations: u64) -> Self {
        Self(Arc::new(AtomicU64::new(operations)))
    }

    /// Takes one operation; `false` when none is left.
    pub(super) fn holds(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }
}
