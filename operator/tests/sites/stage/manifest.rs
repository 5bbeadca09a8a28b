//! What tests apply: minimal specs that any operator of the API group admits (operator contract §3.4).

use harness::site::Site;
use serde_json::{Value, json};

/// Name of the GarageCluster of every scene.
pub const CLUSTER: &str = "garage";
/// Secret with the mesh's shared secret.
pub const RPC: &str = "garage-rpc";
/// Secret with the site's token for its own nodes.
pub const ADMIN: &str = "garage-admin";
/// Secret with the site's token for the other site's nodes.
pub const REMOTE: &str = "garage-remote";

/// What a spec says of the site's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Writer,
    Follower,
    /// Nothing.
    Absent,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Writer, Self::Follower, Self::Absent];

    /// Its name in names of tests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Follower => "follower",
            Self::Absent => "absent",
        }
    }

    /// Whether a site of this role changes the layout.
    pub fn writes(self) -> bool {
        self != Self::Follower
    }

    fn field(self) -> Option<&'static str> {
        match self {
            Self::Writer => Some("Writer"),
            Self::Follower => Some("Follower"),
            Self::Absent => None,
        }
    }
}

/// A GarageCluster of two storage nodes, factor 2, with the other site as its remote.
pub fn cluster(namespace: &str, site: Site, role: Role) -> Value {
    let other = site.other();
    let mut manifest = json!({
        "apiVersion": "garage.rajsingh.info/v1beta2",
        "kind": "GarageCluster",
        "metadata": {"name": CLUSTER},
        "spec": {
            "layoutPolicy": "Auto",
            "zone": site.name(),
            "replication": {"factor": 2, "consistencyMode": "consistent"},
            "storage": {
                "replicas": 2,
                "metadata": {"type": "EmptyDir"},
                "data": {"type": "EmptyDir"},
                "podDisruptionBudget": {"enabled": false},
            },
            "admin": {"adminTokenSecretRef": {"name": ADMIN, "key": "admin-token"}},
            "network": {"rpcSecretRef": {"name": RPC, "key": "rpc-secret"}},
            "deletionPolicy": "Destroy",
            "remoteClusters": [{
                "name": other.name(),
                "zone": other.name(),
                "connection": {
                    "adminApiEndpoint": format!("http://{CLUSTER}.{namespace}.svc.{other}.onewriter.test:3903"),
                    "adminTokenSecretRef": {"name": REMOTE, "key": "token"},
                },
            }],
        },
    });
    if let Some(role) = role.field() {
        manifest["spec"]["layoutManagement"] = json!({ "siteRole": role });
    }
    manifest
}

/// A GarageNode of `spec`, of the scene's cluster.
pub fn node(name: &str, spec: Value) -> Value {
    let mut manifest = json!({
        "apiVersion": "garage.rajsingh.info/v1beta1",
        "kind": "GarageNode",
        "metadata": {"name": name},
    });
    manifest["spec"] = spec;
    manifest["spec"]["clusterRef"] = json!({ "name": CLUSTER });
    manifest
}

/// A gateway that the operator of `site` runs.
pub fn gateway(site: Site, name: &str) -> Value {
    node(
        name,
        json!({
            "zone": site.name(),
            "gateway": true,
            "storage": {"metadata": {"type": "EmptyDir"}},
        }),
    )
}

/// A node that another site runs.
pub fn external(name: &str, zone: &str, id: &str) -> Value {
    node(
        name,
        json!({
            "zone": zone,
            "capacity": "10Gi",
            "nodeId": id,
            "external": {"address": "127.0.0.9", "port": 3901},
        }),
    )
}
