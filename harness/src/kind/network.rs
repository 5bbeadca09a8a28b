//! Routes and names between the sites.
//!
//! Pods of one site reach pods and Services of the other by addresses, through the nodes, which are on one network; and
//! Services by name, `SERVICE.NAMESPACE.svc.SITE.onewriter.test`, through the DNS of the site that is named. The names
//! are the same as on local control planes.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::cluster::Cluster;
use super::config::Networks;
use super::docker::Docker;
use super::error::KindError;
use super::names::Names;
use super::operator::available;
use crate::site::Site;

/// How long a cluster's DNS may take to answer.
const READY: Duration = Duration::from_mins(2);

/// The domain below which each site has one of its own.
pub const DOMAIN: &str = "onewriter.test";

/// Lets the nodes pass on what is for the other site.
pub async fn connect(
    docker: &Docker,
    names: &Names,
    east: &Cluster,
    west: &Cluster,
) -> Result<(), KindError> {
    for (from, to) in [(east, west), (west, east)] {
        let format = format!("{{{{(index .NetworkSettings.Networks \"{}\").IPAddress}}}}", names.network());
        let gateway = docker.run(&["inspect", "--format", &format, &to.node]).await?;
        for network in [&to.networks.pods, &to.networks.services] {
            docker.run(&["exec", &from.node, "ip", "route", "replace", network, "via", &gateway]).await?;
        }
    }
    Ok(())
}

/// Configures the DNS of `cluster`: it answers for its own site's domain as well, and asks the other site's for that one's.
///
/// One instance is enough, and nothing is cached: an answer that is seconds old would be another site's yesterday.
pub async fn name(cluster: &Cluster, other: &Networks) -> Result<(), KindError> {
    let failed = |error: kube::Error| KindError::at(cluster.site, "configure the cluster's DNS", error);
    let text = corefile(cluster.site, other);
    let parameters = PatchParams::default();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "kube-system");
    let map = json!({"data": {"Corefile": text}});
    maps.patch("coredns", &parameters, &Patch::Merge(map)).await.map_err(failed)?;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), "kube-system");
    // Another template makes another pod, which reads the new text.
    let deployment = json!({"spec": {
        "replicas": 1,
        "strategy": {"type": "Recreate", "rollingUpdate": null},
        "template": {"metadata": {"annotations": {"dev.onewriter/names": cluster.site.other().name()}}},
    }});
    deployments.patch("coredns", &parameters, &Patch::Merge(deployment)).await.map_err(failed)?;
    Ok(())
}

/// Waits until the DNS of `cluster` answers as it was configured.
pub async fn answers(cluster: &Cluster) -> Result<(), KindError> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), "kube-system");
    if available(deployments, "coredns", READY).await {
        return Ok(());
    }
    let limit = humantime::format_duration(READY);
    Err(KindError::at(cluster.site, "wait for the cluster's DNS", format!("it was not ready within {limit}")))
}

fn corefile(site: Site, other: &Networks) -> String {
    let (there, dns) = (site.other(), other.dns());
    format!(
        ".:53 {{
    errors
    health
    ready
    kubernetes cluster.local {site}.{DOMAIN} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 0
    }}
    forward . /etc/resolv.conf
    loadbalance
}}
{there}.{DOMAIN}:53 {{
    errors
    forward . {dns}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_answers_for_itself_and_asks_the_other_for_the_other() {
        let west = Networks { pods: "10.245.0.0/16".into(), services: "10.97.0.0/16".into() };
        let text = corefile(Site::East, &west);
        assert!(text.contains("kubernetes cluster.local east.onewriter.test "), "{text}");
        assert!(text.contains("west.onewriter.test:53 {\n    errors\n    forward . 10.97.0.10\n"), "{text}");
    }
}
