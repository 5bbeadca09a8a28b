//! Where clients are served: who holds the pair, what they hear, what they get.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use tokio::{
    net::{UnixStream, unix::SocketAddr},
    sync::mpsc,
};

use super::{
    super::{
        folder::Owner,
        life::{Life, Phase},
        pair::{LogTail, PartDeath, Progress, Running, StartError, chain},
        protocol::{Ask, Build, Hello, Message, PROTOCOL, Question, Reply, Report},
    },
    connection::{Connection, Event},
};
use crate::process::ProcessIdentity;

/// How long to wait for room when no connection can be taken, as when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long clients that do not read may hold up the end.
const FLUSH_DEADLINE: Duration = Duration::from_secs(2);

/// The desk.
pub(super) struct Desk {
    pub(super) life: Life,
    reason: Option<String>,
    linger: Duration,
    me: ProcessIdentity,
    build: Build,
    events: mpsc::UnboundedSender<Event>,
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    progress: Vec<Progress>,
    deaths: Vec<PartDeath>,
    running: Option<Arc<dyn Running>>,
    failure: Option<(Vec<String>, Vec<LogTail>)>,
}

impl Desk {
    pub(super) fn new(
        owner: &Owner,
        me: ProcessIdentity,
        events: mpsc::UnboundedSender<Event>,
    ) -> io::Result<Self> {
        Ok(Self {
            life: Life::new(owner.kept),
            reason: None,
            linger: owner.linger,
            me,
            build: Build::current()?,
            events,
            connections: BTreeMap::new(),
            accepted: 0,
            progress: Vec::new(),
            deaths: Vec::new(),
            running: None,
            failure: None,
        })
    }

    /// The pair, once it runs.
    pub(super) fn running(&self) -> Option<Arc<dyn Running>> {
        self.running.clone()
    }

    /// Whether the start failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Why the pair is torn down.
    pub(super) fn reason(&self) -> String {
        self.reason.clone().unwrap_or_else(|| "nobody uses the pair any more".into())
    }

