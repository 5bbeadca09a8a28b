//! Which versions are built, and the checksums that hold them to it.
//!
//! The module files are part of this library, so that an installed program can build without a checkout.

use sha2::{Digest as _, Sha256};

/// Module path of etcd's server.
pub const ETCD_MODULE: &str = "go.etcd.io/etcd/server/v3";
/// Module path of Kubernetes.
pub const KUBERNETES_MODULE: &str = "k8s.io/kubernetes";

/// Module file of etcd.
pub const ETCD_MOD: &str = include_str!("../../../control-plane/etcd/go.mod");
/// Checksums of etcd's modules.
pub const ETCD_SUM: &str = include_str!("../../../control-plane/etcd/go.sum");
/// Module file of Kubernetes.
pub const KUBERNETES_MOD: &str = include_str!("../../../control-plane/kubernetes/go.mod");
/// Checksums of Kubernetes' modules.
pub const KUBERNETES_SUM: &str = include_str!("../../../control-plane/kubernetes/go.sum");

/// How programs are built is part of what they are: to be raised when the build itself changes.
const RECIPE: &str = "1";

/// The pinned version of etcd, without a `v`.
pub fn etcd_version() -> &'static str {
    required(ETCD_MOD, ETCD_MODULE)
}

/// The pinned version of Kubernetes, without a `v`.
pub fn kubernetes_version() -> &'static str {
    required(KUBERNETES_MOD, KUBERNETES_MODULE)
}

/// The oldest Go that can build both, such as `1.26.0`.
pub fn go_version() -> &'static str {
    [ETCD_MOD, KUBERNETES_MOD].into_iter().filter_map(go_directive).max_by_key(|go| ordered(go)).unwrap_or("")
}

/// A name for everything that decides what the built programs are: 16 hex digits.
pub fn digest() -> String {
    let mut hash = Sha256::new();
    for part in [
        RECIPE,
        std::env::consts::OS,
        std::env::consts::ARCH,
        ETCD_MOD,
        ETCD_SUM,
        KUBERNETES_MOD,
        KUBERNETES_SUM,
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize()[..8])
}

/// A version in an order that knows 1.9 from 1.10; what is no number counts as 0.
pub(crate) fn ordered(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

fn required(module_file: &'static str, module: &str) -> &'static str {
    let version = module_file
        .lines()
        .find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(" v")?.split_whitespace().next());
    version.unwrap_or("")
}

fn go_directive(module_file: &'static str) -> Option<&'static str> {
    module_file.lines().find_map(|line| line.strip_prefix("go ")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_module_files() {
        assert_eq!(kubernetes_version(), "1.36.3");
        assert_eq!(etcd_version(), "3.6.16");
        assert_eq!(go_version(), "1.26.0");
    }

    #[test]
    fn the_digest_is_short_and_stable() {
        assert_eq!(digest(), digest());
        assert_eq!(digest().len(), 16);
    }

    #[test]
    fn versions_are_ordered_by_number() {
        assert!(ordered("1.9.9") < ordered("1.26.0"));
        assert!(ordered("1.26") < ordered("1.26.1"));
    }
}
