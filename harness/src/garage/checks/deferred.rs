//! Findings that wait for a fact that may come late.
//!
//! An audit entry bears the time at which the answer was complete, and an operator may act on an object a moment
//! earlier. A finding that such an entry would excuse is held back for a while.

use crate::checks::{Finding, Found};

/// For how long a finding is held back, in nanoseconds.
const GRACE_NS: u64 = 2_000_000_000;

/// Findings that are held back, each with the key by which it can be excused.
#[derive(Debug)]
pub struct Deferred<K> {
    waiting: Vec<(u64, K, Finding)>,
}

impl<K> Default for Deferred<K> {
    fn default() -> Self {
        Self { waiting: Vec::new() }
    }
}

impl<K> Deferred<K> {
    /// Holds `finding` back, from `mono_ns` on.
    pub fn hold(&mut self, mono_ns: u64, key: K, finding: Finding) {
        self.waiting.push((mono_ns, key, finding));
    }

    /// Drops the findings that are excused.
    pub fn excuse(&mut self, is_excused: impl Fn(&K) -> bool) {
        self.waiting.retain(|(_, key, _)| !is_excused(key));
    }

    /// Tells the findings that were held back for long enough at `mono_ns`.
    pub fn pass(&mut self, mono_ns: u64, found: &mut Found) {
        while let Some((since, _, _)) = self.waiting.first()
            && mono_ns.saturating_sub(*since) > GRACE_NS
        {
            found.add(self.waiting.remove(0).2);
        }
    }

    /// Tells all of them: nothing more will come.
    pub fn end(&mut self, found: &mut Found) {
        self.waiting.drain(..).for_each(|(_, _, finding)| found.add(finding));
    }
}
