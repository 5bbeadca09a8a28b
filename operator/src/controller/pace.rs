//! How long each object has been pending, and how often in a row it failed.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Paces by object, kept in memory: after a restart everything is looked at soon again.
#[derive(Debug, Default)]
pub struct Paces {
    pending: Mutex<BTreeMap<String, Instant>>,
    failures: Mutex<BTreeMap<String, u32>>,
    jitter: RandomState,
}

impl Paces {
    /// How long this object has been pending: zero the first time it is said.
    pub fn pending_for(&self, object: &str) -> Duration {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.entry(object.to_owned()).or_insert_with(Instant::now).elapsed()
    }

    /// The object is settled: its next pending time begins anew.
    pub fn settled(&self, object: &str) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(object);
    }

    /// Counts a failure in a row; answers how many there are.
    pub fn failed(&self, object: &str) -> u32 {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(object.to_owned()).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }

    /// A reconcile succeeded.
    pub fn succeeded(&self, object: &str) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(object);
    }

    /// The object is gone.
    pub fn forget(&self, object: &str) {
        self.settled(object);
        self.succeeded(object);
    }

    /// Adds up to a tenth, so that many objects do not come back at once.
    pub fn jittered(&self, wait: Duration, object: &str) -> Duration {
        let share = u32::try_from(self.jitter.hash_one(object) % 100).unwrap_or(0);
        wait + wait.saturating_mul(share) / 1000
    }
}
