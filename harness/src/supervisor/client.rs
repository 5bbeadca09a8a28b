//! Holding a pair.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::BufReader,
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    sync::{oneshot, watch},
    task::JoinHandle,
    time::Instant,
};

use super::{
    claim::ClaimError,
    control::{ControlError, Hailed},
    folder::PairFolder,
    life::Holder,
    pair::{LogTail, PartDeath, Progress},
    protocol::{self, Ask, Message, Question, Reply},
    remote::RemoteError,
    root::{RootError, StateRoot},
    start::{SpawnError, Wanted},
};
use crate::process::{IdentityError, ProcessIdentity};

/// How long a supervisor may take to tear down before a client stops waiting for it.
const TEARDOWN_DEADLINE: Duration = Duration::from_mins(1);

/// Why there is no pair to use.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The state root cannot be used.
    #[error("cannot use the state folder")]
    Root(#[from] RootError),
    /// No folder or addresses could be had.
    #[error("cannot claim a pair")]
    Claim(#[from] ClaimError),
    /// No supervisor could be started.
    #[error("cannot start a supervisor for the pair")]
    Spawn(#[from] SpawnError),
    /// The supervisor could not be watched.
    #[error("cannot watch the pair's supervisor")]
    Identity(#[from] IdentityError),
    /// The pair did not start; nothing is left of it.
    #[error("the pair did not come up")]
    Failed {
        /// Why.
        source: RemoteError,
        /// Logs that may tell more.
        logs: Vec<LogTail>,
    },
    /// The pair was started by another build, and others use it.
    #[error(
        "{pair} cannot be used: {problem}; it is in use by {}; let that end, or take it down by force",
        describe(holders)
    )]
    Mismatch {
        /// Which pair.
        pair: String,
        /// What differs.
        problem: String,
        /// Who uses it.
        holders: Vec<Holder>,
    },
    /// The supervisor ended without a word.
    #[error("the pair's supervisor died\n{}", log.tail)]
    Lost {
        /// The end of its log.
        log: Box<LogTail>,
    },
    /// The supervisor lives but says nothing.
    #[error(
        "the supervisor of {} has not answered within {deadline:?}; `down` removes it",
        folder.display()
    )]
    Silent {
        /// The pair's folder.
        folder: PathBuf,
        /// How long it was waited for.
        deadline: Duration,
    },
    /// The pair took too long to start.
    #[error("the pair was not ready within {deadline:?}{}", last_step(last.as_ref()))]
    Timeout {
        /// How long it was waited for.
        deadline: Duration,
        /// What it did last.
        last: Option<Progress>,
    },
    /// The caller gave up; nothing is left of the pair unless others use it.
    #[error("cancelled while the pair was being started")]
    Cancelled,
    /// The pair was taken down while it was started or used.
    #[error("the pair is being taken down: {reason}")]
    Stopping {
        /// Why.
        reason: String,
    },
    /// Others use the pair.
    #[error("the pair is in use by {}", describe(holders))]
    Busy {
        /// Who.
        holders: Vec<Holder>,
    },
    /// The pair refused a request.
    #[error("the pair refused the request")]
    Refused {
        /// Why.
        source: RemoteError,
    },
    /// The connection broke.
    #[error("the connection to the pair's supervisor broke")]
    Connection {
        /// Why.
        source: io::Error,
    },
}

