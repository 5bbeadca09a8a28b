//! Connections to the other sites (operator contract §5.3). No layout is written here.

use kube::ResourceExt;
use tracing::info;

use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::mesh::Reachable;
use crate::api::federation::RemoteCluster;
use crate::api::v1beta2::GarageCluster;
use crate::decision::mesh::{Peer, remote_peers};
use crate::garage::{AdminClient, ClusterStatus};
use crate::resources::auto_nodes::zone;

/// Connects this site to every other one; answers what is still missing.
pub(super) async fn connect(
    context: &Context,
    cluster: &GarageCluster,
    endpoints: &Endpoints,
    local: &[Reachable],
    status: &ClusterStatus,
) -> Result<Vec<String>, ReconcileError> {
    let mut missing = Vec::new();
    let Some(first) = local.first() else { return Ok(missing) };
    let pod = endpoints.pod(&first.address);
    for remote in &cluster.spec.remote_clusters {
        if remote.zone == zone(cluster) {
            info!(cluster = %cluster.name_any(), remote = %remote.name, "skipping self-connection: the zone is the local one");
            continue;
        }
        if is_connected(status, &remote.zone) {
            continue;
        }
        let namespace = cluster.namespace().unwrap_or_default();
        let client = match endpoints.remote(context, &namespace, remote).await? {
            Ok(client) => client,
            Err(why) => {
                missing.push(format!("{}: {why}", remote.name));
                continue;
            }
        };
        if let Err(why) = connect_site(&pod, &client, status, remote, cluster.spec.network.rpc_port()).await {
            missing.push(format!("{}: {why}", remote.name));
        }
    }
    Ok(missing)
}

/// Whether the remote zone has roles in the local view, and all their nodes are up.
fn is_connected(status: &ClusterStatus, zone: &str) -> bool {
    let mut nodes = status
        .nodes
        .iter()
        .filter(|node| node.role.as_ref().is_some_and(|role| role.zone == zone))
        .peekable();
    nodes.peek().is_some() && nodes.all(|node| node.is_up)
}

async fn connect_site(
    pod: &AdminClient,
    remote: &AdminClient,
    status: &ClusterStatus,
    site: &RemoteCluster,
    rpc_port: u16,
) -> Result<(), String> {
    let seen = remote.cluster_status().await.map_err(|error| chain(&error))?;
    let peers = remote_peers(status, &seen, &site.connection.admin_api_endpoint, rpc_port);
    let mut failures = Vec::new();
    for peer in &peers {
        if let Err(why) = dial(pod, peer).await {
            failures.push(why);
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Tries the addresses of a peer in their order.
async fn dial(pod: &AdminClient, peer: &Peer) -> Result<(), String> {
    let mut last = format!("node {} has no address", peer.id);
    for address in &peer.addresses {
        match pod.connect(&format!("{}@{address}", peer.id)).await {
            Ok(()) => return Ok(()),
            Err(error) => last = chain(&error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::is_connected;
    use crate::garage::{ClusterStatus, NodeRole, StatusNode};
    use rstest::rstest;

    fn node(zone: &str, up: bool) -> StatusNode {
        let role = Some(NodeRole { zone: zone.into(), ..NodeRole::default() });
        StatusNode { is_up: up, role, ..StatusNode::default() }
    }

    #[rstest]
    #[case(vec![], false)]
    #[case(vec![node("east", true)], false)]
    #[case(vec![node("west", true)], true)]
    #[case(vec![node("west", true), node("west", false)], false)]
    fn a_site_is_connected_when_all_nodes_of_its_zone_are_up(
        #[case] nodes: Vec<StatusNode>,
        #[case] connected: bool,
    ) {
        assert_eq!(is_connected(&ClusterStatus { layout_version: 1, nodes }, "west"), connected);
    }
}
