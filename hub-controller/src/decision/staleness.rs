//! Whether the Active is dead: one rule over the newest proof of life (design record, decision 5).
//!
//! The proof is the newest `renewTime` that was ever read. The Active is dead once no newer one was seen for a whole
//! window, measured on the monotonic clock of this process since the newest was *first seen*: neither clock of the two
//! hubs is compared with the other. A Lease that is frozen and one that cannot be read are the same event.

use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;

use crate::mutant::{self, Mutant};

/// What a look at the Lease has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The first `renewTime` of this process.
    First,
    /// A newer one than all before.
    Advanced,
    /// The newest one again.
    Same,
    /// An older one than the newest: no proof of life.
    Older,
    /// The Lease has none: no proof of life.
    Empty,
    /// The Lease was not read.
    Unread,
}

impl Finding {
    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Advanced => "advanced",
            Self::Same => "same",
            Self::Older => "older",
            Self::Empty => "empty",
            Self::Unread => "unread",
        }
    }

    /// Whether it proves that the Active lives.
    pub fn is_life(self) -> bool {
        matches!(self, Self::First | Self::Advanced)
    }
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No `renewTime` was ever read by this process: a wrong kubeconfig is not a dead Active.
    NeverRead,
    /// The newest proof is young enough.
    Alive,
    /// The Active counts as dead.
    Stale,
}

impl Verdict {
    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NeverRead => "never-read",
            Self::Alive => "alive",
            Self::Stale => "stale",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    renew_time: Timestamp,
    seen: Instant,
    /// Time since then in which nobody looked, which proves nothing.
    unwatched: Duration,
}

/// The newest proof of life, and how it was come by.
#[derive(Clone, Debug)]
pub struct ProofOfLife {
    newest: Option<Newest>,
    started: Instant,
    last_look: Instant,
    longest_gap: Duration,
}

impl ProofOfLife {
    /// Nothing is known yet. Looks are due within `longest_gap` of each other; what a gap has beyond that (the process
    /// was frozen, say) does not count towards the age.
    pub fn new(now: Instant, longest_gap: Duration) -> Self {
        Self { newest: None, started: now, last_look: now, longest_gap }
    }

    /// The Lease was read at `now`; this is its `renewTime`.
    pub fn read(&mut self, renew_time: Option<Timestamp>, now: Instant) -> Finding {
        self.look(now);
        let Some(renew_time) = renew_time else { return Finding::Empty };
        let finding = match &self.newest {
            None => Finding::First,
            Some(newest) if renew_time > newest.renew_time => Finding::Advanced,
            Some(newest) if renew_time == newest.renew_time => Finding::Same,
            Some(_) if mutant::is(Mutant::OlderRenewTime) => Finding::Advanced,
            Some(_) => Finding::Older,
        };
        if finding.is_life() {
            self.newest = Some(Newest { renew_time, seen: now, unwatched: Duration::ZERO });
        }
        finding
    }

    /// The Lease could not be read; known at `now`.
    pub fn unread(&mut self, now: Instant) -> Finding {
        self.look(now);
        Finding::Unread
    }

    fn look(&mut self, now: Instant) {
        let gap = now.saturating_duration_since(self.last_look);
        self.last_look = now;
        let Some(newest) = &mut self.newest else { return };
        newest.unwatched += gap.saturating_sub(self.longest_gap);
        if mutant::is(Mutant::StalenessFromAttempt) {
            newest.seen = now;
        }
    }

    /// The newest `renewTime` that was read.
    pub fn newest(&self) -> Option<Timestamp> {
        self.newest.map(|newest| newest.renew_time)
    }

