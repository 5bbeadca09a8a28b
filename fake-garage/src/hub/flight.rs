//! Calls that have reached a node and wait for their answers.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::actor::MeshActor;
use super::rule::Intervention;
use crate::admin::{Request, Response};
use crate::mesh::NodeIndex;

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) node: NodeIndex,
    pub(super) sender: oneshot::Sender<Option<Response>>,
    pub(super) amendment: Option<Amendment>,
}

/// What a rule makes of an answer.
#[derive(Debug)]
pub(super) enum Amendment {
    Replace(Response),
    Drop,
}

/// A call that has begun.
pub(super) struct Begun {
    pub(super) progress: CallInProgress,
    pub(super) request: Request,
    pub(super) intervention: Option<Intervention>,
}

/// A call under way. Dropping it tells the mesh that the caller has gone away.
#[derive(Debug)]
pub(super) struct CallInProgress {
    pub(super) actor: Arc<MeshActor>,
    pub(super) call: u64,
    pub(super) node: NodeIndex,
    pub(super) answer: oneshot::Receiver<Option<Response>>,
}

impl CallInProgress {
    /// The answer; `None` if there will never be one.
    pub(super) async fn answer(mut self) -> Option<Response> {
        (&mut self.answer).await.ok().flatten()
    }
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        self.actor.abandon(self.call, self.node);
    }
}
