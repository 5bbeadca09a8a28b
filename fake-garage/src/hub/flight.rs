//! Calls that have reached a node and wait for their answers.

use std::sync::Arc;

use tokio::sync::oneshot::{self, error::TryRecvError};

use super::actor::MeshActor;
use super::rule::Intervention;
use crate::admin::{Request, Response};
use crate::mesh::NodeIndex;

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) node: NodeIndex,
    pub(super) sender: oneshot::Sender<Answer>,
    pub(super) amendment: Option<Amendment>,
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Answer {
    /// What is sent; nothing where the connection closes.
    pub(super) response: Option<Response>,
    /// The place of the end in the history.
    pub(super) recorded: u64,
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
    answer: oneshot::Receiver<Answer>,
    /// Whether the mesh has ended the call.
    over: bool,
}

impl CallInProgress {
    pub(super) const fn new(
        actor: Arc<MeshActor>,
        call: u64,
        node: NodeIndex,
        answer: oneshot::Receiver<Answer>,
    ) -> Self {
        Self { actor, call, node, answer, over: false }
    }

    /// The answer if there is one already, `None` in it if there will never be one; else the call goes on.
    pub(super) fn try_answer(mut self) -> Result<Option<Answer>, Self> {
        match self.answer.try_recv() {
            Ok(answer) => {
                self.over = true;
                Ok(Some(answer))
            }
            Err(TryRecvError::Closed) => Ok(None),
            Err(TryRecvError::Empty) => Err(self),
        }
    }

    /// The answer; `None` if there will never be one.
    pub(super) async fn answer(mut self) -> Option<Answer> {
        let answer = (&mut self.answer).await.ok();
        self.over = answer.is_some();
        answer
    }
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        if !self.over {
            self.actor.abandon(self.call, self.node);
        }
    }
}