fn describe(holders: &[Holder]) -> String {
    let one = |holder: &Holder| format!("process {} ({})", holder.process.pid, holder.purpose);
    if holders.is_empty() {
        "nobody known".into()
    } else {
        holders.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn last_step(last: Option<&Progress>) -> String {
    last.map(|last| format!("; its last step was {}: {}", last.part, last.message)).unwrap_or_default()
}

/// A pair that this process holds. It lives at least as long as this does.
///
/// Dropping it lets go of the pair as a crash would: the pair lives on for its linger time.
#[derive(Debug)]
pub struct Client {
    folder: PathBuf,
    root: StateRoot,
    supervisor: ProcessIdentity,
    description: Value,
    shared: Arc<Shared>,
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    reader: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    asked: AtomicU64,
    pending: Mutex<Pending>,
    deaths: watch::Sender<Vec<PartDeath>>,
    end: watch::Sender<Option<String>>,
}

/// Questions without an answer yet; `None` once there will be no answers any more.
type Pending = Option<BTreeMap<u64, oneshot::Sender<Reply>>>;

impl Client {
    /// What the pair says clients need to use it.
    pub fn description(&self) -> &Value {
        &self.description
    }

    /// The pair's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process that owns the pair.
    pub fn supervisor(&self) -> &ProcessIdentity {
        &self.supervisor
    }

    /// Waits until a part of the pair ended without being told to, or the whole pair does. May be dropped,
    /// repeated, and called by many at once; every call resolves from then on.
    pub async fn died(&self) -> PartDeath {
        let (mut deaths, mut end) = (self.shared.deaths.subscribe(), self.shared.end.subscribe());
        loop {
            if let Some(death) = deaths.borrow_and_update().first() {
                return death.clone();
            }
            if let Some(status) = end.borrow_and_update().clone() {
                return self.supervisor_death(status);
            }
            tokio::select! {
                _ = deaths.changed() => (),
                _ = end.changed() => (),
            }
        }
    }

    /// Sends the pair a request of its own kind.
    pub async fn request(&self, body: Value) -> Result<Value, ClientError> {
        match self.ask(Ask::Custom { body }).await? {
            Reply::Custom { body } => Ok(body),
            other => Err(unexpected(other)),
        }
    }

    /// Asks the supervisor for a sign of life.
    pub async fn ping(&self) -> Result<(), ClientError> {
        self.ask(Ask::Ping).await.map(|_| ())
    }

    /// From now on the pair lives until it is taken down.
    pub async fn keep(&self) -> Result<(), ClientError> {
        self.ask(Ask::Keep).await.map(|_| ())
    }

    /// Lets go of the pair. With `linger` it lives on for a while if nobody else holds it; without, it is torn
    /// down then, and this returns when nothing is left of it.
    pub async fn release(self, linger: bool) -> Result<(), ClientError> {
        match self.ask(Ask::Release { linger }).await? {
            Reply::Stopping => self.ended().await,
            _ => Ok(()),
        }
    }

    /// Takes the pair down, by force even if others use it, and returns when nothing is left of it.
    pub async fn down(self, force: bool) -> Result<(), ClientError> {
        match self.ask(Ask::Down { force }).await? {
            Reply::Busy { holders } => Err(ClientError::Busy { holders }),
            _ => self.ended().await,
        }
    }

    async fn ended(&self) -> Result<(), ClientError> {
        if !self.supervisor.ended(TEARDOWN_DEADLINE).await? {
            return Err(ClientError::Silent { folder: self.folder.clone(), deadline: TEARDOWN_DEADLINE });
        }
        if let Some(lock) = self.root.lock().await? {
            self.root.remove_if_empty(&lock);
        }
        Ok(())
    }

    async fn ask(&self, ask: Ask) -> Result<Reply, ClientError> {
        let number = self.shared.asked.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        if !self.shared.expect(number, answer) {
            return Err(self.over());
        }
        let mut writer = self.writer.lock().await;
        protocol::write(&mut *writer, &Question { number, ask }).await.map_err(|_| self.over())?;
        drop(writer);
        answered.await.map_err(|_| self.over())
    }

    fn over(&self) -> ClientError {
        match self.shared.end.borrow().clone() {
            Some(reason) => ClientError::Stopping { reason },
            None => ClientError::Connection { source: io::ErrorKind::BrokenPipe.into() },
        }
    }

    fn supervisor_death(&self, status: String) -> PartDeath {
        let log = LogTail::read("supervisor", self.folder.join("supervisor.log"));
        PartDeath { part: "supervisor".into(), status, log }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Shared {
    /// Whether an answer can still be expected.
    fn expect(&self, number: u64, answer: oneshot::Sender<Reply>) -> bool {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.as_mut().map(|pending| pending.insert(number, answer)).is_some()
    }

    fn take(&self, message: Message) {
        match message {
            Message::Died(death) => self.deaths.send_modify(|deaths| deaths.push(death)),
            Message::Stopping { reason } => {
                self.end.send_replace(Some(reason));
            }
            Message::Answer { number, reply } => {
                let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
                let asked = pending.as_mut().and_then(|pending| pending.remove(&number));
                // Who asked may have given up.
                drop(asked.map(|asked| asked.send(reply)));
            }
            _ => {}
        }
    }

    fn close(&self) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        self.end.send_if_modified(|end| {
            let news = end.is_none();
            end.get_or_insert_with(|| "the supervisor ended without a word".into());
            news
        });
        *pending = None;
    }

    async fn listen(self: Arc<Self>, mut reader: BufReader<OwnedReadHalf>) {
        while let Ok(Some(message)) = protocol::read(&mut reader).await {
            self.take(message);
        }
        self.close();
    }
}

fn unexpected(reply: Reply) -> ClientError {
    match reply {
        Reply::Refused { chain } => ClientError::Refused { source: RemoteError::new(chain) },
        Reply::Busy { holders } => ClientError::Busy { holders },
        other => ClientError::Connection { source: io::Error::other(format!("unexpected answer {other:?}")) },
    }
}

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
            outcome = self.wait(&mut last, progress) => outcome,
            () = wanted.cancel.cancelled() => return self.give_up(ClientError::Cancelled).await,
            () = tokio::time::sleep_until(until) => {
                return self.give_up(ClientError::Timeout { deadline: wanted.deadline, last }).await;
            }
        };
        match outcome {
            Waited::Ready(description) => {
                let client = self.client(root, description);
                if wanted.kept {
                    // Somebody else may have started it without that wish.
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
        let shared = Arc::new(Shared {
            asked: AtomicU64::new(1),
            pending: Mutex::new(Some(BTreeMap::new())),
            deaths: watch::Sender::new(Vec::new()),
            end: watch::Sender::new(None),
        });
        let reader = tokio::spawn(Arc::clone(&shared).listen(self.reader));
        Client {
            folder: self.folder,
            root: root.clone(),
            supervisor: self.supervisor,
            description,
            shared,
            writer: tokio::sync::Mutex::new(self.writer),
            reader,
        }
    }
}
