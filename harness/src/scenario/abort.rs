//! Ending a run early.

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// Who made a run end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// A part of the system under test died: the cells failed.
    System,
    /// A part of the harness died: nothing can be told.
    Harness,
    /// A person interrupted it.
    Interrupt,
    /// Another program asked it to end.
    Terminate,
}

/// Why a run ends early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort {
    /// Who made it.
    pub blame: Blame,
    /// What happened, in a line.
    pub reason: String,
    /// What may tell more: the end of a log.
    #[serde(default)]
    pub detail: String,
}

/// Tells everyone in a run, once, that it ends early. The first reason stays.
#[derive(Debug, Clone)]
pub struct AbortSwitch(watch::Sender<Option<Abort>>);

impl Default for AbortSwitch {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl AbortSwitch {
    /// Ends the run early, unless it is ending early already.
    pub fn abort(&self, abort: Abort) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(abort);
            first
        });
    }

    /// Why the run ends early, if it does.
    #[must_use]
    pub fn current(&self) -> Option<Abort> {
        self.0.borrow().clone()
    }

    /// Waits until the run ends early.
    pub async fn aborted(&self) -> Abort {
        let mut receiver = self.0.subscribe();
        match receiver.wait_for(Option::is_some).await.map(|abort| abort.clone()) {
            Ok(Some(abort)) => abort,
            // The sender lives in `self`, so this cannot come to pass.
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays() {
        let switch = AbortSwitch::default();
        let waiting = switch.clone();
        let waiting = tokio::spawn(async move { waiting.aborted().await });
        let abort = |blame, reason: &str| Abort { blame, reason: reason.to_owned(), detail: String::new() };
        switch.abort(abort(Blame::System, "the operator died"));
        switch.abort(abort(Blame::Interrupt, "SIGINT"));
        assert_eq!(waiting.await.unwrap(), abort(Blame::System, "the operator died"));
        assert_eq!(switch.current(), Some(abort(Blame::System, "the operator died")));
    }
}
