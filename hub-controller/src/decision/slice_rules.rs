//! What a `SliceConfig` must keep to: asked by the webhook, and again by the reconciler, for the webhook can be off.

use std::collections::BTreeSet;

use crate::api::controller::{DeploymentMode, SliceConfigSpec};

/// Every rule that this spec breaks, as sentences for its author.
pub fn broken(spec: &SliceConfigSpec) -> Vec<String> {
    let distinct: BTreeSet<&String> = spec.clusters.iter().collect();
    let most = usize::from(spec.max_clusters);
    let networked = spec.overlay_network_deployment_mode != DeploymentMode::NoNetwork;
    let rules = [
        (distinct.len() != spec.clusters.len(), "spec.clusters: a cluster is named twice".to_owned()),
        (
            spec.clusters.len() > most,
            format!("spec.clusters: {} clusters are named, spec.maxClusters is {most}", spec.clusters.len()),
        ),
        (
            networked && !is_private_16(&spec.slice_subnet),
            format!("spec.sliceSubnet: {:?} is no private network of the form a.b.0.0/16", spec.slice_subnet),
        ),
        (
            spec.standard_qos_profile_name.is_some() && spec.qos_profile_details.is_some(),
            "spec.standardQosProfileName and spec.qosProfileDetails exclude each other".to_owned(),
        ),
        (
            !(30..=90).contains(&spec.rotation_interval),
            format!("spec.rotationInterval: {} days are not between 30 and 90", spec.rotation_interval),
        ),
    ];
    rules.into_iter().filter(|(broken, _)| *broken).map(|(_, says)| says).collect()
}

/// Whether this is a /16 of the private networks (RFC 1918).
fn is_private_16(subnet: &str) -> bool {
    let Some(address) = subnet.strip_suffix("/16") else { return false };
    let Ok(address) = address.parse::<std::net::Ipv4Addr>() else { return false };
    let [_, _, third, fourth] = address.octets();
    address.is_private() && third == 0 && fourth == 0
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::broken;
    use crate::api::controller::SliceConfigSpec;
    use serde_json::{Value, json};

    fn spec(changes: &Value) -> SliceConfigSpec {
        let mut spec = json!({"sliceSubnet": "10.1.0.0/16", "clusters": ["a", "b"]});
        spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    #[rstest]
    #[case(json!({}), "")]
    #[case(json!({"clusters": ["a", "a"]}), "named twice")]
    #[case(json!({"clusters": ["a", "b", "c"], "maxClusters": 2}), "3 clusters are named")]
    #[case(json!({"sliceSubnet": "8.8.0.0/16"}), "no private network")]
    #[case(json!({"sliceSubnet": "10.1.1.0/24"}), "no private network")]
    #[case(json!({"sliceSubnet": "", "overlayNetworkDeploymentMode": "no-network"}), "")]
    #[case(json!({"standardQosProfileName": "gold", "qosProfileDetails": {}}), "exclude each other")]
    #[case(json!({"rotationInterval": 5}), "not between 30 and 90")]
    fn a_broken_rule_is_told_to_the_author(#[case] changes: Value, #[case] says: &str) {
        let broken = broken(&spec(&changes));
        assert_eq!(broken.is_empty(), says.is_empty(), "{broken:?}");
        assert!(broken.iter().any(|it| it.contains(says)) || says.is_empty(), "{broken:?}");
    }
}
