//! A small federation that does everything right.

use onewriter_history::Moment;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::example::{Example, ExampleCall, call, layout, removal, role};
use super::Events;
use crate::garage::facts;
use crate::garage::role::Role::{Follower, Writer};

const OPERATOR: &str = "system:serviceaccount:garage-operator-system:garage-operator";

/// What the federation does.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Capacity of the follower's node.
    capacity: u64,
    /// Capacities that the writer's own node gets, one after the other, each because somebody asks.
    growing: Vec<u64>,
    /// Reads between the writes.
    reads: usize,
    /// Whether the sites change roles at last.
    switch: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self { capacity: 10, growing: vec![20, 30], reads: 1, switch: true }
    }
}

pub(super) fn federation() -> impl Strategy<Value = Events> {
    let plan = (1_u64..9, proptest::collection::vec(10_u64..90, 2..4), 1_usize..3, any::<bool>());
    plan.prop_map(|(capacity, growing, reads, switch)| history(&Plan { capacity, growing, reads, switch }))
}

pub(super) fn history(plan: &Plan) -> Events {
    let mut made = Made { example: Example::new(), version: 0, generation: 0 };
    made.opens();
    made.assigns("n-west", "west", plan.capacity);
    for capacity in &plan.growing {
        made.reads(plan.reads);
        made.declares("east", "n-east", "east", *capacity);
        made.assigns("n-east", "east", *capacity);
    }
    made.looks(plan);
    made.is_annotated();
    made.refuses();
    made.is_quiet(plan.reads);
    made.retires();
    if plan.switch {
        made.switches();
    }
    let start = Moment::now();
    let at = |index: u64| Moment { mono_ns: mono_ns(index), ..start };
    (0..).zip(made.example.into_events()).map(|(index, event)| (at(index), event)).collect()
}

/// When the event at `index` happens.
fn mono_ns(index: u64) -> u64 {
    1_000_000_000 + index * 100_000_000
}

struct Made {
    example: Example,
    version: u64,
    generation: u64,
}

impl Made {
    fn add(&mut self, more: impl FnOnce(Example) -> Example) {
        self.example = more(std::mem::take(&mut self.example));
    }

    fn call(&mut self, call: ExampleCall) {
        let version = self.version;
        self.add(|example| example.call(call.version(version)));
    }

    fn opens(&mut self) {
        self.add(|example| {
            let example = example.records().up("east").up("west").step("open the cell");
            let example = example.roles(Writer, Follower);
            example
                .expect(&["east"], &["west"])
                .node("east", "n-east", "started")
                .node("west", "n-west", "started")
        });
        self.cluster("east", "Writer", "Writer", &[]);
        self.cluster("west", "Follower", "Follower", &[]);
    }

    fn cluster(&mut self, site: &str, declared: &str, enforced: &str, operations: &[&str]) {
        self.generation += 1;
        let fact = json!({"site": site, "name": "garage", "by": "admin", "generation": self.generation,
            "resourceVersion": self.generation.to_string(), "declared": declared, "enforced": enforced,
            "observedGeneration": self.generation, "operations": operations});
        self.add(|example| example.fact(facts::CLUSTER, &fact));
    }

    fn declares(&mut self, site: &str, node: &str, zone: &str, capacity: u64) {
        self.generation += 1;
        let fact = json!({"site": site, "name": node, "by": "admin", "generation": self.generation,
            "resourceVersion": self.generation.to_string(), "nodeId": node, "external": zone != site,
            "zone": zone, "capacity": capacity});
        self.add(|example| example.fact(facts::NODE, &fact));
    }

    fn assigns(&mut self, node: &str, zone: &str, capacity: u64) {
        if zone == "west" {
            self.declares("east", node, zone, capacity);
        }
        self.writes("east", role(node, zone, capacity));
    }

    /// A site stages a change at the east node and applies it there; the west node takes it over.
    fn writes(&mut self, site: &str, change: Value) {
        self.call(call(site).node("n-east").get("/v2/GetClusterLayout"));
        self.call(call(site).node("n-east").update(&[change]));
        let (before, after) = (self.version, self.version + 1);
        let apply = call(site).node("n-east").write("/v2/ApplyClusterLayout").versions(before, after);
        self.add(|example| {
            let example = example.call_with(apply, &layout("n-east", "applied", before, after));
            example.layout(&layout("n-west", "merged", before, after))
        });
        self.version = after;
    }

    fn reads(&mut self, times: usize) {
        for _ in 0..times {
            self.call(call("west").node("n-west").get("/v2/GetClusterStatus"));
            self.call(call("west").node("n-west").get("/v2/GetClusterLayout"));
            self.call(call("west").node("n-west").post("/v2/ConnectClusterNodes"));
        }
    }

    fn looks(&mut self, plan: &Plan) {
        let east = plan.growing.last();
        let seen = json!({"node": "n-west", "version": self.version, "roles": [
            {"id": "n-west", "zone": "west", "capacity": plan.capacity},
            {"id": "n-east", "zone": "east", "capacity": east}]});
        self.add(|example| example.fact(facts::LAYOUT_SEEN, &seen));
    }

    fn is_annotated(&mut self) {
        self.cluster("west", "Follower", "Follower", &["revert-layout"]);
        self.cluster("west", "Follower", "Follower", &[]);
    }

    fn is_quiet(&mut self, reads: usize) {
        self.add(|example| example.fact(facts::QUIET, &json!({"on": true})));
        self.reads(reads);
        self.add(|example| example.fact(facts::QUIET, &json!({"on": false})));
    }

    /// The follower's operator refuses to stage, and counts that.
    fn refuses(&mut self) {
        self.add(|example| example.refused("west").refused("west"));
        let since_ns = mono_ns(self.example.len());
        let metric = json!({"site": "west", "sinceNs": since_ns, "roles": {"garage": ["Follower"]},
            "blocked": {"garage": {"UpdateClusterLayout": 2}}});
        self.add(|example| example.fact(facts::METRIC, &metric));
    }

    /// The follower's node is deleted at both sites; it goes after its role, and after the last version with that.
    fn retires(&mut self) {
        self.deletes("west", false);
        self.deletes("east", false);
        self.writes("east", removal("n-west"));
        let old = self.version - 1;
        self.add(|example| example.layout(&layout("n-east", "retired", old, old)));
        self.deletes("east", true);
        self.add(|example| example.node("west", "n-west", "stopped"));
        self.deletes("west", true);
    }

    fn deletes(&mut self, site: &str, gone: bool) {
        let by = if gone { OPERATOR } else { "admin" };
        let fact = json!({"site": site, "name": "n-west", "by": by, "generation": 99, "nodeId": "n-west",
            "external": site == "east", "deleting": true, "gone": gone});
        self.add(|example| example.fact(facts::NODE, &fact));
    }

    fn switches(&mut self) {
        self.add(|example| example.roles(Follower, Follower));
        self.cluster("east", "Follower", "Follower", &[]);
        self.add(|example| example.roles(Follower, Writer));
        self.cluster("west", "Writer", "Writer", &[]);
        self.declares("west", "n-east", "east", 5);
        self.writes("west", role("n-east", "east", 5));
    }
}
