//! Nodes and layouts, read by the harness and changed by hand.

use std::time::Duration;

use futures::future::try_join_all;
use harness::failure::Failure;
use harness::garage::admin::{self, Layout};
use harness::garage::hub::{NodeName, NodeSpec};
use harness::site::Site;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::World;

/// A node that no operator runs.
#[derive(Debug, Clone)]
pub struct Stray {
    /// Where it lives in the hub.
    pub name: NodeName,
    /// Garage's identity of it.
    pub id: String,
    /// Its address.
    pub address: String,
}

impl World<'_> {
    /// The layouts that the nodes `names` of `site` hold, read from the nodes themselves.
    pub async fn layouts(&self, site: Site, names: &[String]) -> Result<Vec<Layout>, Failure> {
        self.step(format!("read the layouts of {} on {site}", names.join(", ")));
        let read = |name: &String| {
            let name = name.clone();
            async move {
                let address = self.address(site, &name).await?;
                let layout = admin::layout(site, &self.stage.mesh, &address).await?;
                layout.record(&self.scope.recorder, &address);
                Ok(layout)
            }
        };
        try_join_all(names.iter().map(read)).await
    }

    /// The layout that the node `name` of `site` holds.
    pub async fn layout(&self, site: Site, name: &str) -> Result<Layout, Failure> {
        let address = self.address(site, name).await?;
        admin::layout(site, &self.stage.mesh, &address).await
    }

    /// Every node of `names` at `site` holds a layout with as many roles.
    pub async fn holds_roles(&self, site: Site, names: &[String], roles: usize) -> Result<(), Failure> {
        for layout in self.layouts(site, names).await? {
            let claim = format!("every node holds a layout with {roles} roles");
            self.claim(site, &claim, layout.roles.len() == roles, || format!("{layout:?}"))?;
        }
        Ok(())
    }

    /// The node `name` of `site` has a role in its own layout, or has none.
    pub async fn has_role(&self, site: Site, name: &str, id: &str, expected: bool) -> Result<(), Failure> {
        let layout = self.layout(site, name).await?;
        let has = layout.roles.iter().any(|role| role.id == id);
        let claim = format!("node {id:.8} has {} role", if expected { "its" } else { "no" });
        self.claim(site, &claim, has == expected, || format!("{layout:?}"))
    }

    /// A person calls the node at `address`.
    pub async fn by_hand(&self, address: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        self.step(format!("by hand: {path} at {address}"));
        admin::by_hand(&self.stage.mesh, address, path, body)
            .await
            .map_err(|error| Failure::harness(Site::East, format!("call {path} at {address}"), error))
    }

    /// A person stages role changes at the node at `address`.
    pub async fn stage_by_hand(&self, address: &str, roles: &Value) -> Result<(), Failure> {
        self.by_hand(address, "UpdateClusterLayout", &json!({ "roles": roles })).await.map(drop)
    }

    /// A person applies what is staged at the node at `address`.
    pub async fn apply_by_hand(&self, address: &str) -> Result<(), Failure> {
        // As a careful person does: look, then apply what was seen.
        let seen = admin::seen_by_hand(&self.stage.mesh, address).await;
        let seen = seen.map_err(|error| Failure::harness(Site::East, "read a layout by hand", error))?;
        let version = json!({ "version": seen.version + 1 });
        self.by_hand(address, "ApplyClusterLayout", &version).await.map(drop)
    }

    /// Starts a node that no operator runs, in no site's name, and connects it to the node at `peer`.
    pub async fn stray(&self, pod: &str, factor: u32, peer: &str) -> Result<Stray, Failure> {
        self.step(format!("start the node {pod}, which no operator runs"));
        let name = NodeName {
            site: "elsewhere".to_owned(),
            namespace: self.scope.namespace.clone(),
            pod: pod.to_owned(),
        };
        let spec = NodeSpec {
            rpc_secret: self.stage.mesh.rpc_secret.clone(),
            admin_token: None,
            metrics_token: None,
            replication_factor: factor,
            consistency_mode: "consistent".to_owned(),
            hostname: pod.to_owned(),
            region: "garage".to_owned(),
            purge_layout: None,
        };
        let failed = |error| Failure::harness(Site::East, format!("start the node {pod}"), error);
        let node = self.stage.hub.put_node(&name, &spec).await.map_err(failed)?;
        let target = json!([format!("{}@{}:3901", node.node_id, node.address)]);
        self.by_hand(peer, "ConnectClusterNodes", &target).await?;
        Ok(Stray { name, id: node.node_id, address: node.address })
    }

    /// Somebody else holds data, too, so that every node of the east may leave: a node that no operator runs gets a role
    /// by hand, at the node `name` of the east.
    pub async fn keeper(&self, name: &str) -> Result<(), Failure> {
        let peer = self.address(Site::East, name).await?;
        let stray = self.stray("keeper", 1, &peer).await?;
        let role = json!([{"id": stray.id, "zone": "elsewhere", "capacity": 1_u64 << 30, "tags": []}]);
        self.stage_by_hand(&peer, &role).await?;
        self.apply_by_hand(&peer).await
    }

    /// Waits until the node `name` of `site` holds layout `version` or a later one. Gossip tells nobody: it is asked.
    pub async fn holds_version(&self, site: Site, name: &str, version: u64) -> Result<(), Failure> {
        const EVERY: Duration = Duration::from_millis(100);
        self.step(format!("await layout {version} at node {name} on {site}"));
        let holding = async {
            while self.layout(site, name).await?.version < version {
                tokio::time::sleep(EVERY).await;
            }
            Ok(())
        };
        let limit = self.scope.limits.step;
        tokio::time::timeout(limit, holding).await.unwrap_or_else(|_elapsed| {
            Err(self.not_so(site, format!("node {name} holds layout {version}"), "it holds an older one"))
        })
    }

    /// Waits until the roles of the nodes `names` of `home` are those that the cluster of `writer` declares: they bear its
    /// mark. Nobody tells when a writer has nothing more to write: the layout is asked.
    pub async fn bears_roles(&self, writer: Site, home: Site, names: &[String]) -> Result<(), Failure> {
        const EVERY: Duration = Duration::from_millis(100);
        let mark = format!("cluster-uid:{}", self.cluster(writer).await?.uid().unwrap_or_default());
        let ids = self.identities(home, names).await?;
        self.step(format!("await roles of {} on {home} as {writer} declares them", names.join(", ")));
        let borne = |layout: &Layout, id: &String| {
            layout.roles.iter().any(|role| role.id == *id && role.tags.contains(&mark))
        };
        let bearing = async {
            for name in names {
                loop {
                    let layout = self.layout(home, name).await?;
                    if ids.iter().all(|id| borne(&layout, id)) {
                        break;
                    }
                    tokio::time::sleep(EVERY).await;
                }
            }
            Ok(())
        };
        let limit = self.scope.limits.step;
        tokio::time::timeout(limit, bearing).await.unwrap_or_else(|_elapsed| {
            Err(self.not_so(
                home,
                format!("{} have the roles that {writer} declares", names.join(", ")),
                "they have others",
            ))
        })
    }

    /// Waits until the node at `peer` has seen the node `id`: a ping has come back. One that never was seen has no age.
    pub async fn seen(&self, peer: &str, id: &str) -> Result<(), Failure> {
        self.last_seen(peer, id, "has been seen".to_owned(), |_ago| true).await
    }

    /// Waits until the node at `peer` has not seen the node `id` for `seconds`.
    pub async fn unseen_for(&self, peer: &str, id: &str, seconds: u64) -> Result<(), Failure> {
        let claim = format!("has not been seen for {seconds} s");
        self.last_seen(peer, id, claim, |ago| ago >= seconds).await
    }

    /// Nobody tells when a node was seen: it is asked.
    async fn last_seen(
        &self,
        peer: &str,
        id: &str,
        claim: String,
        is_so: impl Fn(u64) -> bool,
    ) -> Result<(), Failure> {
        const EVERY: Duration = Duration::from_millis(100);
        self.step(format!("await that node {id:.8} {claim}"));
        let awaited = async {
            loop {
                let status = admin::status(Site::East, &self.stage.mesh, peer).await?;
                let node = status["nodes"].as_array().into_iter().flatten().find(|node| node["id"] == id);
                if node.and_then(|node| node["lastSeenSecsAgo"].as_u64()).is_some_and(&is_so) {
                    return Ok(());
                }
                tokio::time::sleep(EVERY).await;
            }
        };
        let limit = self.scope.limits.step;
        tokio::time::timeout(limit, awaited).await.unwrap_or_else(|_elapsed| {
            Err(self.not_so(Site::East, format!("node {id:.8} {claim}"), "its peer says otherwise"))
        })
    }

    /// Waits until every node has taken over the layout that the node at `peer` holds: no older version drains any more.
    /// Nobody tells: it is asked.
    pub async fn taken_over(&self, peer: &str) -> Result<(), Failure> {
        const EVERY: Duration = Duration::from_millis(50);
        self.step("await that no older layout version drains");
        let settling = async {
            while !admin::is_settled(Site::East, &self.stage.mesh, peer).await? {
                tokio::time::sleep(EVERY).await;
            }
            Ok(())
        };
        let limit = self.scope.limits.step;
        tokio::time::timeout(limit, settling).await.unwrap_or_else(|_elapsed| {
            Err(self.not_so(Site::East, "no older layout version drains", "one still does"))
        })
    }

    /// Ends a node that no operator runs, for good.
    pub async fn end_stray(&self, stray: &Stray) -> Result<(), Failure> {
        self.step(format!("end the node {}", stray.name));
        let ended = self.stage.hub.delete_node(&stray.name).await;
        ended.map_err(|error| Failure::harness(Site::East, format!("end the node {}", stray.name), error))
    }
}
