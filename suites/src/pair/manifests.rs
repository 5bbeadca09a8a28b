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

/// Definitions and permissions. The operator itself runs as a process.
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
