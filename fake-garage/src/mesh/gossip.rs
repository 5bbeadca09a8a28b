//! How layouts spread (Garage admin reference §9, "Gossip mechanics").

use std::sync::Arc;

use super::events::{Event, Message};
use super::node::{NodeIndex, NodeStatus, StatusReport};
use super::{Mesh, Process, Sender};
use crate::layout::{LayoutEvent, LayoutHistory, Merge, NodeId, SyncRound, Trackers};

impl Mesh {
    /// Exchanges status soon: something has changed.
    pub(super) fn hurry(&mut self, index: NodeIndex) {
        let eager = self.pacing.status_eager;
        let at = self.now + eager;
        let sooner = self.node(index).status_at.is_none_or(|planned| planned > at);
        self.node_mut(index).status_pause = eager;
        // Where eager is no faster than usual, the beat is kept.
        if sooner && eager < self.pacing.status {
            self.plan_status(index, at);
        }
    }

    pub(super) fn plan_status(&mut self, index: NodeIndex, at: super::Time) {
        self.node_mut(index).status_at = Some(at);
        self.schedule(at, index, Event::Status);
    }

    pub(super) fn status_round(&mut self, index: NodeIndex) {
        if self.node(index).status_at != Some(self.now) {
            return;
        }
        let report = Arc::new(self.status_report(index));
        for peer in self.peers_to_tell(index, &report) {
            self.send(index, peer, Message::Status(Arc::clone(&report)));
        }
        let pause = self.node(index).status_pause;
        let longest = self.pacing.status;
        self.node_mut(index).status_pause = (pause * 2).min(longest);
        self.plan_status(index, self.now + pause);
    }

    fn status_report(&self, index: NodeIndex) -> StatusReport {
        let node = self.node(index);
        StatusReport {
            status: NodeStatus { hostname: node.config.hostname.clone() },
            factor: node.config.factor,
            layout: node.gossip_digest(),
        }
    }

    /// Peers that a node is connected to, without those to which its status is no news where that may be left out.
    fn peers_to_tell(&self, index: NodeIndex, report: &StatusReport) -> Vec<NodeId> {
        if !self.pacing.skips_idle {
            return self.connected_peers(index);
        }
        let id = self.node(index).id;
        let knows = |to: NodeIndex| {
            let other = self.node(to);
            let status = other.peers.get(&id).and_then(|peer| peer.status.as_ref());
            status == Some(&report.status)
                && report.factor == other.config.factor
                && report.layout == other.gossip_digest()
        };
        let peers = self.node(index).peers.iter().filter(|(_, peer)| peer.is_up());
        let news = peers.filter(|(id, peer)| !self.undisturbed(index, **id, peer).is_some_and(knows));
        news.map(|(id, _)| *id).collect()
    }

    fn connected_peers(&self, index: NodeIndex) -> Vec<NodeId> {
        self.node(index).peers.iter().filter(|(_, peer)| peer.is_up()).map(|(id, _)| *id).collect()
    }

    pub(super) fn status_told(&mut self, node: NodeIndex, from: Sender, report: &StatusReport) {
        let id = self.node(from.index).id;
        if let Some(peer) = self.node_mut(node).peers.get_mut(&id)
            && peer.status.as_ref() != Some(&report.status)
        {
            peer.status = Some(report.status.clone());
        }
        let factor = self.node(node).config.factor;
        if report.factor > factor {
            return self.exit_over_factor(node, report.factor);
        }
        if report.factor < factor {
            return;
        }
        let own = self.node(node).gossip_digest();
        let other = &report.layout;
        if other.current > own.current || other.live != own.live || other.staging != own.staging {
            self.reply(node, from, Message::PullState);
        } else if other.trackers != own.trackers {
            self.reply(node, from, Message::PullTrackers);
        }
    }

    fn exit_over_factor(&mut self, node: NodeIndex, theirs: usize) {
        let ours = self.node(node).config.factor;
        self.log(
            node,
            format!(
                "ERROR a peer has replication factor {theirs}, this node has {ours}: this node cannot go on"
            ),
        );
        self.end(node, Process::Ended { code: Some(1) });
    }

