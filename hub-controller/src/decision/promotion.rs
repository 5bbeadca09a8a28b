//! The steps of a promotion, their order, and what follows on each (design record, decision 5).

use std::fmt;

/// A step. The order of the variants is the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The own API server answers: the failing network is not one's own.
    SelfCheck,
    /// The Active's Lease is read once more: a renewal between two polls is not missed.
    FinalRead,
    /// The mirror is stopped, and has confirmed that no write is under way.
    StopMirror,
    /// The own Lease is acquired.
    AcquireLease,
    /// Reconcilers may write.
    OpenFence,
    /// Everything that exists is reconciled.
    Requeue,
    /// The hub declares itself on every `Cluster`.
    Publish,
    /// The Event.
    Announce,
    /// The metric.
    Count,
}

impl Step {
    /// All of them in their order.
    pub const ALL: [Self; 9] = [
        Self::SelfCheck,
        Self::FinalRead,
        Self::StopMirror,
        Self::AcquireLease,
        Self::OpenFence,
        Self::Requeue,
        Self::Publish,
        Self::Announce,
        Self::Count,
    ];

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::SelfCheck => "self-check",
            Self::FinalRead => "final-read",
            Self::StopMirror => "stop-mirror",
            Self::AcquireLease => "acquire-lease",
            Self::OpenFence => "open-fence",
            Self::Requeue => "requeue",
            Self::Publish => "publish",
            Self::Announce => "announce",
            Self::Count => "count",
        }
    }

    /// Which time limits it.
    pub fn limit(self) -> Limit {
        match self {
            Self::SelfCheck | Self::FinalRead => Limit::Dial,
            Self::StopMirror | Self::AcquireLease | Self::Requeue | Self::Publish | Self::Announce => {
                Limit::Grace
            }
            Self::OpenFence | Self::Count => Limit::Immediate,
        }
    }

    /// Whether nothing can be undone from here on: the hub leads.
    pub fn is_after_fence(self) -> bool {
        self > Self::OpenFence
    }

    fn next(self) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step > self)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What limits a step (design record, decision 5: every step that waits on another component is bounded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The dial timeout.
    Dial,
    /// The grace period of promotion steps.
    Grace,
    /// It waits for nobody.
    Immediate,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It is not done, and it is known why.
    Failed,
    /// It took too long; it may yet have happened.
    TimedOut,
    /// The Active has renewed its Lease meanwhile.
    Renewed,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Take this step.
    Take(Step),
    /// Give this attempt up; the next poll decides anew.
    Abort {
        /// The mirror was told to stop and has to be started again.
        restart_mirror: bool,
        /// The own Lease may be held and has to be given back.
        give_back: bool,
    },
    /// The promotion is complete.
    Complete,
}

/// What follows on a step that ended like this.
///
/// Before the fence a failure ends the attempt, with one exception: the final read aborts only for a renewal. After it
/// a failure is logged, and the hub stays leader.
pub fn follow(step: Step, outcome: Outcome) -> Next {
    let goes_on = match outcome {
        Outcome::Done => true,
        Outcome::Renewed => step.is_after_fence(),
        Outcome::Failed | Outcome::TimedOut => step.is_after_fence() || step == Step::FinalRead,
    };
    if !goes_on {
        return Next::Abort {
            restart_mirror: step >= Step::StopMirror,
            give_back: step >= Step::AcquireLease,
        };
    }
    step.next().map_or(Next::Complete, Next::Take)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::{Limit, Next, Outcome, Step, follow};

    fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
        let outcome = prop_oneof![
            6 => Just(Outcome::Done),
            1 => Just(Outcome::Failed),
            1 => Just(Outcome::TimedOut),
            1 => Just(Outcome::Renewed),
        ];
        prop::collection::vec(outcome, Step::ALL.len())
    }

    fn run(outcomes: &[Outcome]) -> (Vec<(Step, Outcome)>, Next) {
        let (mut step, mut taken) = (Step::SelfCheck, Vec::new());
        for outcome in outcomes {
            taken.push((step, *outcome));
            match follow(step, *outcome) {
                Next::Take(next) => step = next,
                end => return (taken, end),
            }
        }
        (taken, Next::Complete)
    }

    proptest! {
        /// Law: the fence opens only after the own API answered, the mirror is confirmed stopped and the Lease is held.
        #[test]
        fn the_fence_opens_only_after_all_that_must_come_before(outcomes in outcomes()) {
            let (taken, _) = run(&outcomes);
            if taken.iter().any(|(step, _)| *step == Step::OpenFence) {
                for needed in [Step::SelfCheck, Step::StopMirror, Step::AcquireLease] {
                    prop_assert!(taken.contains(&(needed, Outcome::Done)), "{needed} in {taken:?}");
                }
                prop_assert!(taken.iter().take_while(|(step, _)| *step < Step::OpenFence).all(|(_, outcome)| *outcome != Outcome::Renewed));
            }
        }

        /// Law: once the fence is open nothing aborts; before, whatever was stopped is started again.
        #[test]
        fn an_attempt_ends_complete_or_as_it_began(outcomes in outcomes()) {
            let (taken, end) = run(&outcomes);
            let opened = taken.contains(&(Step::OpenFence, Outcome::Done));
            match end {
                Next::Complete => prop_assert!(opened),
                Next::Abort { restart_mirror, give_back } => {
                    prop_assert!(!opened);
                    prop_assert_eq!(restart_mirror, taken.iter().any(|(step, _)| *step == Step::StopMirror));
                    prop_assert_eq!(give_back, taken.iter().any(|(step, _)| *step == Step::AcquireLease));
                }
                Next::Take(step) => prop_assert!(false, "{step} is no end"),
            }
        }
    }

    #[rstest]
    #[case(Outcome::Done, Next::Take(Step::StopMirror))]
    #[case(Outcome::Failed, Next::Take(Step::StopMirror))]
    #[case(Outcome::TimedOut, Next::Take(Step::StopMirror))]
    #[case(Outcome::Renewed, Next::Abort { restart_mirror: false, give_back: false })]
    fn the_final_read_aborts_for_a_renewal_only(#[case] outcome: Outcome, #[case] expected: Next) {
        assert_eq!(follow(Step::FinalRead, outcome), expected);
    }

    #[test]
    fn every_step_that_waits_for_somebody_is_limited() {
        let unlimited: Vec<Step> =
            Step::ALL.into_iter().filter(|step| step.limit() == Limit::Immediate).collect();
        assert_eq!(unlimited, [Step::OpenFence, Step::Count]);
    }
}
