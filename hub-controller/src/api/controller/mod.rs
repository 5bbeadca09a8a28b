//! `controller.kubeslice.io/v1alpha1`: what users and workers declare.

mod cluster;
mod project;
mod service_export_config;
mod slice_config;
mod slice_qos_config;
mod vpn_key_rotation;

pub use cluster::{
    Cluster, ClusterHealth, ClusterProperty, ClusterSpec, ClusterStatus, ComponentStatus, NamespaceInSlice,
};
pub use project::{Project, ProjectAccounts, ProjectSpec, ProjectStatus};
pub use service_export_config::{
    ServiceExportConfig, ServiceExportConfigSpec, ServiceExportConfigStatus, ServicePort,
};
pub use slice_config::{
    DeploymentMode, GatewayProvider, SliceConfig, SliceConfigSpec, SliceConfigStatus, VpnConfig,
};
pub use slice_qos_config::{QosProfile, SliceQoSConfig, SliceQoSConfigStatus};
pub use vpn_key_rotation::{RotationState, VpnKeyRotation, VpnKeyRotationSpec, VpnKeyRotationStatus};
