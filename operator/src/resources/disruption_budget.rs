//! The `PodDisruptionBudget` of the storage tier.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::labels::{meta, storage_selector};
use crate::api::v1beta2::GarageCluster;

/// The budget, unless the spec turns it off or there is no storage tier.
pub fn budget(cluster: &GarageCluster) -> Option<PodDisruptionBudget> {
    let declared = cluster.spec.storage.as_ref()?.pod_disruption_budget.clone().unwrap_or_default();
    if declared.enabled == Some(false) {
        return None;
    }
    let name = cluster.name_any();
    Some(PodDisruptionBudget {
        metadata: meta(cluster, name.clone()),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(declared.max_unavailable.unwrap_or(1))),
            selector: Some(LabelSelector {
                match_labels: Some(storage_selector(&name)),
                ..LabelSelector::default()
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    })
}
