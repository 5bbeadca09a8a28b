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
};

pub use super::client_error::ClientError;
use super::{
    pair::{LogTail, PartDeath},
    protocol::{self, Ask, Message, Question, Reply},
    remote::RemoteError,
    root::StateRoot,
};
use crate::process::ProcessIdentity;

/// How long a supervisor may take to tear down before a client stops waiting for it.
pub(super) const TEARDOWN_DEADLINE: Duration = Duration::from_mins(1);

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
    pub(super) fn new(
        folder: PathBuf,
        root: StateRoot,
        supervisor: ProcessIdentity,
        description: Value,
        reader: BufReader<OwnedReadHalf>,
        writer: OwnedWriteHalf,
    ) -> Self {
        let shared = Arc::new(Shared {
            asked: AtomicU64::new(1),
            pending: Mutex::new(Some(BTreeMap::new())),
            deaths: watch::Sender::new(Vec::new()),
            end: watch::Sender::new(None),
        });
        let reader = tokio::spawn(Arc::clone(&shared).listen(reader));
        let writer = tokio::sync::Mutex::new(writer);
        Self { folder, root, supervisor, description, shared, writer, reader }
    }

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
