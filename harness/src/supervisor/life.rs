//! How long a pair lives: the rule, without any I/O.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::process::ProcessIdentity;

/// A client that holds a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The client.
    pub process: ProcessIdentity,
    /// What it does with the pair, in words.
    pub purpose: String,
}

/// How far a pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Its parts are being started.
    Starting,
    /// It can be used.
    Running,
    /// It is being taken down.
    Stopping,
}

/// What the rule asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Live on.
    Stay,
    /// Live on for the linger time, unless something changes.
    Linger,
    /// Tear down.
    Stop,
}

/// Who holds a pair, and whether it is to live on.
#[derive(Debug)]
pub(super) struct Life {
    phase: Phase,
    holders: BTreeMap<u64, Holder>,
    kept: bool,
    /// The client that this pair was started for has neither spoken nor gone. Its connection is there already.
    expecting: bool,
    patience: Patience,
}

/// What happens once nobody holds the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// It lingers.
    Lingers,
    /// The last client said that nobody needs to wait.
    Released,
    /// A part died: nobody would want to find it.
    Broken,
}

impl Life {
    /// A pair that is being started for a client that is yet to be heard.
    pub(super) fn new(kept: bool) -> Self {
        Self {
            phase: Phase::Starting,
            holders: BTreeMap::new(),
            kept,
            expecting: true,
            patience: Patience::Lingers,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn kept(&self) -> bool {
        self.kept
    }

    pub(super) fn holders(&self) -> Vec<Holder> {
        self.holders.values().cloned().collect()
    }

    pub(super) fn joined(&mut self, id: u64, holder: Holder) {
        if self.patience == Patience::Released {
            self.patience = Patience::Lingers;
        }
        self.expecting = false;
        self.holders.insert(id, holder);
    }

    /// A client released the pair.
    pub(super) fn released(&mut self, id: u64, linger: bool) {
        let held = self.holders.remove(&id).is_some();
        let last = held && self.holders.is_empty();
        if last && !linger && self.patience == Patience::Lingers {
            self.patience = Patience::Released;
        }
    }

    /// A connection ended without a word.
    pub(super) fn vanished(&mut self, id: u64) {
        self.expecting = false;
        self.released(id, true);
    }

    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    pub(super) fn started(&mut self) {
        if self.phase == Phase::Starting {
            self.phase = Phase::Running;
        }
    }

    pub(super) fn part_died(&mut self) {
        self.patience = Patience::Broken;
    }

    /// The start failed, or the pair was told to end.
    pub(super) fn stop(&mut self) {
        self.phase = Phase::Stopping;
    }

    /// Somebody asks to take the pair down; refused with its other holders unless by force.
    pub(super) fn down(&mut self, by: u64, force: bool) -> Result<(), Vec<Holder>> {
        let others: Vec<Holder> =
            self.holders.iter().filter(|(id, _)| **id != by).map(|(_, holder)| holder.clone()).collect();
        if !force && !others.is_empty() {
            return Err(others);
        }
        self.stop();
        Ok(())
    }

    /// The linger time is over.
    pub(super) fn linger_elapsed(&mut self) {
        if self.wish() == Wish::Linger {
            self.stop();
        }
    }

    pub(super) fn wish(&self) -> Wish {
        if self.expecting {
            // Even of a start that failed at once: somebody has to be told.
            return Wish::Stay;
        }
        if self.phase == Phase::Stopping {
            return Wish::Stop;
        }
        if !self.holders.is_empty() {
            return Wish::Stay;
        }
        // A start that nobody waits for is given up, even of a pair that was to be kept.
        if self.kept && self.phase == Phase::Running {
            return Wish::Stay;
        }
        if self.patience == Patience::Lingers { Wish::Linger } else { Wish::Stop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder() -> Holder {
        let process = ProcessIdentity { pid: 1, start_time: 1, boot_id: "boot".into() };
        Holder { process, purpose: "test".into() }
    }

    fn running(kept: bool) -> Life {
        let mut life = Life::new(kept);
        life.joined(1, holder());
        life.started();
        life
    }

    #[test]
    fn a_start_that_nobody_waits_for_lingers_and_is_given_up_even_if_it_was_to_be_kept() {
        let mut life = Life::new(true);
        life.vanished(1);
        assert_eq!(life.wish(), Wish::Linger);
        life.linger_elapsed();
        assert_eq!(life.wish(), Wish::Stop);
    }

    #[test]
    fn a_start_that_fails_at_once_waits_for_the_client_that_is_to_hear_of_it() {
        let mut life = Life::new(false);
        life.stop();
        assert_eq!(life.wish(), Wish::Stay);
        life.joined(1, holder());
        assert_eq!(life.wish(), Wish::Stop);
    }

    #[test]
    fn a_pair_stays_while_anybody_holds_it() {
        let mut life = running(false);
        life.joined(2, holder());
        life.released(1, false);
        assert_eq!(life.wish(), Wish::Stay);
    }

    #[test]
    fn the_last_release_decides_whether_the_pair_lingers() {
        let mut life = running(false);
        life.released(1, true);
        assert_eq!(life.wish(), Wish::Linger);
        life.joined(2, holder());
        life.released(2, false);
        assert_eq!(life.wish(), Wish::Stop);
    }

    #[test]
    fn a_vanished_client_makes_the_pair_linger() {
        let mut life = running(false);
        life.vanished(1);
        assert_eq!(life.wish(), Wish::Linger);
    }

    #[test]
    fn who_comes_in_time_ends_the_linger() {
        let mut life = running(false);
        life.vanished(1);
        life.joined(2, holder());
        life.linger_elapsed();
        assert_eq!(life.wish(), Wish::Stay);
    }

    #[test]
    fn a_connection_that_never_held_the_pair_does_not_end_it() {
        let mut life = running(false);
        life.vanished(1);
        life.released(9, false);
        assert_eq!(life.wish(), Wish::Linger);
    }

    #[test]
    fn a_kept_pair_stays_until_it_is_told() {
        let mut life = running(true);
        life.released(1, false);
        life.linger_elapsed();
        assert_eq!(life.wish(), Wish::Stay);
        life.down(9, false).unwrap();
        assert_eq!(life.wish(), Wish::Stop);
    }

    #[test]
    fn a_pair_can_be_kept_later() {
        let mut life = running(false);
        life.keep();
        life.released(1, false);
        assert_eq!(life.wish(), Wish::Stay);
    }

    #[test]
    fn nobody_takes_a_pair_from_under_its_other_holders_but_by_force() {
        let mut life = running(false);
        assert_eq!(life.down(9, false), Err(vec![holder()]));
        assert_eq!(life.wish(), Wish::Stay);
        life.down(9, true).unwrap();
        assert_eq!(life.wish(), Wish::Stop);
    }

    #[test]
    fn the_only_holder_may_take_its_pair_down() {
        let mut life = running(false);
        life.down(1, false).unwrap();
        assert_eq!(life.wish(), Wish::Stop);
    }

    #[test]
    fn a_broken_pair_stays_for_its_holders_and_for_nobody_else() {
        let mut life = running(false);
        life.part_died();
        assert_eq!(life.wish(), Wish::Stay);
        life.vanished(1);
        assert_eq!(life.wish(), Wish::Stop);
    }

    #[test]
    fn what_stops_does_not_run_again() {
        let mut life = Life::new(false);
        life.stop();
        life.started();
        life.joined(1, holder());
        assert_eq!((life.phase(), life.wish()), (Phase::Stopping, Wish::Stop));
    }
}
