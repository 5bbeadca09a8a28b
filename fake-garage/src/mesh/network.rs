//! What is between nodes: partitions and slow links.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use super::{Mesh, NodeIndex, Random, Time};

/// How two nodes are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Packets vanish; connections stay open and nobody is told.
    Silent,
    /// Connections are refused and open ones torn.
    Reset,
}

/// How slow a link is, in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slowness {
    /// Extra time of each message.
    pub latency: Range<Duration>,
    /// How many packets of a thousand are lost, below 1000. Connections are TCP: nothing is lost for good, but a
    /// message comes later by the time until it is sent again.
    pub loss_per_mille: u64,
}

/// Time until a lost packet is sent again; doubled each time it is lost again.
const RETRANSMISSION: Duration = Duration::from_millis(200);

/// The longest time between two attempts to send a packet.
const LONGEST_RETRANSMISSION: Duration = Duration::from_mins(2);

impl Slowness {
    fn draw(&self, random: &mut Random) -> Duration {
        let mut delay = random.duration(&self.latency);
        let mut again = RETRANSMISSION;
        while self.loss_per_mille > 0 && random.chance(self.loss_per_mille.min(999)) {
            delay += again;
            again = (again * 2).min(LONGEST_RETRANSMISSION);
        }
        delay
    }
}

/// A fault on links, to be mended by this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkFault(u64);

/// Links from the first to the second node.
type Links = BTreeSet<(NodeIndex, NodeIndex)>;

#[derive(Debug)]
enum Fault {
    Cut(Links, Cut),
    Slow(Links, Slowness),
}

/// What is wrong between nodes.
#[derive(Debug, Default)]
pub(super) struct Network {
    last: u64,
    faults: BTreeMap<LinkFault, Fault>,
}

fn links(from: &[NodeIndex], to: &[NodeIndex]) -> Links {
    let pairs = from.iter().flat_map(|here| to.iter().map(move |there| (*here, *there)));
    pairs.filter(|(here, there)| here != there).collect()
}

impl Network {
    fn add(&mut self, fault: Fault) -> LinkFault {
        self.last += 1;
        self.faults.insert(LinkFault(self.last), fault);
        LinkFault(self.last)
    }

    fn between(&self, from: NodeIndex, to: NodeIndex) -> Option<Cut> {
        let cuts = self.faults.values().filter_map(|fault| match fault {
            Fault::Cut(links, cut) if links.contains(&(from, to)) => Some(*cut),
            _ => None,
        });
        // A reset tells more than silence does.
        cuts.max_by_key(|cut| *cut == Cut::Reset)
    }

    fn slownesses(&self, from: NodeIndex, to: NodeIndex) -> impl Iterator<Item = &Slowness> {
        self.faults.values().filter_map(move |fault| match fault {
            Fault::Slow(links, slowness) if links.contains(&(from, to)) => Some(slowness),
            _ => None,
        })
    }
}

impl Mesh {
    /// Cuts every link between a node of `one` side and one of the `other`, in both directions.
    pub fn partition(&mut self, one: &[NodeIndex], other: &[NodeIndex], cut: Cut) -> LinkFault {
        let mut cuts = links(one, other);
        cuts.extend(links(other, one));
        if cut == Cut::Reset {
            for (from, to) in &cuts {
                self.tear(*from, *to);
            }
        }
        self.network.add(Fault::Cut(cuts, cut))
    }

    /// Slows the links from the nodes of one group to those of another; the way back stays as it is.
    pub fn slow_down(&mut self, from: &[NodeIndex], to: &[NodeIndex], slowness: Slowness) -> LinkFault {
        self.network.add(Fault::Slow(links(from, to), slowness))
    }

    /// Mends one fault on links; one that is mended already is fine.
    pub fn mend(&mut self, fault: LinkFault) {
        self.network.faults.remove(&fault);
    }

    /// Mends all faults on links.
    pub fn heal(&mut self) {
        self.network.faults.clear();
    }

    /// How messages of a node to another are cut off, if they are.
    #[must_use]
    pub fn cut_between(&self, from: NodeIndex, to: NodeIndex) -> Option<Cut> {
        self.network.between(from, to)
    }

    /// Whether messages of a node to another are slow.
    #[must_use]
    pub fn is_slow(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.network.slownesses(from, to).next().is_some()
    }

    /// Whether messages between two nodes come and go as they always do.
    pub(super) fn is_clear(&self, one: NodeIndex, other: NodeIndex) -> bool {
        self.network.faults.is_empty()
            || [(one, other), (other, one)]
                .into_iter()
                .all(|(from, to)| self.cut_between(from, to).is_none() && !self.is_slow(from, to))
    }

    /// Extra time of a message on slow links; zero and nothing drawn where they are not.
    pub(super) fn extra_delay(&mut self, from: NodeIndex, to: NodeIndex) -> Time {
        let Self { network, random, .. } = self;
        network.slownesses(from, to).map(|slowness| slowness.draw(random)).sum()
    }

    /// Extra time until the answer to a message is there.
    pub fn extra_round_trip(&mut self, from: NodeIndex, to: NodeIndex) -> Time {
        self.extra_delay(from, to) + self.extra_delay(to, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_packet_is_sent_again_after_200_milliseconds_then_400_and_so_on() {
        let slowness = Slowness { loss_per_mille: 300, ..Slowness::default() };
        let mut random = Random::new(1);
        let mut delays: Vec<_> = (0..10_000).map(|_| slowness.draw(&mut random).as_millis()).collect();
        delays.sort_unstable();
        let share = |delay| delays.iter().filter(|other| **other == delay).count() / 100;
        assert!(
            (69..=71).contains(&share(0)) && (20..=22).contains(&share(200)),
            "{} {}",
            share(0),
            share(200)
        );
        assert!((5..=7).contains(&share(600)), "300 of a thousand of those again: {}", share(600));
    }

    #[test]
    fn latency_is_drawn_from_its_range() {
        let range = Duration::from_millis(10)..Duration::from_millis(30);
        let slowness = Slowness { latency: range.clone(), loss_per_mille: 0 };
        let mut random = Random::new(1);
        assert!((0..1_000).all(|_| range.contains(&slowness.draw(&mut random))));
    }
}