    /// How long the newest proof has been the newest, at `now`, as far as somebody looked.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let newest = self.newest?;
        Some(now.saturating_duration_since(newest.seen).saturating_sub(newest.unwatched))
    }

    /// What follows at `now`, where the proof may be `window` old.
    pub fn verdict(&self, window: Duration, now: Instant) -> Verdict {
        match self.age(now) {
            None if mutant::is(Mutant::PromotesUnread)
                && now.saturating_duration_since(self.started) >= window =>
            {
                Verdict::Stale
            }
            None => Verdict::NeverRead,
            Some(age) if age >= window => Verdict::Stale,
            Some(_) => Verdict::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use k8s_openapi::jiff::Timestamp;
    use proptest::prelude::*;

    use super::{Finding, ProofOfLife, Verdict};

    const WINDOW: Duration = Duration::from_secs(25);
    const GAP: Duration = Duration::from_secs(7);

    #[allow(clippy::unnecessary_wraps, reason = "as a Lease has it")]
    fn at(second: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(second).unwrap())
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_that_is_frozen_and_one_that_cannot_be_read_go_stale_at_the_same_moment() {
        let start = Instant::now();
        let (mut frozen, mut silent) = (ProofOfLife::new(start, GAP), ProofOfLife::new(start, GAP));
        assert_eq!(
            (frozen.read(at(100), start), silent.read(at(100), start)),
            (Finding::First, Finding::First)
        );
        for second in (2..=24).step_by(2) {
            assert_eq!(frozen.read(at(100), after(start, second)), Finding::Same);
            assert_eq!(silent.unread(after(start, second)), Finding::Unread);
        }
        for proof in [frozen, silent] {
            assert_eq!(proof.verdict(WINDOW, after(start, 24)), Verdict::Alive);
            assert_eq!(proof.verdict(WINDOW, after(start, 25)), Verdict::Stale);
        }
    }

    #[test]
    fn nothing_but_a_read_renew_time_makes_a_promotion_possible() {
        let start = Instant::now();
        let mut proof = ProofOfLife::new(start, GAP);
        proof.unread(after(start, 5));
        assert_eq!(proof.read(None, after(start, 10)), Finding::Empty);
        assert_eq!(proof.verdict(WINDOW, after(start, 100_000)), Verdict::NeverRead);
    }

    #[test]
    fn an_older_time_is_no_life() {
        let start = Instant::now();
        let mut proof = ProofOfLife::new(start, GAP);
        proof.read(at(100), start);
        assert_eq!(proof.read(at(99), after(start, 5)), Finding::Older);
        assert_eq!(proof.newest(), at(100));
        assert_eq!(proof.age(after(start, 5)), Some(Duration::from_secs(5)));
    }

    #[test]
    fn what_a_frozen_standby_slept_through_does_not_age_the_proof() {
        let start = Instant::now();
        let mut proof = ProofOfLife::new(start, GAP);
        proof.read(at(100), start);
        proof.unread(after(start, 600));
        assert_eq!(proof.age(after(start, 600)), Some(GAP));
        assert_eq!(proof.verdict(WINDOW, after(start, 600)), Verdict::Alive);
    }

    #[derive(Clone, Debug)]
    enum Look {
        Read(Option<i64>),
        Unread,
    }

    fn looks() -> impl Strategy<Value = Vec<(u64, Look)>> {
        let look = prop_oneof![
            3 => (0_i64..50).prop_map(|second| Look::Read(Some(second))),
            1 => Just(Look::Read(None)),
            2 => Just(Look::Unread),
        ];
        prop::collection::vec((0_u64..20, look), 1..60)
    }

    proptest! {
        /// Law: stale means that the newest value ever read is at least a window old, and was never beaten since.
        #[test]
        fn stale_is_never_said_while_life_was_seen_within_the_window(looks in looks()) {
            let start = Instant::now();
            let mut proof = ProofOfLife::new(start, GAP);
            let (mut now, mut newest, mut since) = (start, None, start);
            for (gap, look) in looks {
                now += Duration::from_secs(gap);
                match look {
                    Look::Read(value) => {
                        proof.read(value.and_then(at), now);
                        if value > newest {
                            (newest, since) = (value, now);
                        }
                    }
                    Look::Unread => drop(proof.unread(now)),
                }
                prop_assert_eq!(proof.newest(), newest.and_then(at));
                match proof.verdict(WINDOW, now) {
                    Verdict::Stale => prop_assert!(newest.is_some() && now - since >= WINDOW),
                    Verdict::NeverRead => prop_assert!(newest.is_none()),
                    Verdict::Alive => prop_assert!(newest.is_some()),
                }
            }
        }
    }
}
