//! What can be done to a hub in the same process, without its control API and without sockets.

use std::sync::Arc;

use super::fault::{FaultGuard, FaultRequest, inject};
use super::registry::{ControlError, Place};
use super::rule::RuleRequest;
use super::rule_guard::RuleGuard;
use super::serve::Hub;
use super::state;
use crate::admin::{Request, Response};

impl Hub {
    /// Does something to nodes, or to the links between them, for as long as the guard lives.
    pub async fn fault(&self, request: FaultRequest) -> Result<FaultGuard, ControlError> {
        let id = inject(self.registry(), request).await?;
        Ok(FaultGuard::new(Arc::clone(self.registry()), id))
    }

    /// Installs a fault on single calls for as long as the guard lives.
    #[expect(clippy::needless_pass_by_value, reason = "a request is made for one rule")]
    pub fn rule(&self, request: RuleRequest) -> RuleGuard {
        RuleGuard::new(self.registry().shared(), &request)
    }

    /// Calls the admin API of a node (`site/namespace/pod`), recorded as any call. `None` means that it closed the
    /// connection without an answer.
    pub async fn call(&self, node: &str, request: Request) -> Result<Option<Response>, ControlError> {
        let Place { actor, node } = self.registry().node(node)?;
        Ok(actor.call(node, request, None).await)
    }

    /// The state of every node as a table, of one mesh or of all: for messages about failures.
    pub fn table(&self, mesh: Option<&str>) -> Result<String, ControlError> {
        state::table(self.registry(), mesh)
    }
}
