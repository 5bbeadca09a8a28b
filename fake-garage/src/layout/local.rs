//! A node's own copy of the layout, and what can be done with it.

use std::sync::Arc;

use super::history::LayoutHistory;
use super::merge::{LayoutEvent, Merge};
use super::staging::{StageError, check_parameters, check_role};
use super::tracker::Trackers;
use super::version::{ComputeError, Version};
use super::{Change, ConsistencyMode, NodeId, Parameters, Register, Statistics};

/// A node's own copy of the layout.
///
/// Everything that changes it goes through a merge, calls on the node itself included: the call computes a state,
/// and the state is merged. That is why an apply can be answered and yet be dropped.
#[derive(Debug, Clone)]
pub struct LocalLayout {
    node: NodeId,
    mode: ConsistencyMode,
    history: LayoutHistory,
    held: Held,
}

/// Which of its own trackers a node does not raise for the time being.
///
/// What holds them in reality takes its time: acknowledgement waits for writes that run under an older version,
/// synchronisation for tables that are copied (Garage admin reference §9). A held tracker is still raised to the
/// oldest live version, and by others that skip the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// The node acknowledges nothing.
    pub ack: bool,
    /// Its tables do not become synchronised.
    pub sync: bool,
    /// It does not notice that everyone is synchronised.
    pub sync_ack: bool,
}

impl Held {
    /// Whether anything is held.
    #[must_use]
    pub const fn any(self) -> bool {
        self.ack || self.sync || self.sync_ack
    }

    /// What either holds.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            ack: self.ack || other.ack,
            sync: self.sync || other.sync,
            sync_ack: self.sync_ack || other.sync_ack,
        }
    }
}

/// Changes to stage in one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StageRequest {
    /// Role changes, in the order of the request.
    pub roles: Vec<(NodeId, Change)>,
    /// Parameters, if the request has any.
    pub parameters: Option<Parameters>,
}

/// A computed next version.
#[derive(Debug, Clone)]
pub struct Computed {
    /// The state that holds it, staging emptied. Merge it to make it count.
    pub history: LayoutHistory,
    /// Figures about it.
    pub statistics: Statistics,
}

/// An apply that is refused. The message is the one Garage sends, without its prefix (§6).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Not the local current version + 1.
    #[error("Invalid new layout version")]
    WrongVersion,
    /// The version cannot be computed.
    #[error(transparent)]
    Compute(#[from] ComputeError),
}

/// A request to skip dead nodes that is refused. The message is the one Garage sends, without its prefix (§6).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipError {
    /// Nothing drains.
    #[error("This command cannot be called when there is only one live cluster layout version")]
    NothingDrains,
    /// Not a version that can be skipped to.
    #[error("Invalid version, you may use the following version numbers: {}", numbers(*.first, *.last))]
    WrongVersion {
        /// Oldest version that could be named.
        first: u64,
        /// Newest version that could be named.
        last: u64,
    },
}

fn numbers(first: u64, last: u64) -> String {
    (first..=last).map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

/// Which trackers a request to skip dead nodes raised.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// The state with raised trackers. Merge it to make it count.
    pub history: LayoutHistory,
    /// Nodes whose acknowledgement was raised.
    pub ack: Vec<NodeId>,
    /// Nodes whose synchronisation was raised.
    pub sync: Vec<NodeId>,
}

/// What a table synchronisation round is about. A new round starts when any of it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncRound {
    /// The current version.
    pub current: u64,
    /// The version that will be synchronised: acknowledged by everyone.
    pub min_ack: u64,
    /// The oldest live version.
    pub oldest: u64,
}

impl LocalLayout {
    /// The layout of `node` as it starts with `history`, read from its file or fresh.
    #[must_use]
    pub fn start(node: NodeId, mode: ConsistencyMode, history: LayoutHistory) -> Self {
        let mut layout = Self { node, mode, history, held: Held::default() };
        if layout.history.is_consistent() {
            layout.refresh();
        }
        layout
    }

    /// The state.
    #[must_use]
    pub const fn history(&self) -> &LayoutHistory {
        &self.history
    }

    /// The current version.
    #[must_use]
    pub fn current(&self) -> &Arc<Version> {
        self.history.current()
    }

    /// Which own trackers are held.
    #[must_use]
    pub const fn held(&self) -> Held {
        self.held
    }

    /// Holds these trackers from now on and no others; those let go catch up at once, except for synchronisation,
    /// which needs a round.
    pub fn hold(&mut self, held: Held) -> Merge {
        self.held = held;
        let before = self.history.trackers.clone();
        let events = if self.history.is_consistent() { self.refresh() } else { Vec::new() };
        Merge { changed: self.history.trackers != before, events }
    }

    /// Takes over another state.
    pub fn merge(&mut self, incoming: &LayoutHistory) -> Merge {
        let mut merge = self.history.merge(incoming);
        if merge.changed {
            merge.events.extend(self.refresh());
        }
        merge
    }

    /// Takes over another node's trackers.
    pub fn merge_trackers(&mut self, incoming: &Trackers) -> Merge {
        let changed = self.history.merge_trackers(incoming);
        Merge { changed, events: if changed { self.refresh() } else { Vec::new() } }
    }

