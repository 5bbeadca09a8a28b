//! When versions stop being live (Garage admin reference §9).

use super::history::LayoutHistory;
use super::merge::LayoutEvent;
use super::parameters::ConsistencyMode;

/// How many retired versions are remembered.
const KEPT: usize = 5;

impl LayoutHistory {
    /// Retires every version that is not needed any more, and raises the trackers to the oldest live one.
    pub(super) fn retire(&mut self, mode: ConsistencyMode) -> Vec<LayoutEvent> {
        self.forget_inconsistent();
        let needed = match mode {
            ConsistencyMode::Consistent => self.oldest_needed(),
            ConsistencyMode::Degraded | ConsistencyMode::Dangerous => self.current().number,
        };
        let mut events = Vec::new();
        while self.live.len() > 1 && self.oldest() < needed {
            let version = self.live.remove(0);
            events.push(LayoutEvent::Retired { version: version.number });
            self.old.push(version);
        }
        let surplus = self.old.len().saturating_sub(KEPT);
        self.old.drain(..surplus);
        let (nodes, oldest) = (self.nodes(), self.oldest());
        self.trackers.clamp(nodes, oldest);
        events
    }

    /// Version 0 goes without a trace as soon as there is a version to work with.
    fn forget_inconsistent(&mut self) {
        if self.is_consistent() {
            let first = self.live.iter().position(|version| version.is_consistent()).unwrap_or(0);
            self.live.drain(..first);
        }
    }

    /// R: what every node of the *current* version, gateways included, has seen everyone synchronised to.
    fn oldest_needed(&self) -> u64 {
        self.trackers.sync_ack.minimum(self.current().nodes(), self.oldest())
    }
}