    pub(super) fn state_asked(&mut self, node: NodeIndex, from: Sender) {
        let state = self.node(node).snapshot();
        self.reply(node, from, Message::State(state));
    }

    pub(super) fn trackers_asked(&mut self, node: NodeIndex, from: Sender) {
        let trackers = Arc::new(self.node(node).layout.history().trackers.clone());
        self.reply(node, from, Message::Trackers(trackers));
    }

    pub(super) fn state_told(&mut self, node: NodeIndex, state: Arc<LayoutHistory>) {
        if state.current().factor != self.node(node).config.factor {
            return;
        }
        let news = state.current().number > self.node(node).layout.current().number;
        let range = if !state.is_consistent() {
            // There is nothing to check.
            &(super::Time::ZERO..super::Time::ZERO)
        } else if news {
            &self.pacing.check_version
        } else {
            &self.pacing.check
        };
        let delay = self.random.duration(range);
        if delay.is_zero() {
            self.state_checked(node, &state);
        } else {
            self.schedule(self.now + delay, node, Event::Checked(state));
        }
    }

    pub(super) fn state_checked(&mut self, node: NodeIndex, state: &LayoutHistory) {
        let merge = self.node_mut(node).layout.merge(state);
        self.merged(node, merge);
    }

    pub(super) fn trackers_told(&mut self, node: NodeIndex, trackers: &Trackers) {
        let merge = self.node_mut(node).layout.merge_trackers(trackers);
        let changed = merge.changed;
        self.after_merge(node, merge);
        if changed {
            self.node_mut(node).save_layout();
            self.spread_trackers(node);
        }
    }

    /// Tells of a merge and, if it changed anything, saves the state and sends it on.
    pub(super) fn merged(&mut self, node: NodeIndex, merge: Merge) {
        let changed = merge.changed;
        self.after_merge(node, merge);
        if changed {
            self.node_mut(node).save_layout();
            self.hurry(node);
            let state = self.node(node).snapshot();
            for peer in self.connected_peers(node) {
                self.send(node, peer, Message::State(Arc::clone(&state)));
            }
        }
    }

    pub(super) fn after_merge(&mut self, node: NodeIndex, merge: Merge) {
        if merge.changed {
            self.node_mut(node).layout_changed();
        }
        for event in merge.events {
            if let LayoutEvent::Conflict { version, .. } | LayoutEvent::Dropped { version, .. } = event {
                self.log(node, format!(
                    "ERROR garage_rpc::layout::history: Inconsistent layout histories: different layout compositions \
                     for version {version}. Your cluster will be broken as long as this layout version is not \
                     replaced."
                ));
            }
            self.tell_layout(node, event);
        }
        if merge.changed {
            self.start_sync(node);
        }
    }

    pub(super) fn spread_trackers(&mut self, node: NodeIndex) {
        let trackers = Arc::new(self.node(node).layout.history().trackers.clone());
        for peer in self.connected_peers(node) {
            self.send(node, peer, Message::Trackers(Arc::clone(&trackers)));
        }
    }

    /// Starts a synchronisation round if the state asks for another than the last one. A round under way is not
    /// interrupted: the next one starts when it is through.
    pub(super) fn start_sync(&mut self, index: NodeIndex) {
        let node = self.node(index);
        let round = node.layout.sync_round();
        let asked = node.round != Some(round) && node.layout.history().is_consistent();
        if !asked || node.syncing {
            return;
        }
        let range = if node.layout.history().storage_nodes().len() < 2 {
            &self.pacing.sync_alone
        } else if node.round.is_none_or(|last| last.current != round.current) {
            &self.pacing.sync_version
        } else {
            &self.pacing.sync
        };
        let delay = self.random.duration(range);
        let node = self.node_mut(index);
        node.round = Some(round);
        node.syncing = true;
        self.schedule(self.now + delay, index, Event::Synchronised(round));
    }

    pub(super) fn synchronised(&mut self, node: NodeIndex, round: SyncRound) {
        self.node_mut(node).syncing = false;
        let merge = self.node_mut(node).layout.finish_sync(round);
        let changed = merge.changed;
        self.after_merge(node, merge);
        if changed {
            self.spread_trackers(node);
        }
        self.start_sync(node);
    }
}