    /// Takes over a state that a call on this node computed, telling an own version from a foreign one.
    pub fn adopt(&mut self, own: &LayoutHistory) -> Merge {
        let mut merge = self.merge(own);
        for event in &mut merge.events {
            *event = match *event {
                LayoutEvent::Merged { from, to } => LayoutEvent::Applied { from, to },
                LayoutEvent::Conflict { version, other } if version == own.current().number => {
                    LayoutEvent::Dropped { version, other }
                }
                other => other,
            };
        }
        merge
    }

    /// The state after staging `request` at `now`: all of it or, with an error, nothing.
    ///
    /// Each entry is written later than what it replaces, staged or applied. Of two entries for one node in one
    /// request, which have the same time, the larger wins.
    pub fn stage(&self, request: &StageRequest, now: u64) -> Result<LayoutHistory, StageError> {
        for (_, change) in &request.roles {
            change.as_ref().map_or(Ok(()), check_role)?;
        }
        let mut history = self.history.clone();
        for (id, change) in &request.roles {
            let applied = self.current().roles.get(id).map_or(0, |role| role.at);
            let staged = self.history.staging.roles.get(id).map_or(0, |change| change.at);
            let at = Register::new(applied.max(staged), ()).next_time(now);
            history.staging.stage_role(*id, Register::new(at, change.clone()));
        }
        if let Some(parameters) = request.parameters {
            check_parameters(parameters, self.current().factor)?;
            let at = history.staging.parameters.next_time(now);
            history.staging.parameters = Register::new(at, parameters);
        }
        Ok(history)
    }

    /// What applying would give, without applying.
    pub fn preview(&self, now: u64) -> Result<Computed, ComputeError> {
        let staging = &self.history.staging;
        let version = self.current().next(staging)?;
        let statistics = Statistics::of(&version, self.current());
        let mut history = self.history.clone();
        history.live.push(Arc::new(version));
        // The parameters stay staged; being the applied ones, they are not shown.
        history.staging = staging.emptied(now, staging.parameters.clone());
        Ok(Computed { history, statistics })
    }

    /// The state after applying what is staged as version `number` at `now`.
    pub fn apply(&self, number: u64, now: u64) -> Result<Computed, ApplyError> {
        if number != self.current().number.saturating_add(1) {
            return Err(ApplyError::WrongVersion);
        }
        Ok(self.preview(now)?)
    }

    /// The state after discarding what is staged at `now`. Moves the staging area's time even if nothing was staged.
    #[must_use]
    pub fn revert(&self, now: u64) -> LayoutHistory {
        let mut history = self.history.clone();
        history.staging = self.history.staging.emptied(now, Register::new(now, self.current().parameters));
        history
    }

    /// The state after no longer waiting for nodes that are not up, up to version `number`.
    ///
    /// With `allow_missing_data` nobody is waited for, and synchronisation counts as done too.
    pub fn skip_dead_nodes(
        &self,
        number: u64,
        allow_missing_data: bool,
        is_up: impl Fn(NodeId) -> bool,
    ) -> Result<Skipped, SkipError> {
        let (oldest, current) = (self.history.oldest(), self.current().number);
        if self.history.live.len() == 1 {
            return Err(SkipError::NothingDrains);
        }
        if number <= oldest || number > current {
            return Err(SkipError::WrongVersion { first: oldest + 1, last: current });
        }
        let mut skipped = Skipped { history: self.history.clone(), ack: Vec::new(), sync: Vec::new() };
        for id in self.history.nodes() {
            let trackers = &mut skipped.history.trackers;
            if (allow_missing_data || !is_up(id)) && trackers.ack.raise(id, number) {
                skipped.ack.push(id);
            }
            if allow_missing_data && trackers.sync.raise(id, number) {
                skipped.sync.push(id);
            }
        }
        Ok(skipped)
    }

    /// The synchronisation round that the present state asks for.
    #[must_use]
    pub fn sync_round(&self) -> SyncRound {
        SyncRound {
            current: self.current().number,
            min_ack: self.history.min_ack(),
            oldest: self.history.oldest(),
        }
    }

    /// This node has finished synchronising its tables for `round`.
    ///
    /// Only its own synchronisation moves: what everyone has synchronised to is looked at again with the next merged
    /// change, which is why a node without peers keeps its old version (capture 14).
    pub fn finish_sync(&mut self, round: SyncRound) -> Merge {
        let changed = !self.held.sync && self.history.trackers.sync.raise(self.node, round.min_ack);
        Merge { changed, events: if changed { self.history.retire(self.mode) } else { Vec::new() } }
    }

    /// Brings this node's own trackers up to date, and retires what they release.
    fn refresh(&mut self) -> Vec<LayoutEvent> {
        let mut events = self.history.retire(self.mode);
        let (current, oldest) = (self.current().number, self.history.oldest());
        if !self.held.ack {
            self.history.trackers.ack.raise(self.node, current);
        }
        self.history.trackers.sync.raise(self.node, oldest);
        if !self.held.sync_ack {
            let synchronised = self.history.synchronised();
            self.history.trackers.sync_ack.raise(self.node, synchronised);
        }
        events.extend(self.history.retire(self.mode));
        events
    }
}
