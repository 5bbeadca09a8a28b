//! Prometheus metrics of the operator.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::api::layout::LayoutSiteRole;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BlockedLabels {
    cluster: String,
    operation: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RoleLabels {
    cluster: String,
    role: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReconcileLabels {
    kind: String,
    result: String,
}

/// The metrics and their registry.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    blocked: Family<BlockedLabels, Counter>,
    role: Family<RoleLabels, Gauge>,
    reconciles: Family<ReconcileLabels, Counter>,
    leader: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Registers everything.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("garage_operator");
        let (blocked, role, reconciles, leader) =
            (Family::default(), Family::default(), Family::default(), Gauge::default());
        registry.register(
            "layout_write_blocked",
            "Layout writes refused because the site is a Follower",
            Family::clone(&blocked),
        );
        registry.register(
            "layout_site_role",
            "Layout role in force per GarageCluster that declares one: 1 for the role, 0 for the other",
            Family::clone(&role),
        );
        registry.register("reconciles", "Reconciles by kind and result", Family::clone(&reconciles));
        registry.register("leader", "1 while this process leads", Gauge::clone(&leader));
        Self { registry, blocked, role, reconciles, leader }
    }

    /// Counts a refused layout write.
    pub fn layout_write_blocked(&self, cluster: &str, operation: &str) {
        let labels = BlockedLabels { cluster: cluster.to_owned(), operation: operation.to_owned() };
        self.blocked.get_or_create(&labels).inc();
    }

    /// How often this write was refused.
    pub fn layout_writes_blocked(&self, cluster: &str, operation: &str) -> u64 {
        let labels = BlockedLabels { cluster: cluster.to_owned(), operation: operation.to_owned() };
        self.blocked.get(&labels).map_or(0, |counter| counter.get())
    }

    /// Shows the role in force of a cluster; `None` takes it off the page.
    pub fn site_role(&self, cluster: &str, role: Option<LayoutSiteRole>) {
        for candidate in [LayoutSiteRole::Writer, LayoutSiteRole::Follower] {
            let labels = RoleLabels { cluster: cluster.to_owned(), role: candidate.to_string() };
            match role {
                Some(role) => {
                    self.role.get_or_create(&labels).set(i64::from(role == candidate));
                }
                None => {
                    self.role.remove(&labels);
                }
            }
        }
    }

    /// Counts a reconcile.
    pub fn reconciled(&self, kind: &str, result: &str) {
        let labels = ReconcileLabels { kind: kind.to_owned(), result: result.to_owned() };
        self.reconciles.get_or_create(&labels).inc();
    }

    /// Says whether this process leads.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// The page for Prometheus, in its text format.
    pub fn page(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::Metrics;
    use crate::api::layout::LayoutSiteRole;

    #[test]
    fn the_page_names_refusals_and_roles_as_documented() {
        let metrics = Metrics::new();
        metrics.layout_write_blocked("ns/garage", "UpdateClusterLayout");
        metrics.site_role("ns/garage", Some(LayoutSiteRole::Follower));
        let page = metrics.page().unwrap();
        for line in [
            "garage_operator_layout_write_blocked_total{cluster=\"ns/garage\",operation=\"UpdateClusterLayout\"} 1",
            "garage_operator_layout_site_role{cluster=\"ns/garage\",role=\"Follower\"} 1",
            "garage_operator_layout_site_role{cluster=\"ns/garage\",role=\"Writer\"} 0",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
    }

    #[test]
    fn a_cluster_without_a_declared_role_is_not_on_the_page() {
        let metrics = Metrics::new();
        metrics.site_role("ns/garage", Some(LayoutSiteRole::Writer));
        metrics.site_role("ns/garage", None);
        assert!(!metrics.page().unwrap().contains("ns/garage"));
    }
}
