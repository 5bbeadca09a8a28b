//! Who has to be connected to whom, and under which address (operator contract §2.3, §5.3).

use crate::garage::{ClusterStatus, StatusNode};

/// Tag prefix under which a role advertises where its node is reached.
const RPC_ADDRESS_TAG: &str = "rpc-address:";

/// A node to connect to, with the places to try in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Node ID.
    pub id: String,
    /// `host:port`, the most reliable one first.
    pub addresses: Vec<String>,
}

/// The nodes of another site that are not up in the local view.
///
/// They are tried at the `rpc-address:` tag of their role, else at the host of the other site's admin endpoint with
/// the RPC port, else where the other site sees them: pod addresses are often not routed between clusters.
pub fn remote_peers(
    local: &ClusterStatus,
    remote: &ClusterStatus,
    endpoint: &str,
    rpc_port: u16,
) -> Vec<Peer> {
    remote
        .nodes
        .iter()
        .filter(|node| node.is_up && !local.is_up(&node.id))
        .map(|node| Peer { id: node.id.clone(), addresses: addresses(node, endpoint, rpc_port) })
        .collect()
}

fn addresses(node: &StatusNode, endpoint: &str, rpc_port: u16) -> Vec<String> {
    let tags = node.role.as_ref().map(|role| role.tags.as_slice()).unwrap_or_default();
    let advertised = tags.iter().find_map(|tag| tag.strip_prefix(RPC_ADDRESS_TAG).map(str::to_owned));
    let shared = host(endpoint).map(|host| format!("{host}:{rpc_port}"));
    let observed = node.addr.clone().filter(|address| !address.is_empty());
    let mut addresses = Vec::new();
    for address in [advertised, shared, observed].into_iter().flatten() {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

fn host(endpoint: &str) -> Option<&str> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split('/').next()?;
    let end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    (end > 0).then(|| &authority[..end])
}

#[cfg(test)]
mod tests {
    use super::{host, remote_peers};
    use crate::garage::{ClusterStatus, NodeRole, StatusNode};
    use rstest::rstest;

    fn node(id: &str, addr: Option<&str>, up: bool, tags: &[&str]) -> StatusNode {
        let role =
            NodeRole { tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), ..NodeRole::default() };
        StatusNode {
            id: id.into(),
            addr: addr.map(str::to_owned),
            is_up: up,
            role: (!tags.is_empty()).then_some(role),
            ..StatusNode::default()
        }
    }

    fn status(nodes: Vec<StatusNode>) -> ClusterStatus {
        ClusterStatus { layout_version: 0, nodes }
    }

    #[rstest]
    #[case(node("aa", Some("10.0.0.1:3901"), true, &["rpc-address:pub:1"]), &["pub:1", "garage.west:3901", "10.0.0.1:3901"])]
    #[case(node("aa", Some("10.0.0.1:3901"), true, &[]), &["garage.west:3901", "10.0.0.1:3901"])]
    #[case(node("aa", None, true, &[]), &["garage.west:3901"])]
    fn a_remote_node_is_tried_where_it_is_reached(#[case] remote: StatusNode, #[case] addresses: &[&str]) {
        let found = remote_peers(&status(vec![]), &status(vec![remote]), "http://garage.west:3903/", 3901);
        assert_eq!(found[0].addresses, addresses);
    }

    #[test]
    fn a_remote_node_that_is_down_is_not_dialled() {
        let remote = status(vec![node("aa", None, false, &[])]);
        assert!(remote_peers(&status(vec![]), &remote, "http://garage.west:3903/", 3901).is_empty());
    }

    #[rstest]
    #[case("http://[::1]:3903", Some("[::1]"))]
    #[case("https://west.example/site", Some("west.example"))]
    #[case("http://", None)]
    fn the_host_of_an_endpoint_is_found(#[case] endpoint: &str, #[case] found: Option<&str>) {
        assert_eq!(host(endpoint), found);
    }

    #[test]
    fn a_node_that_is_up_here_is_not_dialled() {
        let both = status(vec![node("aa", Some("10.0.0.1:3901"), true, &[])]);
        assert!(remote_peers(&both, &both, "http://x:3903", 3901).is_empty());
    }
}
