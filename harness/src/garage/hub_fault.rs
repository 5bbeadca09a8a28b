//! Faults of the hub that end with what asked for them.

use reqwest::Method;
use serde_json::Value;

use super::hub::{Hub, HubError};

/// A fault that the hub heals when this is dropped.
///
/// Dropping it only begins to heal, in the background of the runtime; [`HubFault::heal`] returns once it is done.
/// Without a runtime the fault stays: give it an `expiresMs` where that could happen.
#[derive(Debug)]
#[must_use = "the fault ends when this is dropped"]
pub struct HubFault {
    hub: Hub,
    id: Option<u64>,
}

impl Hub {
    /// Injects a fault, an object with an `action` as the hub's control API takes it, for as long as the guard lives.
    pub async fn hold_fault(&self, fault: &Value) -> Result<HubFault, HubError> {
        let path = "/faults".to_owned();
        let answer = self.call(Method::POST, path.clone(), Some(fault.clone())).await?;
        let answer: Value = answer.json().await.map_err(|source| HubError::Unreachable {
            method: Method::POST,
            path,
            source,
        })?;
        Ok(HubFault { hub: self.clone(), id: answer["id"].as_u64() })
    }

    /// Heals a fault. One that is not known is fine: it may have been healed by itself.
    pub async fn heal_fault(&self, id: u64) -> Result<(), HubError> {
        self.delete(format!("/faults/{id}")).await
    }

    /// The state of every node of a mesh as a table, for messages about failures.
    pub async fn table(&self, mesh: &str) -> Result<String, HubError> {
        let path = format!("/table?mesh={mesh}");
        let answer = self.call(Method::GET, path.clone(), None).await?;
        answer.text().await.map_err(|source| HubError::Unreachable { method: Method::GET, path, source })
    }
}

impl HubFault {
    /// The number of the fault; none for one that was over at once.
    #[must_use]
    pub const fn id(&self) -> Option<u64> {
        self.id
    }

    /// Heals the fault, and returns once that is done.
    pub async fn heal(mut self) -> Result<(), HubError> {
        match self.id.take() {
            Some(id) => self.hub.heal_fault(id).await,
            None => Ok(()),
        }
    }

    /// Lets the fault last beyond this guard.
    pub fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for HubFault {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id, tokio::runtime::Handle::try_current()) else { return };
        let hub = self.hub.clone();
        runtime.spawn(async move {
            if let Err(error) = hub.heal_fault(id).await {
                tracing::warn!(fault = id, %error, "a fault of the hub is not healed");
            }
        });
    }
}
