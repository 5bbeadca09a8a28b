//! `/metrics` (Garage admin reference §13).

use std::collections::BTreeMap;

use super::health::{Health, HealthStatus};
use super::node_info::RUST_VERSION;
use super::profile::Profile;
use super::status::FreeSpace;
use crate::mesh::Node;

/// Requests that a process has served since it started.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    requests: BTreeMap<String, u64>,
    errors: BTreeMap<(String, u16), u64>,
}

impl Counters {
    pub(super) fn requests(&mut self, path: &str) {
        // Most paths have been counted before: no copy for them.
        match self.requests.get_mut(path) {
            Some(count) => *count += 1,
            None => drop(self.requests.insert(path.to_owned(), 1)),
        }
    }

    pub(super) fn errors(&mut self, path: &str, status: u16) {
        *self.errors.entry((path.to_owned(), status)).or_default() += 1;
    }
}

/// Prometheus text, built family by family.
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str, samples: &[(String, String)]) {
        if samples.is_empty() {
            return;
        }
        self.line(&format!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        for (labels, value) in samples {
            self.line(&format!("{name}{labels} {value}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Copy + ToString) {
        self.family(name, "gauge", help, &[(String::new(), value.to_string())]);
    }
}

/// The metrics of `node`.
#[must_use]
pub fn render(node: &Node, counters: Option<&Counters>, profile: Profile) -> String {
    let mut text = Exposition(String::new());
    if let Some(counters) = counters {
        calls(&mut text, counters);
    }
    cluster(&mut text, &Health::of(node));
    layout_nodes(&mut text, node);
    let build = format!("{{rustversion=\"{RUST_VERSION}\",version=\"{}\"}}", profile.version());
    text.family("garage_build_info", "gauge", "Garage build info", &[(build, "1".to_owned())]);
    text.gauge("garage_replication_factor", "Garage replication factor setting", node.config().factor);
    let disk = serde_json::to_value(FreeSpace::DISK).unwrap_or_default();
    for (name, key) in [("garage_local_disk_avail", "available"), ("garage_local_disk_total", "total")] {
        let volumes =
            ["data", "metadata"].map(|volume| (format!("{{volume=\"{volume}\"}}"), disk[key].to_string()));
        text.family(name, "gauge", "Garage available/total disk space on each node", &volumes);
    }
    text.0
}

fn calls(text: &mut Exposition, counters: &Counters) {
    let errors: Vec<_> = counters
        .errors
        .iter()
        .map(|((path, status), count)| {
            (format!("{{api_endpoint={path:?},status_code=\"{status}\"}}"), count.to_string())
        })
        .collect();
    let help = "Number of API calls to the various Admin API endpoints that resulted in errors";
    text.family("api_admin_error_counter", "counter", help, &errors);
    let requests: Vec<_> = counters
        .requests
        .iter()
        .map(|(path, count)| (format!("{{api_endpoint={path:?}}}"), count.to_string()))
        .collect();
    let help = "Number of API calls to the various Admin API endpoints";
    text.family("api_admin_request_counter", "counter", help, &requests);
}

fn cluster(text: &mut Exposition, health: &Health) {
    let available = u8::from(health.status != HealthStatus::Unavailable);
    let healthy = u8::from(health.status == HealthStatus::Healthy);
    text.gauge(
        "cluster_available",
        "Whether all requests can be served, even if some cluster nodes are disconnected",
        available,
    );
    text.gauge("cluster_connected_nodes", "Number of nodes connected", health.connected_nodes);
    text.gauge("cluster_healthy", "Whether all storage nodes are connected", healthy);
    text.gauge("cluster_known_nodes", "Number of nodes already seen once in the cluster", health.known_nodes);
    text.gauge("cluster_partitions", "Number of partitions in the layout", health.partitions);
    text.gauge(
        "cluster_partitions_all_ok",
        "Number of partitions for which all storage nodes are connected",
        health.partitions_all_ok,
    );
    text.gauge(
        "cluster_partitions_quorum",
        "Number of partitions for which a quorum of storage nodes is connected",
        health.partitions_quorum,
    );
    text.gauge(
        "cluster_storage_nodes",
        "Number of storage nodes declared in the current layout",
        health.storage_nodes,
    );
    text.gauge(
        "cluster_storage_nodes_ok",
        "Number of storage nodes currently connected",
        health.storage_nodes_up,
    );
}

fn layout_nodes(text: &mut Exposition, node: &Node) {
    let connected = node.layout().current().roles.iter().map(|(id, role)| {
        let capacity = role.value.capacity.map_or_else(
            || "role_gateway=\"1\"".to_owned(),
            |capacity| format!("role_capacity=\"{capacity}\",role_gateway=\"0\""),
        );
        let labels = format!("{{id=\"{}\",{capacity},role_zone={:?}}}", id.short(), role.value.zone);
        (labels, u8::from(node.sees_up(*id)).to_string())
    });
    let help = "Connection status for nodes in the cluster layout";
    text.family("cluster_layout_node_connected", "gauge", help, &connected.collect::<Vec<_>>());
}
