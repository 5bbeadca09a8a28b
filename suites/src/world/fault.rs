//! What is broken on purpose in the mesh of a cell.

use std::time::Duration;

use harness::failure::Failure;
use harness::site::Site;
use serde_json::{Value, json};

use super::World;

/// A rule of the hub on single calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule(u64);

/// A fault that lasts.
#[derive(Debug, Clone, Copy)]
pub struct Fault(u64);

impl World<'_> {
    /// Lets the hub treat calls of this mesh as `effect` says. `pattern` may name `caller`, `node`, `method`, `path`;
    /// `count` calls are treated so, all with 0.
    pub async fn rule(&self, pattern: &Value, count: u64, effect: &Value) -> Result<Rule, Failure> {
        let mut pattern = pattern.clone();
        pattern["mesh"] = json!(self.stage.mesh.name);
        self.step(format!("from now on calls {pattern} meet {effect}"));
        let rule = json!({"match": pattern, "count": count, "effect": effect});
        let added = self.stage.hub.add_rule(&rule).await;
        added.map(Rule).map_err(|error| Failure::harness(Site::East, "add a rule", error))
    }

    /// Ends a rule; calls that it holds go on.
    pub async fn end_rule(&self, rule: Rule) -> Result<(), Failure> {
        self.step(format!("end rule {}", rule.0));
        let removed = self.stage.hub.remove_rule(rule.0).await;
        removed.map_err(|error| Failure::harness(Site::East, "end a rule", error))
    }

    /// How often the rule has acted.
    pub async fn acted(&self, rule: Rule) -> Result<u64, Failure> {
        let rules = self.stage.hub.rules().await;
        let rules = rules.map_err(|error| Failure::harness(Site::East, "read the rules", error))?;
        let found = rules.as_array().into_iter().flatten().find(|state| state["id"] == rule.0);
        Ok(found.and_then(|state| state["acted"].as_u64()).unwrap_or_default())
    }

    /// Waits until the rule has acted so many times. A call that it holds is in no journal yet: the hub is asked.
    pub async fn met(&self, rule: Rule, times: u64) -> Result<(), Failure> {
        const EVERY: Duration = Duration::from_millis(50);
        let acting = async {
            while self.acted(rule).await? < times {
                tokio::time::sleep(EVERY).await;
            }
            Ok(())
        };
        let limit = self.scope.limits.step;
        tokio::time::timeout(limit, acting).await.unwrap_or_else(|_elapsed| {
            Err(self.not_so(Site::East, format!("{times} calls meet rule {}", rule.0), "they do not"))
        })
    }

    /// Injects a fault into the nodes of this mesh.
    pub async fn fault(&self, fault: &Value) -> Result<(), Failure> {
        self.inject(fault).await.map(drop)
    }

    /// Injects a fault that lasts until [`World::end_fault`].
    pub async fn begin_fault(&self, fault: &Value) -> Result<Fault, Failure> {
        let lasting = self.inject(fault).await?;
        let Some(id) = lasting else {
            return Err(self.not_so(
                Site::East,
                format!("the fault {fault} lasts"),
                "the hub gave it no number",
            ));
        };
        Ok(Fault(id))
    }

    /// Ends a fault.
    pub async fn end_fault(&self, fault: Fault) -> Result<(), Failure> {
        self.step(format!("end fault {}", fault.0));
        let ended = self.stage.hub.end_fault(fault.0).await;
        ended.map_err(|error| Failure::harness(Site::East, format!("end fault {}", fault.0), error))
    }

    async fn inject(&self, fault: &Value) -> Result<Option<u64>, Failure> {
        self.step(format!("fault: {fault}"));
        let done = self.stage.hub.fault(fault).await;
        done.map_err(|error| Failure::harness(Site::East, format!("inject {fault}"), error))
    }

    /// The name in the hub of the node `name` of `site`.
    #[must_use]
    pub fn hub_name(&self, site: Site, name: &str) -> String {
        format!("{site}/{}/{name}-0", self.scope.namespace)
    }

    /// Separates the nodes of both sites, or of a site and a stray one.
    pub async fn partition(&self) -> Result<(), Failure> {
        let mesh = &self.stage.mesh.name;
        self.fault(
            &json!({"action": "partition", "mesh": mesh, "between": [["east"], ["west"]], "kind": "reset"}),
        )
        .await
    }

    /// Joins them again.
    pub async fn heal(&self) -> Result<(), Failure> {
        self.fault(&json!({"action": "heal", "mesh": self.stage.mesh.name})).await
    }
}
