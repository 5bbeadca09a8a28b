//! The fence and its permits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::refusal::Fenced;
use crate::api::kind::HubKind;
use crate::decision_log::{DecisionLog, Entry};
use crate::ha::lease::HeldLease;
use crate::ha::mirror::MirrorStopped;
use crate::metrics::Metrics;
use crate::mutant::{self, Mutant};

/// A term of leadership.
#[derive(Clone, Debug)]
struct Term {
    number: u64,
    /// Until when the own Lease counts as renewed; a standalone hub has none.
    until: Option<Instant>,
    /// Cancelled when the term ends: writes that are under way are cut.
    cut: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    terms: u64,
    term: Option<Term>,
    first_answer: Option<bool>,
}

/// The write fence of this process. Closed until it is opened with proof. Clones are the same fence.
#[derive(Clone)]
pub struct Fence {
    state: Arc<Mutex<State>>,
    term: Arc<watch::Sender<Option<u64>>>,
    metrics: Arc<Metrics>,
    log: DecisionLog,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fence").field(&*self.lock()).finish()
    }
}

impl Fence {
    /// A closed fence.
    pub fn closed(metrics: Arc<Metrics>, log: DecisionLog) -> Self {
        Self { state: Arc::default(), term: Arc::new(watch::Sender::new(None)), metrics, log }
    }

    /// Opens it for good: there is one hub only (design record, scope: standalone).
    pub fn open_standalone(&self) {
        self.open(None, "standalone");
    }

    /// Opens it for a hub that holds its Lease and never mirrored in this process.
    pub fn open_for(&self, held: &HeldLease) {
        self.open(Some(held.valid_until()), "lease acquired");
    }

    /// Opens it for a Standby that is promoted: its mirror was stopped, and no write of it is under way.
    pub fn open_promoted(&self, held: &HeldLease, stopped: MirrorStopped) {
        stopped.end();
        self.open(Some(held.valid_until()), "promoted");
    }

    fn open(&self, until: Option<Instant>, why: &'static str) {
        let number = {
            let mut state = self.lock();
            state.terms += 1;
            let number = state.terms;
            state.term = Some(Term { number, until, cut: CancellationToken::new() });
            number
        };
        self.metrics.fence(true);
        self.log.record(&Entry::Fence { open: true, term: number, why });
        info!(term = number, why, "the write fence is open");
        self.term.send_replace(Some(number));
    }

    /// The own Lease was renewed.
    pub fn prolong(&self, held: &HeldLease) {
        if let Some(term) = &mut self.lock().term {
            term.until = Some(held.valid_until());
        }
    }

    /// Closes it: the term has ended. Writes under way are cut.
    pub fn close(&self, why: &'static str) {
        let Some(term) = self.lock().term.take() else { return };
        term.cut.cancel();
        self.metrics.fence(false);
        self.log.record(&Entry::Fence { open: false, term: term.number, why });
        warn!(term = term.number, why, "the write fence is closed");
        self.term.send_replace(None);
    }

    /// The term as it changes; `None` while closed.
    pub fn terms(&self) -> watch::Receiver<Option<u64>> {
        self.term.subscribe()
    }

    /// Asks for a permit. For a hub that does not lead this is the refusal.
    pub fn permit(&self) -> Result<WritePermit, Fenced> {
        let term = self.current();
        let term = if mutant::is(Mutant::FenceReadOnce) { self.as_first_answered(term) } else { term };
        match term {
            Ok(term) => Ok(WritePermit { fence: self.clone(), term }),
            Err(_) if mutant::is(Mutant::NoFence) => Ok(self.forged()),
            Err(fenced) => Err(fenced),
        }
    }

    /// Asks for a permit on behalf of a kind's reconciler.
    pub fn permit_for(&self, kind: HubKind) -> Result<WritePermit, Fenced> {
        match self.permit() {
            Err(_) if kind == HubKind::VpnKeyRotation && mutant::is(Mutant::UnfencedTimer) => {
                Ok(self.forged())
            }
            answer => answer,
        }
    }

    fn current(&self) -> Result<Term, Fenced> {
        let term = self.lock().term.clone().ok_or(Fenced::NotLeader)?;
        match term.until {
            Some(until) if Instant::now() >= until => Err(Fenced::Expired),
            _ => Ok(term),
        }
    }

