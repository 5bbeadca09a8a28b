//! Waiting for a pair that may not be ready yet.

use std::{path::PathBuf, time::Duration};

use serde_json::Value;
use tokio::{
    io::BufReader,
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    time::Instant,
};

use super::{
    client::{Client, TEARDOWN_DEADLINE},
    client_error::ClientError,
    control::{ControlError, Hailed},
    folder::PairFolder,
    pair::{LogTail, Progress},
    protocol::{self, Ask, Message, Question, Reply},
    remote::RemoteError,
    root::StateRoot,
    start::Wanted,
};
use crate::process::ProcessIdentity;

/// A client of a pair that may not be ready yet.
pub(super) struct Joined {
    folder: PathBuf,
    /// Whether the pair was started for this client.
    started: bool,
    supervisor: ProcessIdentity,
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// How waiting for a pair ends.
enum Waited {
    Ready(Value),
    Failed(Vec<String>, Vec<LogTail>),
    Stopping(String),
    Lost,
}

impl Joined {
    /// Waits until the supervisor has said who it is.
    pub(super) async fn welcomed(
        folder: &PairFolder,
        started: bool,
        hailed: Hailed,
    ) -> Result<Self, ControlError> {
        let (reader, writer, supervisor) = hailed.welcomed().await?;
        Ok(Self { folder: folder.path.clone(), started, supervisor, reader, writer })
    }

    /// Waits until the pair can be used.
    pub(super) async fn ready(
        mut self,
        root: &StateRoot,
        wanted: &Wanted,
        left: Duration,
        progress: &mut (impl FnMut(&Progress) + Send),
    ) -> Result<Client, ClientError> {
        let mut last = None;
        let until = Instant::now() + left;
        let outcome = tokio::select! {
            // Who gave up gets no pair, not even one that came up this moment.
            biased;
            () = wanted.cancel.cancelled() => return self.give_up(ClientError::Cancelled).await,
            outcome = self.wait(&mut last, progress) => outcome,
            () = tokio::time::sleep_until(until) => {
                return self.give_up(ClientError::Timeout { deadline: wanted.deadline, last }).await;
            }
        };
        match outcome {
            Waited::Ready(description) => {
                // Whoever else started it may not have had that wish.
                let keep = wanted.kept && !self.started;
                let client = self.client(root, description);
                if keep {
                    client.keep().await?;
                }
                Ok(client)
            }
            Waited::Failed(chain, logs) => {
                self.ended().await?;
                Err(ClientError::Failed { source: RemoteError::new(chain), logs })
            }
            Waited::Stopping(reason) => {
                self.ended().await?;
                Err(ClientError::Stopping { reason })
            }
            Waited::Lost => Err(ClientError::Lost {
                log: Box::new(LogTail::read("supervisor", self.folder.join("supervisor.log"))),
            }),
        }
    }

    async fn wait(&mut self, last: &mut Option<Progress>, progress: &mut impl FnMut(&Progress)) -> Waited {
        loop {
            match protocol::read(&mut self.reader).await {
                Ok(Some(Message::Progress(step))) => {
                    progress(&step);
                    *last = Some(step);
                }
                Ok(Some(Message::Ready { description })) => return Waited::Ready(description),
                Ok(Some(Message::Failed { chain, logs })) => return Waited::Failed(chain, logs),
                Ok(Some(Message::Stopping { reason })) => return Waited::Stopping(reason),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return Waited::Lost,
            }
        }
    }

    /// Lets go of the pair without linger. If that ends it, waits for its end.
    async fn give_up(mut self, error: ClientError) -> Result<Client, ClientError> {
        // A pair to be kept may have come up this moment and would stay: whoever started it takes it down again,
        // if nobody else has joined it.
        let asks = [self.started.then_some(Ask::Down { force: false }), Some(Ask::Release { linger: false })];
        for ask in asks.into_iter().flatten() {
            match self.ask(ask).await {
                Some(Reply::Busy { .. }) => {}
                Some(Reply::Stopping) => {
                    self.ended().await?;
                    break;
                }
                _ => break,
            }
        }
        Err(error)
    }

    /// `None` if the supervisor is gone.
    async fn ask(&mut self, ask: Ask) -> Option<Reply> {
        protocol::write(&mut self.writer, &Question { number: 0, ask }).await.ok()?;
        loop {
            if let Message::Answer { reply, .. } = protocol::read(&mut self.reader).await.ok()?? {
                return Some(reply);
            }
        }
    }

    async fn ended(&self) -> Result<(), ClientError> {
        if self.supervisor.ended(TEARDOWN_DEADLINE).await? {
            return Ok(());
        }
        Err(ClientError::Silent { folder: self.folder.clone(), deadline: TEARDOWN_DEADLINE })
    }

    fn client(self, root: &StateRoot, description: Value) -> Client {
        Client::new(self.folder, root.clone(), self.supervisor, description, self.reader, self.writer)
    }
}
