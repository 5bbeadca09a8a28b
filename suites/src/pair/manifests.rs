//! The manifests of the reference operator.

use harness::pair::manifests::Manifest;

/// A file of `operator/deploy`, as it stood when this program was built.
macro_rules! config {
    ($path:literal) => {
        Manifest {
            name: $path.to_owned(),
            text: include_str!(concat!("../../../operator/deploy/", $path)).to_owned(),
        }
    };
}

/// Definitions and permissions. On local control planes the operator itself runs as a process.
#[must_use]
pub fn reference() -> Vec<Manifest> {
    vec![
        config!("crd/garage.rajsingh.info_garageclusters.yaml"),
        config!("crd/garage.rajsingh.info_garagenodes.yaml"),
        config!("rbac/namespace.yaml"),
        config!("rbac/service_account.yaml"),
        config!("rbac/cluster_role.yaml"),
        config!("rbac/cluster_role_binding.yaml"),
        config!("rbac/leader_election_role.yaml"),
        config!("rbac/leader_election_role_binding.yaml"),
    ]
}

/// The same with webhooks, which also serve the older version.
#[must_use]
pub fn with_webhooks() -> Vec<Manifest> {
    let definition = |manifest: &Manifest| manifest.name.ends_with("garageclusters.yaml");
    let mut manifests: Vec<Manifest> =
        reference().into_iter().filter(|manifest| !definition(manifest)).collect();
    manifests.insert(0, config!("webhook/crd/garage.rajsingh.info_garageclusters.yaml"));
    manifests.extend([
        config!("webhook/cluster_role.yaml"),
        config!("webhook/cluster_role_binding.yaml"),
        config!("webhook/role.yaml"),
        config!("webhook/role_binding.yaml"),
        config!("webhook/validating.yaml"),
        config!("webhook/mutating.yaml"),
    ]);
    manifests
}

/// What runs the operator in a cluster.
#[must_use]
pub fn workload() -> Vec<Manifest> {
    vec![config!("manager/deployment.yaml")]
}

/// The same, and where its webhooks are reached.
#[must_use]
pub fn workload_with_webhooks() -> Vec<Manifest> {
    vec![config!("manager/deployment.yaml"), config!("webhook/service.yaml")]
}
