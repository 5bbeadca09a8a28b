//! What an operator's metrics say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The metrics of a site's operator about the GarageClusters of one namespace (design record, "Status": metrics).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricFact {
    /// Site of the operator.
    pub site: String,
    /// When it was asked, in nanoseconds on the monotonic clock; the event itself is of the moment of its answer.
    pub since_ns: u64,
    /// `garage_operator_layout_write_blocked_total`, by cluster and operation.
    pub blocked: BTreeMap<String, BTreeMap<String, u64>>,
    /// The roles for which `garage_operator_layout_site_role` is 1, by cluster.
    pub roles: BTreeMap<String, Vec<String>>,
    /// Why it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

const BLOCKED: &str = "garage_operator_layout_write_blocked_total";
const ROLE: &str = "garage_operator_layout_site_role";

impl MetricFact {
    /// Reads a page in Prometheus's text format, as far as it is about clusters of `namespace`.
    #[must_use]
    pub fn of_page(site: &str, since_ns: u64, namespace: &str, page: &str) -> Self {
        let mut fact = Self { site: site.to_owned(), since_ns, ..Self::default() };
        for sample in page.lines().filter_map(Sample::of) {
            let Some(cluster) = sample.cluster_in(namespace).map(str::to_owned) else { continue };
            match (sample.name, sample.label("operation"), sample.label("role")) {
                (BLOCKED, Some(operation), _) => {
                    let of_cluster = fact.blocked.entry(cluster).or_default();
                    *of_cluster.entry(operation.to_owned()).or_default() += sample.value;
                }
                (ROLE, _, Some(role)) if sample.value > 0 => {
                    fact.roles.entry(cluster).or_default().push(role.to_owned());
                }
                _ => {}
            }
        }
        fact
    }
}

/// One line of a page: name, labels, value.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, &'a str)>,
    value: u64,
}

impl<'a> Sample<'a> {
    /// None for comments, and for what is no whole number or has no labels. Names of clusters hold no character that the
    /// format would escape.
    fn of(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_once('{')?;
        let (labels, value) = rest.rsplit_once('}')?;
        let number = value.split_whitespace().next()?;
        let value = number.strip_suffix(".0").unwrap_or(number).parse().ok()?;
        let label = |label: &'a str| {
            let (key, value) = label.split_once('=')?;
            Some((key.trim(), value.trim_matches('"')))
        };
        Some(Self { name: name.trim(), labels: labels.split(',').filter_map(label).collect(), value })
    }

    fn label(&self, key: &str) -> Option<&'a str> {
        self.labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn cluster_in(&self, namespace: &str) -> Option<&'a str> {
        self.label("cluster")?.strip_prefix(namespace)?.strip_prefix('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_the_refusals_and_roles_of_one_namespace() {
        let page = r#"# TYPE garage_operator_layout_write_blocked counter
garage_operator_layout_write_blocked_total{cluster="ns/garage",operation="UpdateClusterLayout"} 3
garage_operator_layout_write_blocked_total{cluster="ns2/garage",operation="UpdateClusterLayout"} 9
garage_operator_layout_site_role{cluster="ns/garage",role="Writer"} 0
garage_operator_layout_site_role{cluster="ns/garage",role="Follower"} 1.0
garage_operator_leader 1
"#;
        let fact = MetricFact::of_page("east", 7, "ns", page);
        assert_eq!(fact.blocked["garage"]["UpdateClusterLayout"], 3);
        assert_eq!(fact.roles["garage"], ["Follower"]);
        assert_eq!((fact.blocked.len(), fact.roles.len(), fact.since_ns), (1, 1, 7));
    }
}
