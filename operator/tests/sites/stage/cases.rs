//! Situations that many tests begin with.

use harness::site::Site;
use serde_json::{Value, json};

use super::garage::role;
use super::manifest::Role;
use super::operator::Operator;
use super::scene::Scene;

/// The first storage node.
pub const FIRST: &str = "garage-storage-0";
/// The second storage node.
pub const SECOND: &str = "garage-storage-1";
/// The third storage node, of clusters with three.
pub const THIRD: &str = "garage-storage-2";

impl Scene {
    /// The usual cluster of `site` with its layout: made by its own operator, or by another actor for a Follower.
    pub async fn with_layout(&self, site: Site, role: Role, flags: &[&str]) -> Operator {
        self.with_layout_of(site, role, flags, self.cluster(site, role)).await
    }

    /// Like [`Scene::with_layout`], for this cluster.
    pub async fn with_layout_of(&self, site: Site, role: Role, flags: &[&str], cluster: Value) -> Operator {
        let operator = self.operator(site, flags).await;
        let replicas = cluster["spec"]["storage"]["replicas"].as_u64().unwrap();
        self.create_cluster(site, cluster).await;
        let names: Vec<String> = (0..replicas).map(|ordinal| format!("garage-storage-{ordinal}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if !role.writes() {
            self.give_roles(site, names[0], &names).await;
        }
        self.until_running(site, &names).await;
        operator
    }

    /// Another actor gives roles to nodes of `site` through one of them, as the writer of another site would.
    pub async fn give_roles(&self, site: Site, through: &str, names: &[&str]) {
        let mut roles = Vec::new();
        for name in names {
            roles.push(role(&self.until_identity(site, name).await, site.name()));
        }
        self.apply(site, through, Value::Array(roles)).await;
    }

    /// A cluster of three storage nodes.
    pub fn three_nodes(&self, site: Site, role: Role) -> Value {
        let mut cluster = self.cluster(site, role);
        cluster["spec"]["storage"]["replicas"] = json!(3);
        cluster
    }
}
