//! Groups, labels, annotations, finalizers and object names (hub contract, section 1).

use std::collections::BTreeMap;

/// API group of what users declare.
pub const CONTROLLER_GROUP: &str = "controller.kubeslice.io";
/// API group of what workers consume.
pub const WORKER_GROUP: &str = "worker.kubeslice.io";

/// The namespace that a hub is in where nothing says otherwise (design record: last resort).
pub const DEFAULT_HUB_NAMESPACE: &str = "kubeslice-controller";
/// The namespace of workers, which holds nothing of a hub.
pub const WORKER_NAMESPACE: &str = "kubeslice-system";
/// Name of the Lease on each hub.
pub const LEASE_NAME: &str = "kubeslice-controller-ha";
/// Secret in the hub's own namespace with a kubeconfig for the Active (design record, decision 2).
pub const ACTIVE_HUB_SECRET: &str = "active-hub-kubeconfig";
/// Key of the kubeconfig in that Secret.
pub const ACTIVE_HUB_KEY: &str = "kubeconfig";
/// The endpoint that a hub has until somebody configures one.
pub const PLACEHOLDER_ENDPOINT: &str = "https://controller.cisco.com:6443/";

/// Label of everything that a hub made.
pub const OWNER_LABEL: &str = "kubeslice-resource-owner";
/// Its value.
pub const OWNER: &str = "kubeslice-controller";
/// Label that names the owner as `Kind-name`.
pub const RESOURCE_NAME_LABEL: &str = "kubeslice-controller-resource-name";
/// Label of a Project: its namespace.
pub const PROJECT_NAMESPACE_LABEL: &str = "kubeslice-project-namespace";
/// Label of worker kinds: the cluster that consumes it.
pub const WORKER_CLUSTER_LABEL: &str = "worker-cluster";
/// Label of worker kinds: the cluster at the other end.
pub const REMOTE_CLUSTER_LABEL: &str = "remote-cluster";
/// Label of worker kinds: the slice.
pub const SLICE_LABEL: &str = "original-slice-name";
/// Label of worker kinds: the project namespace.
pub const WORKER_PROJECT_LABEL: &str = "project-namespace";
/// Label of worker kinds: who manages it.
pub const MANAGER_LABEL: &str = "kubeslice-manager";
/// Label of service kinds: the service.
pub const SERVICE_NAME_LABEL: &str = "service-name";
/// Label of service kinds: its namespace.
pub const SERVICE_NAMESPACE_LABEL: &str = "service-namespace";
/// Label of what uses a standard quality of service profile.
pub const QOS_LABEL: &str = "standard-qos-profile";

/// Annotation of accounts and RoleBindings: the kind of access.
pub const ACCESS_ANNOTATION: &str = "controller.kubeslice.io/access-type";
/// Annotation by which one object makes another one reconcile.
pub const POKE_ANNOTATION: &str = "updatedTimestamp";
/// Annotation of every copy that a mirror made: the uid of its original.
pub const MIRRORED_ANNOTATION: &str = "controller.kubeslice.io/mirrored-from";
/// Annotation of a copy whose original was being deleted: since when.
pub const DELETE_INTENT_ANNOTATION: &str = "controller.kubeslice.io/delete-requested";
/// Annotation of a hub's Lease that was acquired by a promotion: the uid of the Active's Lease.
pub const PROMOTED_OVER_ANNOTATION: &str = "controller.kubeslice.io/promoted-over";
/// Annotation of a token Secret: its account.
pub const TOKEN_ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";
/// Annotation of a token Secret: the uid of its account.
pub const TOKEN_ACCOUNT_UID_ANNOTATION: &str = "kubernetes.io/service-account.uid";
/// Type of a token Secret.
pub const TOKEN_SECRET_TYPE: &str = "kubernetes.io/service-account-token";

/// Finalizer of a worker on its `Cluster`.
pub const DEREGISTER_FINALIZER: &str = "worker.kubeslice.io/cluster-deregister-finalizer";

/// Longest value of a label.
const LABEL_LIMIT: usize = 63;

/// The ownership pair: what a hub made for the object `Kind-name`. A value that is too long for a label goes on in
/// `…-1`, `…-2`.
pub fn owned_by(kind: &str, name: &str) -> BTreeMap<String, String> {
    let value = format!("{kind}-{name}");
    let mut labels = BTreeMap::from([(OWNER_LABEL.to_owned(), OWNER.to_owned())]);
    let mut characters = value.chars().peekable();
    let mut part = 0;
    while characters.peek().is_some() {
        let piece: String = characters.by_ref().take(LABEL_LIMIT).collect();
        let key = match part {
            0 => RESOURCE_NAME_LABEL.to_owned(),
            _ => format!("{RESOURCE_NAME_LABEL}-{part}"),
        };
        labels.insert(key, piece);
        part += 1;
    }
    labels
}

/// A label selector for exactly these labels.
pub fn selector(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// Whether these are the labels of a project namespace of this name: reconcilers act in no other.
pub fn is_project_namespace(name: &str, labels: &BTreeMap<String, String>) -> bool {
    owned_by("Project", name).iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Namespace of a project.
pub fn project_namespace(prefix: &str, project: &str) -> String {
    format!("{prefix}-{project}")
}

/// Name of the `WorkerSliceConfig` of a slice in a cluster.
pub fn worker_slice_config(slice: &str, cluster: &str) -> String {
    format!("{slice}-{cluster}")
}

/// Name of the `WorkerSliceGateway` of a slice from one cluster to another, and of its Secret.
pub fn worker_slice_gateway(slice: &str, local: &str, remote: &str) -> String {
    format!("{slice}-{local}-{remote}")
}

/// Name of the `WorkerServiceImport` of an exported service in a cluster.
pub fn worker_service_import(service: &str, namespace: &str, slice: &str, cluster: &str) -> String {
    format!("{service}-{namespace}-{slice}-{cluster}")
}

#[cfg(test)]
mod tests {
    use super::{RESOURCE_NAME_LABEL, is_project_namespace, owned_by, selector};
    use std::collections::BTreeMap;

    #[test]
    fn a_long_owner_goes_on_in_further_labels() {
        let labels = owned_by("WorkerSliceConfig", &"x".repeat(130));
        let parts = [
            RESOURCE_NAME_LABEL.to_owned(),
            format!("{RESOURCE_NAME_LABEL}-1"),
            format!("{RESOURCE_NAME_LABEL}-2"),
        ];
        let joined: String = parts.iter().map(|key| labels[key].as_str()).collect();
        assert_eq!(joined, format!("WorkerSliceConfig-{}", "x".repeat(130)));
        assert!(labels.values().all(|value| value.len() <= 63));
    }

    #[test]
    fn only_the_label_of_its_own_name_makes_a_project_namespace() {
        assert!(is_project_namespace("kubeslice-a", &owned_by("Project", "kubeslice-a")));
        assert!(!is_project_namespace("kubeslice-b", &owned_by("Project", "kubeslice-a")));
        assert!(!is_project_namespace("kubeslice-a", &BTreeMap::new()));
    }

    #[test]
    fn a_selector_names_every_label() {
        assert_eq!(
            selector(&owned_by("SliceConfig", "red")),
            "kubeslice-controller-resource-name=SliceConfig-red,kubeslice-resource-owner=kubeslice-controller"
        );
    }
}