    /// A defect: whatever was answered first is answered for ever.
    fn as_first_answered(&self, term: Result<Term, Fenced>) -> Result<Term, Fenced> {
        let first = *self.lock().first_answer.get_or_insert(term.is_ok());
        match (first, term) {
            (true, Err(_)) => Ok(self.forged().term),
            (false, Ok(_)) => Err(Fenced::NotLeader),
            (_, term) => term,
        }
    }

    /// A permit for nothing, as only a defect gives.
    fn forged(&self) -> WritePermit {
        WritePermit {
            fence: self.clone(),
            term: Term { number: 0, until: None, cut: CancellationToken::new() },
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to write during one term of leadership. Only [`Fence::permit`] makes one, and only for a leader.
#[derive(Clone)]
pub struct WritePermit {
    fence: Fence,
    term: Term,
}

impl fmt::Debug for WritePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritePermit").field("term", &self.term.number).finish_non_exhaustive()
    }
}

impl WritePermit {
    /// Checks once more, at the write: the term may have ended since.
    pub fn check(&self) -> Result<(), Fenced> {
        if self.term.number == 0 {
            return Ok(());
        }
        match self.fence.current() {
            Ok(now) if now.number == self.term.number => Ok(()),
            Ok(_) | Err(Fenced::NotLeader) => Err(Fenced::TermEnded),
            Err(fenced) => Err(fenced),
        }
    }

    /// Runs one write under this permit: not at all once the term has ended, and not beyond its end.
    pub async fn write<T>(&self, write: impl Future<Output = T>) -> Result<T, Fenced> {
        self.check()?;
        tokio::select! {
            biased;
            () = self.term.cut.cancelled() => Err(Fenced::TermEnded),
            answer = write => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::{Fence, Fenced};
    use crate::decision_log::DecisionLog;
    use crate::ha::lease::HeldLease;
    use crate::ha::mirror::MirrorStopped;
    use crate::metrics::Metrics;

    fn fence() -> Fence {
        Fence::closed(Arc::new(Metrics::new()), DecisionLog::off())
    }

    fn held(for_long: Duration) -> HeldLease {
        HeldLease::for_tests(Instant::now() + for_long)
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_hub_that_does_not_lead_gets_no_permit() {
        assert_eq!(fence().permit().unwrap_err(), Fenced::NotLeader);
    }

    #[test]
    fn a_permit_ends_with_its_term_also_if_another_term_begins() {
        let fence = fence();
        fence.open_for(&held(LONG));
        let permit = fence.permit().unwrap();
        assert_eq!(permit.check(), Ok(()));
        fence.close("test");
        assert_eq!(permit.check(), Err(Fenced::TermEnded));
        fence.open_promoted(&held(LONG), MirrorStopped::for_tests());
        assert_eq!(permit.check(), Err(Fenced::TermEnded));
        assert_eq!(fence.permit().unwrap().check(), Ok(()));
    }

    #[test]
    fn a_lease_that_was_not_renewed_in_time_closes_the_fence_by_itself() {
        let fence = fence();
        fence.open_for(&held(Duration::ZERO));
        assert_eq!(fence.permit().unwrap_err(), Fenced::Expired);
        fence.prolong(&held(LONG));
        assert_eq!(fence.permit().unwrap().check(), Ok(()));
    }

    #[tokio::test]
    async fn a_write_under_way_is_cut_at_the_end_of_the_term() {
        let fence = fence();
        fence.open_standalone();
        let permit = fence.permit().unwrap();
        let write = permit.write(std::future::pending::<()>());
        let (answer, ()) = tokio::join!(write, async { fence.close("test") });
        assert_eq!(answer, Err(Fenced::TermEnded));
        assert_eq!(permit.write(async {}).await, Err(Fenced::TermEnded));
    }

    #[test]
    fn terms_are_numbered_and_told() {
        let fence = fence();
        let mut terms = fence.terms();
        fence.open_standalone();
        assert_eq!(*terms.borrow_and_update(), Some(1));
        fence.close("test");
        assert_eq!(*terms.borrow_and_update(), None);
    }
}
