//! Faults that end with what asked for them.

use std::sync::Arc;

use super::active::{Why, heal, heal_now, revive};
use crate::hub::registry::{ControlError, Registry};

/// A fault that is healed when this is dropped.
#[derive(Debug)]
#[must_use = "the fault ends when this is dropped"]
pub struct FaultGuard {
    registry: Arc<Registry>,
    id: Option<u64>,
}

impl FaultGuard {
    pub(in crate::hub) const fn new(registry: Arc<Registry>, id: Option<u64>) -> Self {
        Self { registry, id }
    }

    /// The number of the fault; none for one that does not last.
    #[must_use]
    pub const fn id(&self) -> Option<u64> {
        self.id
    }

    /// Heals the fault, and returns once that is done: a killed node listens again.
    pub async fn heal(mut self) -> Result<(), ControlError> {
        match self.id.take() {
            Some(id) => heal(&self.registry, id, Why::Asked).await,
            None => Ok(()),
        }
    }

    /// Lets the fault last beyond this guard.
    pub fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        // One that has expired is healed.
        let Ok(Some(node)) = heal_now(&self.registry, id, Why::Dropped) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let registry = Arc::clone(&self.registry);
        runtime.spawn(async move {
            if let Err(error) = revive(&registry, &node).await {
                tracing::error!(%node, %error, "a killed node is not started again");
            }
        });
    }
}
