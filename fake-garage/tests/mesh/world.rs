//! A mesh of four nodes, two at each site, and time that passes when told to.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fake_garage::layout::{ApplyError, ConsistencyMode, LayoutEvent, NodeId, Role, StageRequest};
use fake_garage::mesh::connect::Nowhere;
use fake_garage::mesh::{Mesh, NodeConfig, NodeIndex, Output, Pacing, Target};

pub(crate) const GB: u64 = 1_000_000_000;

pub(crate) struct World {
    pub(crate) mesh: Mesh,
    pub(crate) nodes: Vec<NodeIndex>,
    /// Everything that was told, in order.
    pub(crate) told: Vec<Output>,
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn config(place: u8, factor: usize) -> NodeConfig {
    let site = if place < 2 { "east" } else { "west" };
    NodeConfig {
        name: format!("{site}/ns/garage-{place}"),
        site: site.to_owned(),
        address: IpAddr::from(Ipv4Addr::new(127, 0, 1, place + 1)),
        hostname: format!("garage-{place}"),
        region: "garage".to_owned(),
        factor,
        mode: ConsistencyMode::Consistent,
        rpc_secret: "same".to_owned(),
        clock_offset: 0,
    }
}

pub(crate) fn id(place: u8) -> NodeId {
    NodeId::new([place + 1; 32])
}

impl World {
    /// Four nodes that have just started and know nobody.
    pub(crate) fn fresh(pacing: Pacing, seed: u64) -> Self {
        let mut mesh = Mesh::new(pacing, 1_000_000, seed);
        let nodes = (0..4).map(|place| mesh.add(id(place), config(place, 2))).collect();
        Self { mesh, nodes, told: Vec::new() }
    }

    /// Four nodes that know each other.
    pub(crate) fn connected(pacing: Pacing, seed: u64) -> Self {
        let mut world = Self::fresh(pacing, seed);
        world.pass(ms(300));
        world.connect_all();
        let settled = world.mesh.pacing().status * 2 + ms(1000);
        world.pass(settled);
        world
    }

    /// Four nodes with version 1, which has settled.
    pub(crate) fn with_layout(pacing: Pacing, seed: u64) -> Self {
        let mut world = Self::connected(pacing, seed);
        let roles: Vec<_> = (0..4).map(|place| (place, 100)).collect();
        world.stage(0, &roles);
        world.apply(0, 1).unwrap();
        world.pass(ms(3000));
        world.told.clear();
        world
    }

    /// The first node connects to the others.
    pub(crate) fn connect_all(&mut self) {
        let targets: Vec<_> = (1..4).map(target).collect();
        self.mesh.connect(self.nodes[0], &targets, &Nowhere);
        self.collect();
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        let to = self.mesh.now() + time;
        self.mesh.advance(to);
        self.collect();
    }

    fn collect(&mut self) {
        let outputs = self.mesh.take_outputs();
        self.told.extend(outputs);
    }

    /// Lets time pass until it is so, and tells how long that took.
    pub(crate) fn wait_until(&mut self, at_most: Duration, holds: impl Fn(&Mesh) -> bool) -> Duration {
        let begin = self.mesh.now();
        while !holds(&self.mesh) {
            assert!(self.mesh.now() < begin + at_most, "it did not come to that within {at_most:?}");
            self.pass(ms(5));
        }
        self.mesh.now().saturating_sub(begin)
    }

    pub(crate) fn stage(&mut self, at: usize, roles: &[(u8, u64)]) {
        let role = |(place, gigabytes): &(u8, u64)| {
            let zone = config(*place, 2).site;
            (id(*place), Some(Role { zone, capacity: Some(gigabytes * GB), tags: vec![] }))
        };
        let request = StageRequest { roles: roles.iter().map(role).collect(), parameters: None };
        self.mesh.stage(self.nodes[at], &request).unwrap();
        self.collect();
    }

    pub(crate) fn apply(&mut self, at: usize, version: u64) -> Result<u64, ApplyError> {
        let ticket = self.mesh.apply(self.nodes[at], version);
        self.collect();
        ticket
    }

    pub(crate) fn version(&self, at: usize) -> u64 {
        self.mesh.node(self.nodes[at]).layout().current().number
    }

    pub(crate) fn capacity(&self, at: usize, of: u8) -> Option<u64> {
        self.mesh.node(self.nodes[at]).layout().current().role(id(of))?.capacity.map(|bytes| bytes / GB)
    }

    pub(crate) fn sees_up(&self, at: usize, of: u8) -> bool {
        sees_up(&self.mesh, self.nodes[at], of)
    }

    pub(crate) fn events(&self, at: usize) -> Vec<LayoutEvent> {
        let of_node = |output: &Output| match output {
            Output::Layout { node, event, .. } if *node == self.nodes[at] => Some(*event),
            _ => None,
        };
        self.told.iter().filter_map(of_node).collect()
    }
}

pub(crate) fn sees_up(mesh: &Mesh, at: NodeIndex, of: u8) -> bool {
    mesh.node(at).sees_up(id(of))
}

/// A request that removes a node.
pub(crate) fn removal(place: u8) -> StageRequest {
    StageRequest { roles: vec![(id(place), None)], parameters: None }
}

pub(crate) fn target(place: u8) -> Target {
    Target::Node { id: id(place), address: config(place, 2).rpc_address() }
}
