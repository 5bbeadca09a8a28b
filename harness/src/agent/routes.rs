//! Names and addresses of Services.
//!
//! A Service's name means the addresses of its ready pods, as a headless Service's does. Each site knows its own
//! Services under their cluster names, and the other site's under `SERVICE.NAMESPACE.svc.SITE.onewriter.test`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Pod, Service, ServiceSpec};

use super::status;
use crate::{
    failure::BoxError,
    site::{PerSite, Site},
};

/// Host names with their addresses. A name without addresses is known and unavailable.
pub type Names = BTreeMap<String, Vec<String>>;

/// Takes the names of a site.
pub trait Routes: fmt::Debug + Send + Sync + 'static {
    /// Replaces all names of a site.
    fn replace(&self, site: Site, names: Names) -> BoxFuture<'_, Result<(), BoxError>>;
}

/// What routes are made of, at one site.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// All Services.
    pub services: Vec<Arc<Service>>,
    /// All pods.
    pub pods: Vec<Arc<Pod>>,
}

/// All names that `site` knows.
pub fn names(site: Site, endpoints: &PerSite<Endpoints>) -> Names {
    let mut names = Names::new();
    for (host, addresses) in hosts(endpoints.at(site)) {
        for suffix in [".svc.cluster.local", ".svc", ""] {
            names.insert(format!("{host}{suffix}"), addresses.clone());
        }
    }
    let other = site.other();
    for (host, addresses) in hosts(endpoints.at(other)) {
        names.insert(format!("{host}.svc.{other}.onewriter.test"), addresses);
    }
    names
}

/// `SERVICE.NAMESPACE`, and `POD.SERVICE.NAMESPACE` for pods that have a name of their own in a Service.
fn hosts(endpoints: &Endpoints) -> Names {
    let mut hosts = Names::new();
    for service in &endpoints.services {
        let (Some(name), Some(namespace)) = (&service.metadata.name, &service.metadata.namespace) else {
            continue;
        };
        let host = format!("{name}.{namespace}");
        let members = endpoints.pods.iter().filter(|pod| pod.metadata.namespace.as_ref() == Some(namespace));
        let members = members.filter(|pod| is_member(service.spec.as_ref(), pod));
        let mut all = BTreeSet::new();
        for pod in members {
            let Some(address) = address(pod) else { continue };
            if let Some(own) = own_name(pod, name) {
                hosts.insert(format!("{own}.{host}"), vec![address.to_owned()]);
            }
            all.insert(address.to_owned());
        }
        hosts.insert(host, all.into_iter().collect());
    }
    hosts
}

/// Whether a Service sends to a pod: its labels fit, and it is ready, or readiness is not asked for.
fn is_member(service: Option<&ServiceSpec>, pod: &Pod) -> bool {
    let Some(selector) = service.and_then(|service| service.selector.as_ref()) else { return false };
    let labels = pod.metadata.labels.as_ref();
    let fits = !selector.is_empty()
        && selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value));
    let anyway = service.and_then(|service| service.publish_not_ready_addresses) == Some(true);
    let ready = status::is_ready(pod) && pod.metadata.deletion_timestamp.is_none();
    fits && !status::is_finished(pod) && (ready || anyway)
}

fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref()
}

fn own_name<'a>(pod: &'a Pod, service: &str) -> Option<&'a str> {
    let spec = pod.spec.as_ref()?;
    spec.hostname.as_deref().filter(|_| spec.subdomain.as_deref() == Some(service))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(more: &Value) -> Arc<Service> {
        let mut spec = json!({"selector": {"app": "garage"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let metadata = json!({"name": "garage", "namespace": "cell"});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
    }

    fn pod(name: &str, address: &str, ready: bool) -> Arc<Pod> {
        let ready = if ready { "True" } else { "False" };
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "cell", "labels": {"app": "garage", "more": "labels"}},
                "spec": {"hostname": name, "subdomain": "garage", "containers": []},
                "status": {"podIP": address, "conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap(),
        )
    }

    fn east(services: Vec<Arc<Service>>, pods: Vec<Arc<Pod>>) -> PerSite<Endpoints> {
        PerSite { east: Endpoints { services, pods }, west: Endpoints::default() }
    }

    #[test]
    fn a_service_has_its_cluster_names_at_home_and_one_name_at_the_other_site() {
        let both = east(
            vec![service(&json!({}))],
            vec![pod("garage-1", "127.20.1.2", true), pod("garage-0", "127.20.1.1", true)],
        );
        let home = names(Site::East, &both);
        let addresses = ["127.20.1.1", "127.20.1.2"];
        for name in ["garage.cell", "garage.cell.svc", "garage.cell.svc.cluster.local"] {
            assert_eq!(home[name], addresses);
        }
        assert_eq!(home["garage-1.garage.cell.svc.cluster.local"], ["127.20.1.2"]);
        let away = names(Site::West, &both);
        assert_eq!(away["garage.cell.svc.east.onewriter.test"], addresses);
        assert!(!away.contains_key("garage.cell.svc"));
    }

    #[test]
    fn a_service_without_ready_pods_is_known_and_has_no_address() {
        let both = east(vec![service(&json!({}))], vec![pod("garage-0", "127.20.1.1", false)]);
        assert_eq!(names(Site::East, &both)["garage.cell"], Vec::<String>::new());
    }

    #[test]
    fn pods_that_are_not_ready_are_published_where_the_service_says_so() {
        let service = service(&json!({"publishNotReadyAddresses": true}));
        let both = east(vec![service], vec![pod("garage-0", "127.20.1.1", false)]);
        assert_eq!(names(Site::East, &both)["garage.cell"], ["127.20.1.1"]);
    }

    #[test]
    fn pods_with_other_labels_or_on_their_way_out_are_left_out() {
        let mut leaving = (*pod("garage-0", "127.20.1.1", true)).clone();
        leaving.metadata.deletion_timestamp = serde_json::from_value(json!("2026-03-01T12:00:00Z")).unwrap();
        let mut stranger = (*pod("other", "127.20.1.3", true)).clone();
        stranger.metadata.labels = None;
        let both = east(vec![service(&json!({}))], vec![Arc::new(leaving), Arc::new(stranger)]);
        assert_eq!(names(Site::East, &both)["garage.cell"], Vec::<String>::new());
    }
}
