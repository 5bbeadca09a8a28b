//! One layout mutation per layout owner at a time, within this process (operator contract §5, "try-lock").

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::guard::ClusterKey;

/// The owners whose layout is being changed.
#[derive(Clone, Debug, Default)]
pub struct LayoutLocks {
    held: Arc<Mutex<BTreeSet<ClusterKey>>>,
}

impl LayoutLocks {
    /// Takes the lock of this owner, or nothing if it is taken. It is released on drop.
    pub fn try_lock(&self, owner: &ClusterKey) -> Option<LayoutLock> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(owner.clone()).then(|| LayoutLock { held: Arc::clone(&self.held), owner: owner.clone() })
    }
}

/// A lock that is held.
#[derive(Debug)]
pub struct LayoutLock {
    held: Arc<Mutex<BTreeSet<ClusterKey>>>,
    owner: ClusterKey,
}

impl Drop for LayoutLock {
    fn drop(&mut self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::LayoutLocks;
    use crate::guard::ClusterKey;

    #[test]
    fn a_lock_is_held_once_and_free_again_after_its_drop() {
        let locks = LayoutLocks::default();
        let owner = ClusterKey::new("ns", "garage");
        let lock = locks.try_lock(&owner);
        assert!(lock.is_some());
        assert!(locks.try_lock(&owner).is_none());
        assert!(locks.try_lock(&ClusterKey::new("ns", "other")).is_some());
        drop(lock);
        assert!(locks.try_lock(&owner).is_some());
    }
}
