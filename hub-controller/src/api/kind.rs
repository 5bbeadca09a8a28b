//! The kinds that are reconciled, and the kinds that are mirrored.

use std::fmt;

use kube::api::{ApiResource, GroupVersionKind};

use super::naming::{CONTROLLER_GROUP, WORKER_GROUP};

/// A kind that is reconciled (hub contract, section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HubKind {
    /// A tenant.
    Project,
    /// A worker cluster.
    Cluster,
    /// A profile of the quality of service.
    SliceQoSConfig,
    /// A network across clusters.
    SliceConfig,
    /// An offered service.
    ServiceExportConfig,
    /// Rotation of keys.
    VpnKeyRotation,
    /// A slice in a cluster.
    WorkerSliceConfig,
    /// An end of a tunnel.
    WorkerSliceGateway,
    /// An offered service in a cluster.
    WorkerServiceImport,
}

impl HubKind {
    /// All nine, parents before children.
    pub const ALL: [Self; 9] = [
        Self::Project,
        Self::Cluster,
        Self::SliceQoSConfig,
        Self::SliceConfig,
        Self::ServiceExportConfig,
        Self::VpnKeyRotation,
        Self::WorkerSliceConfig,
        Self::WorkerSliceGateway,
        Self::WorkerServiceImport,
    ];

    /// The kind's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "Project",
            Self::Cluster => "Cluster",
            Self::SliceQoSConfig => "SliceQoSConfig",
            Self::SliceConfig => "SliceConfig",
            Self::ServiceExportConfig => "ServiceExportConfig",
            Self::VpnKeyRotation => "VpnKeyRotation",
            Self::WorkerSliceConfig => "WorkerSliceConfig",
            Self::WorkerSliceGateway => "WorkerSliceGateway",
            Self::WorkerServiceImport => "WorkerServiceImport",
        }
    }

    /// The finalizer that its reconciler adds; a `VpnKeyRotation` has an owner instead.
    pub fn finalizer(self) -> Option<&'static str> {
        Some(match self {
            Self::Project => "controller.kubeslice.io/project-finalizer",
            Self::Cluster => "controller.kubeslice.io/cluster-finalizer",
            Self::SliceQoSConfig => "controller.kubeslice.io/slice-qos-config-finalizer",
            Self::SliceConfig => "controller.kubeslice.io/slice-configuration-finalizer",
            Self::ServiceExportConfig => "controller.kubeslice.io/service-export-finalizer",
            Self::VpnKeyRotation => return None,
            Self::WorkerSliceConfig => "worker.kubeslice.io/worker-slice-configuration-finalizer",
            Self::WorkerSliceGateway => "worker.kubeslice.io/worker-slice-gateway-finalizer",
            Self::WorkerServiceImport => "worker.kubeslice.io/worker-service-import-finalizer",
        })
    }

    fn group(self) -> &'static str {
        match self {
            Self::WorkerSliceConfig | Self::WorkerSliceGateway | Self::WorkerServiceImport => WORKER_GROUP,
            _ => CONTROLLER_GROUP,
        }
    }
}

impl fmt::Display for HubKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A kind that is mirrored (design record, decision 6). Their order is the order in which copies are made: what others
/// need comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirroredKind {
    /// Project namespaces.
    Namespace,
    /// Accounts of workers and users. Before their token Secrets: those of unknown accounts are deleted.
    ServiceAccount,
    /// Roles. Before the RoleBindings that refer to them.
    Role,
    /// RoleBindings.
    RoleBinding,
    /// Certificates, credentials, and shells of token Secrets.
    Secret,
    /// One of the nine kinds.
    Hub(HubKind),
}

impl MirroredKind {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let supporting = [Self::Namespace, Self::ServiceAccount, Self::Role, Self::RoleBinding, Self::Secret];
        supporting.into_iter().chain(HubKind::ALL.map(Self::Hub)).collect()
    }

    /// The kind's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::ServiceAccount => "ServiceAccount",
            Self::Role => "Role",
            Self::RoleBinding => "RoleBinding",
            Self::Secret => "Secret",
            Self::Hub(kind) => kind.name(),
        }
    }

    /// How the API server knows it.
    pub fn resource(self) -> ApiResource {
        let (group, version) = match self {
            Self::Namespace | Self::ServiceAccount | Self::Secret => ("", "v1"),
            Self::Role | Self::RoleBinding => ("rbac.authorization.k8s.io", "v1"),
            Self::Hub(kind) => (kind.group(), "v1alpha1"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, self.name()))
    }

    /// Whether its status is mirrored, too.
    pub fn has_status(self) -> bool {
        matches!(self, Self::Hub(_))
    }

    /// Whether it is in no namespace.
    pub fn is_cluster_scoped(self) -> bool {
        self == Self::Namespace
    }
}

impl fmt::Display for MirroredKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{HubKind, MirroredKind};
    use crate::api::crd;

    #[test]
    fn the_plural_of_every_kind_is_that_of_its_definition() {
        for (kind, definition) in HubKind::ALL.iter().flat_map(|kind| {
            crd::definitions()
                .into_iter()
                .filter(|found| found.spec.names.kind == kind.name())
                .map(move |found| (*kind, found))
        }) {
            let resource = MirroredKind::Hub(kind).resource();
            assert_eq!(
                (resource.plural, resource.group),
                (definition.spec.names.plural, definition.spec.group)
            );
        }
        assert_eq!(crd::definitions().len(), HubKind::ALL.len());
    }

    #[test]
    fn namespaces_come_before_accounts_and_accounts_before_secrets() {
        let mut sorted = MirroredKind::all();
        sorted.sort();
        assert_eq!(sorted, MirroredKind::all());
        assert!(
            MirroredKind::ServiceAccount < MirroredKind::Secret
                && MirroredKind::Namespace < MirroredKind::ServiceAccount
        );
    }
}
