//! What a spec must not say. The schema and the webhook refuse it; the controller checks it again, because a schema
//! can be stripped and a webhook can be off.

use std::collections::BTreeSet;

use crate::api::layout::LayoutSiteRole;
use crate::api::quantity::ByteQuantity;
use crate::api::v1beta2::GarageClusterSpec;

/// A Follower with nothing to follow: the message of the schema's rule.
pub const FOLLOWER_NEEDS_REMOTES: &str = "layoutManagement.siteRole: Follower requires at least one remoteClusters \
                                          entry (a Follower with nothing to follow is a cluster nobody can assign \
                                          roles to)";
/// A Follower that acts on another owner's layout: the message of the schema's rule.
pub const FOLLOWER_WITH_CONNECT_TO: &str = "layoutManagement.siteRole: Follower is not supported with connectTo; \
                                            edge gateways and management handles act on their layout owner";

/// Everything that is wrong with this spec.
pub fn objections(spec: &GarageClusterSpec) -> Vec<String> {
    let mut found = Vec::new();
    if spec.site_role() == Some(LayoutSiteRole::Follower) {
        if spec.remote_clusters.is_empty() {
            found.push(FOLLOWER_NEEDS_REMOTES.to_owned());
        }
        if spec.connect_to.is_some() {
            found.push(FOLLOWER_WITH_CONNECT_TO.to_owned());
        }
    }
    if spec.connect_to.is_some() && spec.storage.is_some() {
        found.push(
            "connectTo and storage exclude each other: a cluster with storage owns its layout".to_owned(),
        );
    }
    if let Some(connect) = &spec.connect_to
        && spec.gateway.is_some()
        && spec.network.rpc_secret_ref.is_none()
        && connect.rpc_secret_ref.is_none()
    {
        found.push(
            "connectTo.rpcSecretRef: a gateway tier needs the RPC secret of the cluster it belongs to"
                .to_owned(),
        );
    }
    let external = spec.connect_to.as_ref().and_then(|connect| connect.admin_api_endpoint.as_ref());
    if let Some(endpoint) = external.filter(|endpoint| !is_admin_url(endpoint)) {
        found.push(format!("connectTo: the adminApiEndpoint {endpoint:?} is not an http:// or https:// URL"));
    }
    if let Some(tier) = &spec.storage
        && let Some(Err(invalid)) =
            tier.data.as_ref().and_then(|data| data.size.as_ref()).map(ByteQuantity::bytes)
    {
        found.push(format!("storage.data.size: {invalid}"));
    }
    found.extend(remote_objections(spec));
    found
}

/// Remote sites that have the local zone. The webhook refuses them; the controller only skips them.
pub fn self_connections(spec: &GarageClusterSpec, local_zone: &str) -> Vec<String> {
    let local = spec.remote_clusters.iter().filter(|remote| remote.zone == local_zone);
    local
        .map(|remote| format!("remoteClusters {:?}: the zone {local_zone:?} is the local one", remote.name))
        .collect()
}

/// `http://` or `https://` and a host.
fn is_admin_url(endpoint: &str) -> bool {
    let rest = endpoint.trim().strip_prefix("http://").or_else(|| endpoint.trim().strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', ':', '?']))
}

fn remote_objections(spec: &GarageClusterSpec) -> Vec<String> {
    let (mut names, mut zones, mut found) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for remote in &spec.remote_clusters {
        if !is_admin_url(&remote.connection.admin_api_endpoint) {
            found.push(format!(
                "remoteClusters {:?}: the adminApiEndpoint {:?} is not an http:// or https:// URL",
                remote.name, remote.connection.admin_api_endpoint
            ));
        }
        if !names.insert(&remote.name) {
            found.push(format!("remoteClusters: the name {:?} is there twice", remote.name));
        }
        if !zones.insert(&remote.zone) {
            found.push(format!("remoteClusters: the zone {:?} is there twice", remote.zone));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{FOLLOWER_NEEDS_REMOTES, FOLLOWER_WITH_CONNECT_TO, objections, self_connections};
    use crate::api::federation::{ConnectTo, RemoteCluster, RemoteConnection};
    use crate::api::layout::{LayoutManagement, LayoutSiteRole};
    use crate::api::quantity::ByteQuantity;
    use crate::api::storage::{StorageTier, Volume};
    use crate::api::v1beta2::GarageClusterSpec;
    use rstest::rstest;

    fn remote(name: &str, zone: &str) -> RemoteCluster {
        let connection =
            RemoteConnection { admin_api_endpoint: "http://x:3903".into(), admin_token_secret_ref: None };
        RemoteCluster { name: name.into(), zone: zone.into(), connection }
    }

    fn spec(role: Option<LayoutSiteRole>, remotes: &[(&str, &str)], connects: bool) -> GarageClusterSpec {
        GarageClusterSpec {
            layout_management: role
                .map(|role| LayoutManagement { site_role: Some(role), ..LayoutManagement::default() }),
            remote_clusters: remotes.iter().map(|(name, zone)| remote(name, zone)).collect(),
            connect_to: connects.then(ConnectTo::default),
            ..GarageClusterSpec::default()
        }
    }

    #[rstest]
    #[case(spec(Some(LayoutSiteRole::Follower), &[("w", "west")], false), &[])]
    #[case(spec(Some(LayoutSiteRole::Writer), &[], false), &[])]
    #[case(spec(None, &[], true), &[])]
    #[case(spec(Some(LayoutSiteRole::Follower), &[], false), &[FOLLOWER_NEEDS_REMOTES])]
    #[case(spec(Some(LayoutSiteRole::Follower), &[("w", "west")], true), &[FOLLOWER_WITH_CONNECT_TO])]
    #[case(spec(None, &[("w", "a"), ("w", "b")], false), &["remoteClusters: the name \"w\" is there twice"])]
    #[case(spec(None, &[("v", "a"), ("w", "a")], false), &["remoteClusters: the zone \"a\" is there twice"])]
    fn a_spec_is_objected_to_with_reasons(#[case] spec: GarageClusterSpec, #[case] expected: &[&str]) {
        assert_eq!(objections(&spec), expected);
    }

    #[rstest]
    #[case("http://west:3903", true)]
    #[case("https://west.example/site", true)]
    #[case("west:3903", false)]
    #[case("ftp://west", false)]
    #[case("https://", false)]
    #[case("http://:3903", false)]
    fn an_endpoint_is_an_http_or_https_url(#[case] endpoint: &str, #[case] accepted: bool) {
        let mut spec = spec(None, &[("w", "west")], false);
        spec.remote_clusters[0].connection.admin_api_endpoint = endpoint.to_owned();
        assert_eq!(objections(&spec).is_empty(), accepted);
    }

    #[test]
    fn a_remote_site_in_the_local_zone_is_this_site() {
        let found = self_connections(&spec(None, &[("w", "east")], false), "east");
        assert_eq!(found, ["remoteClusters \"w\": the zone \"east\" is the local one"]);
    }

    #[test]
    fn a_size_that_is_no_quantity_is_objected_to() {
        let data = Some(Volume { size: Some(ByteQuantity::new("lots")), ..Volume::default() });
        let storage = Some(StorageTier { data, ..StorageTier::default() });
        let spec = GarageClusterSpec { storage, ..GarageClusterSpec::default() };
        assert!(objections(&spec)[0].contains("\"lots\""));
    }
}