    pub(super) async fn accept(&mut self, accepted: io::Result<(UnixStream, SocketAddr)>) {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                return;
            }
        };
        // The folder keeps others out; this is the second lock.
        let uid = rustix::process::geteuid().as_raw();
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == uid || peer.uid() == 0) {
            tracing::warn!("a connection of another user is refused");
            return;
        }
        self.accepted += 1;
        let connection = Connection::open(self.accepted, stream, self.events.clone());
        self.connections.insert(self.accepted, connection);
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Hello(client, hello) => self.hello(client, *hello),
            Event::Question(client, question) => self.question(client, question),
            Event::Answer(client, number, reply) => self.answer(client, number, reply),
            Event::Gone(client) => {
                self.connections.remove(&client);
                self.life.vanished(client);
            }
        }
    }

    pub(super) fn progress(&mut self, progress: Progress) {
        tracing::info!(part = progress.part, "{}", progress.message);
        self.progress.push(progress.clone());
        self.tell(&Message::Progress(progress));
    }

    pub(super) fn started(&mut self, result: Result<Arc<dyn Running>, StartError>) {
        match result {
            Ok(running) => {
                tracing::info!("ready");
                self.life.started();
                self.tell(&Message::Ready { description: running.description() });
                self.running = Some(running);
            }
            Err(error) => {
                let chain = chain(&error);
                tracing::error!("{}", chain.join(": "));
                self.end("the start failed");
                self.tell(&Message::Failed { chain: chain.clone(), logs: error.logs().to_vec() });
                self.failure = Some((chain, error.logs().to_vec()));
            }
        }
    }

    pub(super) fn died(&mut self, death: PartDeath) {
        tracing::error!(part = death.part, status = death.status, "died");
        self.life.part_died();
        self.reason = Some(format!("{} died and nobody uses the pair any more", death.part));
        self.deaths.push(death.clone());
        self.tell(&Message::Died(death));
    }

    pub(super) fn linger_elapsed(&mut self) {
        self.life.linger_elapsed();
    }

    pub(super) fn interrupted(&mut self, signal: &str) {
        self.end(&format!("the supervisor got {signal}"));
    }

    /// Tells everybody that this is the end.
    pub(super) fn stopping(&mut self, reason: &str) {
        self.tell(&Message::Stopping { reason: reason.into() });
    }

    /// Waits until clients have got what they were told, within reason.
    pub(super) async fn close(self) {
        let writers: Vec<_> = self.connections.into_values().map(Connection::finish).collect();
        let flushed = tokio::time::timeout(FLUSH_DEADLINE, futures::future::join_all(writers)).await;
        if flushed.is_err() {
            tracing::warn!("a client does not read what it is told");
        }
    }

    fn end(&mut self, reason: &str) {
        self.life.stop();
        self.reason = Some(reason.into());
    }

    fn tell(&self, message: &Message) {
        for connection in self.connections.values().filter(|connection| connection.holds) {
            connection.send(message.clone());
        }
    }

    fn hello(&mut self, client: u64, hello: Hello) {
        let mismatch = self.mismatch(&hello);
        if let Some(problem) = mismatch {
            return self.send(client, Message::Mismatch { problem });
        }
        let failed = self.failure.is_some();
        if hello.holds && !failed && self.life.phase() == Phase::Stopping {
            // Not welcome any more: this client is to look for another pair once this one is gone.
            return self.send(client, Message::Stopping { reason: self.reason() });
        }
        self.send(client, Message::Welcome { supervisor: self.me.clone() });
        if !hello.holds {
            return;
        }
        tracing::info!(client, pid = hello.holder.process.pid, purpose = hello.holder.purpose, "joined");
        self.life.joined(client, hello.holder);
        for message in self.so_far() {
            self.send(client, message);
        }
        if let Some(connection) = self.connections.get_mut(&client) {
            connection.holds = true;
        }
    }

    /// Who comes later hears everything from the beginning.
    fn so_far(&self) -> Vec<Message> {
        let mut messages: Vec<Message> = self.progress.iter().cloned().map(Message::Progress).collect();
        if let Some(running) = &self.running {
            messages.push(Message::Ready { description: running.description() });
        }
        if let Some((chain, logs)) = &self.failure {
            messages.push(Message::Failed { chain: chain.clone(), logs: logs.clone() });
        }
        messages.extend(self.deaths.iter().cloned().map(Message::Died));
        messages
    }

    /// Who only asks, or takes the pair down, may be of any build.
    fn mismatch(&self, hello: &Hello) -> Option<String> {
        if hello.protocol != PROTOCOL {
            return Some(format!("it speaks protocol {PROTOCOL}, this is protocol {}", hello.protocol));
        }
        if hello.holds { hello.build.mismatch(&self.build) } else { None }
    }

    fn question(&mut self, client: u64, question: Question) {
        let Question { number, ask } = question;
        let reply = match ask {
            Ask::Ping => Reply::Done,
            Ask::Status => Reply::Status(self.report()),
            Ask::Keep => {
                self.life.keep();
                Reply::Done
            }
            Ask::Release { linger } => self.release(client, linger),
            Ask::Down { force } => self.down(client, force),
            Ask::Custom { body } => return self.custom(client, number, body),
        };
        self.answer(client, number, reply);
    }

    fn release(&mut self, client: u64, linger: bool) -> Reply {
        self.life.released(client, linger);
        if self.life.wish() == super::Wish::Stop { Reply::Stopping } else { Reply::Done }
    }

    fn down(&mut self, client: u64, force: bool) -> Reply {
        let under_way = self.life.phase() == Phase::Stopping;
        match self.life.down(client, force || under_way) {
            Ok(()) => {
                self.reason.get_or_insert_with(|| "the pair was taken down".into());
                Reply::Stopping
            }
            Err(holders) => Reply::Busy { holders },
        }
    }

    fn custom(&mut self, client: u64, number: u64, body: serde_json::Value) {
        let Some(running) = self.running() else {
            let chain = vec!["the pair does not run yet".into()];
            return self.answer(client, number, Reply::Refused { chain });
        };
        let events = self.events.clone();
        tokio::spawn(async move {
            let reply = match running.request(body).await {
                Ok(body) => Reply::Custom { body },
                Err(error) => Reply::Refused { chain: chain(error.as_ref()) },
            };
            drop(events.send(Event::Answer(client, number, reply)));
        });
    }

    fn answer(&self, client: u64, number: u64, reply: Reply) {
        self.send(client, Message::Answer { number, reply });
    }

    fn send(&self, client: u64, message: Message) {
        if let Some(connection) = self.connections.get(&client) {
            connection.send(message);
        }
    }

    fn report(&self) -> Report {
        Report {
            phase: self.life.phase(),
            kept: self.life.kept(),
            holders: self.life.holders(),
            died: self.deaths.iter().map(|death| death.part.clone()).collect(),
            linger: self.linger,
        }
    }
}
