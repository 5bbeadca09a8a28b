//! The manifests of the reference operator.

use harness::pair::manifests::Manifest;

/// A file of `operator/config`, as it stood when this program was built.
macro_rules! config {
    ($path:literal) => {
        Manifest {
            name: $path.to_owned(),
            text: include_str!(concat!("../../../operator/config/", $path)).to_owned(),
        }
    };
}

/// Definitions and permissions. The operator itself runs as a process.
#[must_use]
pub fn reference() -> Vec<Manifest> {
    vec![config!("crd/garageclusters.yaml"), config!("crd/garagenodes.yaml"), config!("rbac/rbac.yaml")]
}
