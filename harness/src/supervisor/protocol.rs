//! What clients and a supervisor say to each other: JSON, one message a line.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{
    life::{Holder, Phase},
    pair::{LogTail, PartDeath, Progress},
};
use crate::process::ProcessIdentity;

/// Raised whenever a message changes its meaning.
pub(super) const PROTOCOL: u32 = 1;

/// The first message of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) build: Build,
    pub(super) holder: Holder,
    /// Whether the pair is to live for this client. Who only asks or takes down does not hold it.
    pub(super) holds: bool,
}

/// A client's further messages. The answer carries the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) ask: Ask,
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum Ask {
    /// Are you there?
    Ping,
    /// How are you?
    Status,
    /// This client needs the pair no longer.
    Release {
        /// Whether others may come soon.
        linger: bool,
    },
    /// From now on the pair lives until it is taken down.
    Keep,
    /// Tear down, by force even if others hold the pair.
    Down {
        /// Whether others' holding it counts for nothing.
        force: bool,
    },
    /// For the pair itself.
    Custom {
        /// The request.
        body: serde_json::Value,
    },
}

/// A supervisor's messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum Message {
    /// The first answer.
    Welcome {
        /// Who looks after the pair.
        supervisor: ProcessIdentity,
    },
    /// The first answer to a client of another build.
    Mismatch {
        /// What differs, in words.
        problem: String,
    },
    /// The start goes on.
    Progress(Progress),
    /// The pair can be used.
    Ready {
        /// What clients need to use it.
        description: serde_json::Value,
    },
    /// The start failed; the pair is being removed.
    Failed {
        /// The error and its sources.
        chain: Vec<String>,
        /// Logs that may tell more.
        logs: Vec<LogTail>,
    },
    /// A part ended without being told to.
    Died(PartDeath),
    /// The pair is being taken down.
    Stopping {
        /// Why.
        reason: String,
    },
    /// The answer to a question.
    Answer {
        /// Which question.
        number: u64,
        /// The answer.
        reply: Reply,
    },
}

/// Answers to questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum Reply {
    /// It is done.
    Done,
    /// The pair is being torn down; the supervisor's end is the end of it.
    Stopping,
    /// Others hold the pair.
    Busy {
        /// Who.
        holders: Vec<Holder>,
    },
    /// How the supervisor is.
    Status(Report),
    /// The pair's own answer.
    Custom {
        /// The answer.
        body: serde_json::Value,
    },
    /// The pair's own refusal, or no pair yet.
    Refused {
        /// The error and its sources.
        chain: Vec<String>,
    },
}

/// How a pair is, in its supervisor's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) phase: Phase,
    pub(super) kept: bool,
    pub(super) holders: Vec<Holder>,
    pub(super) died: Vec<String>,
    pub(super) linger: Duration,
}

/// Which executable speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Build {
    version: String,
    executable: PathBuf,
    device: u64,
    inode: u64,
    modified_ns: i128,
}

impl Build {
    pub(super) fn current() -> io::Result<Self> {
        let file = fs::metadata("/proc/self/exe")?;
        let executable = std::env::current_exe()?;
        // The kernel says so behind the path of a file that has been replaced or removed.
        let executable = executable.to_string_lossy().trim_end_matches(" (deleted)").into();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").into(),
            executable,
            device: file.dev(),
            inode: file.ino(),
            modified_ns: i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec()),
        })
    }

    /// What keeps a client from using a supervisor's pair, if anything does.
    ///
    /// Different executables of one version go together: test binaries share a pair with each other and with the
    /// program. The same path with another file behind it has been rebuilt since, so the pair is of an old build.
    pub(super) fn mismatch(&self, supervisor: &Self) -> Option<String> {
        if self.version != supervisor.version {
            return Some(format!(
                "it was started by version {}, this is {}",
                supervisor.version, self.version
            ));
        }
        let rebuilt = self.executable == supervisor.executable
            && (self.device, self.inode, self.modified_ns)
                != (supervisor.device, supervisor.inode, supervisor.modified_ns);
        rebuilt.then(|| format!("{} was rebuilt after the pair was started", self.executable.display()))
    }
}

impl Hello {
    pub(super) fn new(purpose: &str, holds: bool) -> io::Result<Self> {
        let process = ProcessIdentity::current().map_err(io::Error::other)?;
        let holder = Holder { process, purpose: purpose.into() };
        Ok(Self { protocol: PROTOCOL, build: Build::current()?, holder, holds })
    }
}

/// Reads the next message; `None` at the end of the stream. A torn last line is the end, too: who was killed
/// while writing has said nothing.
pub(super) async fn read<T: DeserializeOwned>(
    from: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line).await?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    serde_json::from_slice(&line).map(Some).map_err(malformed)
}

/// Writes one message.
pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await
}

/// Where a client finds the supervisor of a folder.
pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join("supervisor.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build() -> Build {
        Build { version: "1".into(), executable: "/bin/one".into(), device: 1, inode: 2, modified_ns: 3 }
    }

    #[test]
    fn the_same_build_and_other_executables_of_its_version_go_together() {
        assert_eq!(build().mismatch(&build()), None);
        let other = Build { executable: "/bin/two".into(), inode: 9, ..build() };
        assert_eq!(other.mismatch(&build()), None);
    }

    #[test]
    fn another_version_or_a_rebuilt_executable_does_not_match() {
        let newer = Build { version: "2".into(), ..build() };
        assert_eq!(newer.mismatch(&build()).unwrap(), "it was started by version 1, this is 2");
        let rebuilt = Build { modified_ns: 4, ..build() };
        assert!(rebuilt.mismatch(&build()).unwrap().contains("/bin/one was rebuilt"));
    }

    #[tokio::test]
    async fn messages_come_back_as_they_were_written() {
        let hello = Hello::new("a test", true).unwrap();
        let question = Question { number: 7, ask: Ask::Down { force: true } };
        let mut bytes = Vec::new();
        write(&mut bytes, &hello).await.unwrap();
        write(&mut bytes, &question).await.unwrap();
        let mut stream = bytes.as_slice();
        assert_eq!(read(&mut stream).await.unwrap(), Some(hello));
        assert_eq!(read(&mut stream).await.unwrap(), Some(question));
        assert_eq!(read::<Question>(&mut stream).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_torn_last_message_is_the_end_and_a_malformed_one_an_error() {
        assert_eq!(read::<Question>(&mut b"{\"number\":1".as_slice()).await.unwrap(), None);
        let error = read::<Question>(&mut b"{}\n".as_slice()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
