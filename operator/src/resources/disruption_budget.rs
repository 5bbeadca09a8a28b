//! The `PodDisruptionBudgets` of the tiers (operator contract §3.1).

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::labels::{Labels, gateway_selector, meta, storage_selector};
use crate::api::naming::gateway_budget;
use crate::api::storage::DisruptionBudget;
use crate::api::v1beta2::GarageCluster;

/// What protects one tier.
#[derive(Clone, Debug, PartialEq)]
pub enum Budget {
    /// This budget.
    Wanted(Box<PodDisruptionBudget>),
    /// None; one of this name is left from before.
    Unwanted(String),
}

/// The budgets of both tiers. A tier that is not there, and one whose spec turns it off, has none.
pub fn budgets(cluster: &GarageCluster) -> [Budget; 2] {
    let (spec, name) = (&cluster.spec, cluster.name_any());
    let storage = spec.storage.as_ref().map(|tier| tier.pod_disruption_budget.clone().unwrap_or_default());
    let gateway = spec.gateway.as_ref().map(|tier| tier.pod_disruption_budget.clone().unwrap_or_default());
    [
        budget(cluster, name.clone(), storage, storage_selector(&name)),
        budget(cluster, gateway_budget(&name), gateway, gateway_selector(&name)),
    ]
}

fn budget(
    cluster: &GarageCluster,
    name: String,
    declared: Option<DisruptionBudget>,
    selector: Labels,
) -> Budget {
    let Some(declared) = declared.filter(|declared| declared.enabled != Some(false)) else {
        return Budget::Unwanted(name);
    };
    Budget::Wanted(Box::new(PodDisruptionBudget {
        metadata: meta(cluster, name),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(declared.max_unavailable.unwrap_or(1))),
            selector: Some(LabelSelector { match_labels: Some(selector), ..LabelSelector::default() }),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::{Budget, budgets};
    use crate::api::storage::{DisruptionBudget, GatewayTier, StorageTier};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
    use kube::ResourceExt;

    fn cluster(storage: Option<StorageTier>, gateway: Option<GatewayTier>) -> GarageCluster {
        GarageCluster::new("garage", GarageClusterSpec { storage, gateway, ..GarageClusterSpec::default() })
    }

    fn told(cluster: &GarageCluster) -> Vec<String> {
        let tell = |budget: &Budget| match budget {
            Budget::Wanted(budget) => {
                let selector = budget.spec.as_ref().unwrap().selector.as_ref().unwrap();
                let tier = &selector.match_labels.as_ref().unwrap()["garage.rajsingh.info/tier"];
                format!("{} for {tier}", budget.name_any())
            }
            Budget::Unwanted(name) => format!("no {name}"),
        };
        budgets(cluster).iter().map(tell).collect()
    }

    #[test]
    fn each_tier_has_a_budget_of_its_own_unless_it_is_turned_off() {
        let off = Some(DisruptionBudget { enabled: Some(false), max_unavailable: None });
        let both = cluster(Some(StorageTier::default()), Some(GatewayTier::default()));
        assert_eq!(told(&both), ["garage for storage", "garage-gateway for gateway"]);
        let one = GatewayTier { pod_disruption_budget: off.clone(), ..GatewayTier::default() };
        let other = StorageTier { pod_disruption_budget: off, ..StorageTier::default() };
        assert_eq!(told(&cluster(Some(other), Some(one))), ["no garage", "no garage-gateway"]);
        assert_eq!(told(&cluster(None, None)), ["no garage", "no garage-gateway"]);
    }
}
