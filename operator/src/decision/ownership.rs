//! Whose layout a cluster acts on (operator contract §7.1).

use std::collections::BTreeSet;

use thiserror::Error;

use crate::api::v1beta2::GarageClusterSpec;

/// The owner of the layout cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnerError {
    /// `connectTo.clusterRef` leads back to where it began.
    #[error("connectTo.clusterRef runs in a circle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A cluster on the way does not exist.
    #[error("connectTo.clusterRef names GarageCluster {0:?}, which does not exist")]
    Missing(String),
}

/// Where the way to the owner goes on from this cluster; `None` when the cluster is the owner.
pub fn next_owner(spec: &GarageClusterSpec) -> Option<&str> {
    let connect = spec.connect_to.as_ref()?;
    if spec.storage.is_some() || connect.admin_api_endpoint.is_some() {
        return None;
    }
    connect.cluster_ref.as_ref().map(|reference| reference.name.as_str())
}

/// The clusters on the way from `start` to the owner, without `start`, the owner last; `lookup` answers the spec of
/// a cluster in the same namespace.
pub fn owners<'a>(
    start: &str,
    spec: &'a GarageClusterSpec,
    lookup: impl Fn(&str) -> Option<&'a GarageClusterSpec>,
) -> Result<Vec<String>, OwnerError> {
    let mut seen = BTreeSet::from([start.to_owned()]);
    let mut way = Vec::new();
    let mut current = spec;
    while let Some(next) = next_owner(current) {
        way.push(next.to_owned());
        if !seen.insert(next.to_owned()) {
            return Err(OwnerError::Cycle(std::iter::once(start.to_owned()).chain(way).collect()));
        }
        current = lookup(next).ok_or_else(|| OwnerError::Missing(next.to_owned()))?;
    }
    Ok(way)
}

#[cfg(test)]
mod tests {
    use super::{OwnerError, owners};
    use crate::api::federation::{ClusterRef, ConnectTo};
    use crate::api::storage::StorageTier;
    use crate::api::v1beta2::GarageClusterSpec;
    use rstest::rstest;
    use std::collections::BTreeMap;

    fn to(name: &str) -> GarageClusterSpec {
        let connect =
            ConnectTo { cluster_ref: Some(ClusterRef { name: name.into() }), ..ConnectTo::default() };
        GarageClusterSpec { connect_to: Some(connect), ..GarageClusterSpec::default() }
    }

    fn clusters() -> BTreeMap<&'static str, GarageClusterSpec> {
        let storage = Some(StorageTier::default());
        let mut by_url = to("owner");
        by_url.connect_to.as_mut().unwrap().admin_api_endpoint = Some("http://x:3903".into());
        BTreeMap::from([
            ("owner", GarageClusterSpec { storage: storage.clone(), ..GarageClusterSpec::default() }),
            ("edge", to("owner")),
            ("far-edge", to("edge")),
            ("a", to("b")),
            ("b", to("a")),
            ("self", to("self")),
            ("dangling", to("nobody")),
            ("by-url", by_url),
            ("own-storage", GarageClusterSpec { storage, ..to("owner") }),
        ])
    }

    #[rstest]
    #[case("owner", &[])]
    #[case("edge", &["owner"])]
    #[case("far-edge", &["edge", "owner"])]
    #[case("by-url", &[])]
    #[case("own-storage", &[])]
    fn the_way_leads_to_the_owner(#[case] start: &str, #[case] way: &[&str]) {
        let clusters = clusters();
        assert_eq!(owners(start, &clusters[start], |name| clusters.get(name)).unwrap(), way);
    }

    #[rstest]
    #[case("a", OwnerError::Cycle(vec!["a".into(), "b".into(), "a".into()]))]
    #[case("self", OwnerError::Cycle(vec!["self".into(), "self".into()]))]
    #[case("dangling", OwnerError::Missing("nobody".into()))]
    fn circles_and_gaps_are_errors(#[case] start: &str, #[case] error: OwnerError) {
        let clusters = clusters();
        assert_eq!(owners(start, &clusters[start], |name| clusters.get(name)), Err(error));
    }
}
