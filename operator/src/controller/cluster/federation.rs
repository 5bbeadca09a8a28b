//! Connections to the other sites (operator contract §5.3). No layout is written here; roles that
//! could be imported are only found.

use kube::ResourceExt;
use tracing::debug;

use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::mesh::Reachable;
use super::observe::GarageView;
use crate::api::federation::RemoteCluster;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{WantedRole, identity};
use crate::decision::foreign_writer::{Content, Elsewhere};
use crate::decision::import::imports;
use crate::decision::mesh::{Peer, remote_peers};
use crate::garage::{AdminClient, ClusterStatus};
use crate::resources::auto_nodes::zone;

/// This site and its view of the others.
pub(super) struct Sites<'a> {
    /// What every reconcile can use.
    pub(super) context: &'a Context,
    /// The local cluster.
    pub(super) cluster: &'a GarageCluster,
    /// Its admin clients.
    pub(super) endpoints: &'a Endpoints,
    /// Its nodes.
    pub(super) nodes: &'a [GarageNode],
    /// What Garage says here.
    pub(super) view: &'a GarageView,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Federated {
    /// Other sites that are not fully connected, each with why.
    pub(super) missing: Vec<String>,
    /// Roles that other sites gave their nodes and this site does not know.
    pub(super) imports: Vec<WantedRole>,
    /// The layouts of other sites that could be read; only asked for where a layout role is declared.
    pub(super) layouts: Vec<Elsewhere>,
}

impl Sites<'_> {
    /// Connects this site to every other one, through its first node that can be reached.
    pub(super) async fn connect(&self, local: &[Reachable]) -> Result<Federated, ReconcileError> {
        let mut result = Federated::default();
        let Some(first) = local.first() else { return Ok(result) };
        let pod = self.endpoints.pod(&first.address);
        for remote in &self.cluster.spec.remote_clusters {
            if remote.zone == zone(self.cluster) {
                debug!(remote = %remote.name, "skipping self-connection: the zone is the local one");
                continue;
            }
            let connected = is_connected(&self.view.status, &remote.zone);
            if connected && self.cluster.spec.site_role().is_none() {
                continue;
            }
            let namespace = self.cluster.namespace().unwrap_or_default();
            match self.endpoints.remote(self.context, &namespace, remote).await? {
                Ok(client) if connected => self.compare(&client, remote, &mut result).await,
                Ok(client) => self.join(&pod, &client, remote, &mut result).await,
                Err(_) if connected => {}
                Err(why) => result.missing.push(format!("{}: {why}", remote.name)),
            }
        }
        Ok(result)
    }

    /// Reads the layout of a site that is connected. One that does not answer has no evidence to give.
    async fn compare(&self, client: &AdminClient, remote: &RemoteCluster, result: &mut Federated) {
        match client.cluster_layout().await {
            Ok(layout) => {
                let content = Content::of(&layout);
                result.layouts.push(Elsewhere { site: remote.name.clone(), content });
            }
            Err(error) => debug!(remote = %remote.name, error = %chain(&error), "layout not compared"),
        }
    }

    async fn join(
        &self,
        pod: &AdminClient,
        client: &AdminClient,
        remote: &RemoteCluster,
        result: &mut Federated,
    ) {
        let (status, layout) = tokio::join!(client.cluster_status(), client.cluster_layout());
        // Of two errors always the same one is told: else the condition's message would change from pass to pass, and
        // every change would cause the next pass.
        let (status, layout) = match status.and_then(|status| Ok((status, layout?))) {
            Ok(read) => read,
            Err(error) => {
                result.missing.push(format!("{}: {}", remote.name, chain(&error)));
                return;
            }
        };
        if self.cluster.spec.site_role().is_some() {
            let content = Content::of(&layout);
            result.layouts.push(Elsewhere { site: remote.name.clone(), content });
        }
        let rpc_port = self.cluster.spec.network.rpc_port();
        let endpoint = &remote.connection.admin_api_endpoint;
        for peer in remote_peers(&self.view.status, &status, endpoint, rpc_port) {
            if let Err(why) = dial(pod, &peer).await {
                result.missing.push(format!("{}: {why}", remote.name));
            }
        }
        let declared = |id: &str| self.nodes.iter().any(|node| identity(node).as_deref() == Some(id));
        let seen = match pod.cluster_status().await {
            Ok(seen) => seen,
            Err(error) => {
                result.missing.push(format!("{}: {}", remote.name, chain(&error)));
                return;
            }
        };
        let (here, there) = ((&seen, &self.view.layout), (&status, &layout));
        result.imports.extend(imports(&remote.zone, here, there, declared));
    }
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
