//! Background work of Garage nodes (operator contract §1.5, Garage admin reference §10b). Nothing here is a layout
//! write: a Follower may call it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::PerNode;
use super::client::AdminClient;
use super::error::AdminError;

/// A background worker of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worker {
    /// Number, growing within one run of the process.
    pub id: u64,
    /// What it does.
    pub name: String,
    /// `"busy"`, `"idle"`, `"done"` or `{"throttled":…}`.
    pub state: Value,
    /// Errors so far.
    #[serde(default)]
    pub errors: u64,
    /// What it has to do; absent for workers without a queue.
    #[serde(default)]
    pub queue_length: Option<u64>,
    /// Items it cannot do for now.
    #[serde(default)]
    pub persistent_errors: Option<u64>,
}

impl Worker {
    /// Whether it is in this state.
    pub fn is(&self, state: &str) -> bool {
        self.state == state
    }
}

impl AdminClient {
    /// The workers of every node: `ListWorkers?node=*`. A node that does not answer fails the call.
    pub async fn list_workers(&self) -> Result<BTreeMap<String, Vec<Worker>>, AdminError> {
        let body = json!({ "busyOnly": false, "errorOnly": false });
        let answer = self.post_to("ListWorkers", "?node=*", Some(&body)).await?;
        self.everyone("ListWorkers", answer)
    }

    /// How many blocks each node cannot fetch: `ListBlockErrors?node=*`.
    pub async fn list_block_errors(&self) -> Result<BTreeMap<String, usize>, AdminError> {
        let answer: PerNode<Vec<Value>> = self.get_from("ListBlockErrors", "?node=*").await?;
        let errors = self.everyone("ListBlockErrors", answer)?;
        Ok(errors.into_iter().map(|(node, errors)| (node, errors.len())).collect())
    }

    /// Starts a repair on one node: `LaunchRepairOperation`.
    pub async fn launch_repair(&self, node: &str, repair: &str) -> Result<(), AdminError> {
        let query = format!("?node={node}");
        let body = json!({ "repairType": repair });
        let answer: PerNode<Value> = self.post_to("LaunchRepairOperation", &query, Some(&body)).await?;
        self.everyone("LaunchRepairOperation", answer).map(drop)
    }

    /// An error that is embedded in a success is an error.
    fn everyone<T>(
        &self,
        operation: &'static str,
        answer: PerNode<T>,
    ) -> Result<BTreeMap<String, T>, AdminError> {
        let call = || self.call(&reqwest::Method::POST, operation);
        if let Some((node, error)) = answer.error.iter().next() {
            return Err(AdminError::Unexpected {
                call: call(),
                what: format!("an error of node {node}: {error}"),
            });
        }
        if answer.success.is_empty() {
            return Err(AdminError::Unexpected { call: call(), what: "no node at all".to_owned() });
        }
        Ok(answer.success)
    }
}
