//! A short conversation with a supervisor by someone who does not hold its pair.

use std::{io, path::Path, time::Duration};

use tokio::{
    io::BufReader,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use super::protocol::{self, Ask, Hello, Message, Question, Reply};
use crate::process::ProcessIdentity;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ControlError {
    /// Nobody takes connections any more.
    #[error("the supervisor has gone")]
    Gone { source: io::Error },
    /// Somebody does, but says nothing.
    #[error("the supervisor has not answered within {deadline:?}")]
    Silent { deadline: Duration },
    /// It speaks another protocol.
    #[error("the supervisor cannot be talked to: {problem}")]
    Mismatch { problem: String },
}

/// The conversation.
pub(super) struct Control {
    pub(super) supervisor: ProcessIdentity,
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    deadline: Duration,
    asked: u64,
}

impl Control {
    /// Connects; every answer is awaited for `deadline` at most.
    pub(super) async fn open(folder: &Path, deadline: Duration) -> Result<Self, ControlError> {
        within(deadline, async {
            let (reader, writer, supervisor) = hail(folder, "control", false).await?.welcomed().await?;
            Ok(Self { supervisor, reader, writer, deadline, asked: 0 })
        })
        .await
    }

    pub(super) async fn ask(&mut self, ask: Ask) -> Result<Reply, ControlError> {
        self.asked += 1;
        let number = self.asked;
        let deadline = self.deadline;
        within(deadline, async {
            protocol::write(&mut self.writer, &Question { number, ask }).await.map_err(gone)?;
            loop {
                match next(&mut self.reader).await? {
                    Message::Answer { number: answered, reply } if answered == number => return Ok(reply),
                    _ => {}
                }
            }
        })
        .await
    }
}

/// A connection on which hello has been said, but not been answered yet.
pub(super) struct Hailed {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// Connects and says hello. A socket takes both before anybody serves it.
pub(super) async fn hail(folder: &Path, purpose: &str, holds: bool) -> Result<Hailed, ControlError> {
    let hello = Hello::new(purpose, holds).map_err(gone)?;
    let stream = UnixStream::connect(protocol::socket(folder)).await.map_err(gone)?;
    let (reader, mut writer) = stream.into_split();
    protocol::write(&mut writer, &hello).await.map_err(gone)?;
    Ok(Hailed { reader: BufReader::new(reader), writer })
}

impl Hailed {
    /// Returns once the supervisor has said who it is.
    pub(super) async fn welcomed(
        mut self,
    ) -> Result<(BufReader<OwnedReadHalf>, OwnedWriteHalf, ProcessIdentity), ControlError> {
        match next(&mut self.reader).await? {
            Message::Welcome { supervisor } => Ok((self.reader, self.writer, supervisor)),
            Message::Mismatch { problem } => Err(ControlError::Mismatch { problem }),
            Message::Stopping { reason } => Err(gone(io::Error::other(reason))),
            _ => Err(gone(io::Error::other("it did not introduce itself"))),
        }
    }
}

async fn next(reader: &mut BufReader<OwnedReadHalf>) -> Result<Message, ControlError> {
    let message = protocol::read(reader).await.map_err(gone)?;
    message.ok_or_else(|| gone(io::ErrorKind::UnexpectedEof.into()))
}

async fn within<T>(
    deadline: Duration,
    work: impl Future<Output = Result<T, ControlError>>,
) -> Result<T, ControlError> {
    timeout(deadline, work).await.unwrap_or(Err(ControlError::Silent { deadline }))
}

fn gone(source: io::Error) -> ControlError {
    ControlError::Gone { source }
}
