//! The supervisor's process: owns a pair from its start to the removal of its folder.

mod connection;
mod desk;
mod inherited;
mod teardown;

use std::{
    ffi::OsString,
    future::pending,
    io,
    path::Path,
    pin::{Pin, pin},
    sync::Arc,
};

use tokio::{
    net::UnixListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, Sleep, sleep_until},
};

use self::{
    connection::Event,
    desk::Desk,
    inherited::{InheritError, Inherited},
};
use super::{
    folder::{Owner, PairFolder},
    life::Wish,
    pair::{Context, Pair, PartDeath, Progress, ProgressSink, Running, StartError},
};
use crate::process::{IdentityError, Launcher, ProcessIdentity, RecordError};

/// The hidden subcommand's name.
pub(crate) const COMMAND: &str = "__supervise";

/// Makes the pair that an executable's supervisors own.
pub type MakePair = fn() -> Arc<dyn Pair>;

/// Why a supervisor could not do its work.
#[derive(Debug, thiserror::Error)]
enum SuperviseError {
    #[error("this executable has no pair to supervise: its main names none to entry::intercept")]
    NoPair,
    #[error("{COMMAND} is internal")]
    Inherit(#[from] InheritError),
    #[error("cannot use the pair's records")]
    Record(#[from] RecordError),
    #[error("cannot identify the supervisor")]
    Identity(#[from] IdentityError),
    #[error("cannot {action}")]
    Io { action: &'static str, source: io::Error },
}

/// Runs a supervisor; its one argument is the pair's folder.
pub(crate) fn run(args: &[OsString], make: Option<MakePair>) -> u8 {
    match supervise(args, make) {
        Ok(()) => 0,
        Err(error) => {
            // To the log once there is one, to whoever called this by hand before.
            eprintln!("supervisor: {}", super::pair::chain(&error).join(": "));
            1
        }
    }
}

fn supervise(args: &[OsString], make: Option<MakePair>) -> Result<(), SuperviseError> {
    let inherited = Inherited::take(args)?;
    Inherited::detach()?;
    start_log();
    let pair = make.ok_or(SuperviseError::NoPair)?();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|source| SuperviseError::Io { action: "start the runtime", source })?;
    let served = runtime.block_on(serve(inherited, pair));
    // Whatever a pair left running on the runtime must not keep this process.
    runtime.shutdown_background();
    served
}

fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("ONEWRITER_LOG");
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(io::stderr).with_env_filter(filter);
    if log.try_init().is_err() {
        eprintln!("supervisor: a log is set up already");
    }
}

async fn serve(inherited: Inherited, pair: Arc<dyn Pair>) -> Result<(), SuperviseError> {
    // Before anything is started: from here on a signal means an orderly end.
    let mut signals = Signals::new().map_err(|source| io_error("listen to signals", source))?;
    let folder = &inherited.folder;
    let owner = folder.owner()?;
    let me = ProcessIdentity::current()?;
    folder.write_supervisor(&me)?;
    let listener = inherited.listener().map_err(|source| io_error("listen", source))?;
    let marker = folder.marker(&owner);
    let launcher = Launcher::new(folder.processes(), marker.clone())
        .map_err(|source| io_error("make the folder of records", source))?;
    let (sink, progress) = ProgressSink::channel();
    let context = context(folder, &launcher, sink)?;
    tracing::info!(pair = %folder.name(), key = owner.key, "starting");
    let (events_in, events) = mpsc::unbounded_channel();
    let desk =
        Desk::new(&owner, me, events_in).map_err(|source| io_error("identify this executable", source))?;
    let mut shift = Shift {
        desk,
        listener,
        events,
        progress,
        starting: Some(tokio::spawn(pair.start(context))),
        linger: None,
        owner: owner.clone(),
    };
    let reason = shift.work(&mut signals).await;
    tracing::info!(reason, "tearing down");
    let starting = shift.starting.take();
    shift.desk.stopping(&reason);
    let end = teardown::Teardown {
        folder,
        owner: &owner,
        marker: &marker,
        launcher: &launcher,
        running: shift.desk.running(),
        failed: shift.desk.has_failed(),
    };
    shift.answer_until(end.run(starting)).await;
    shift.desk.close().await;
    teardown::remove(folder, &owner).await;
    Ok(())
}

fn context(folder: &PairFolder, launcher: &Launcher, progress: ProgressSink) -> Result<Context, RecordError> {
    Ok(Context {
        folder: folder.path.clone(),
        launcher: launcher.clone(),
        addresses: folder.addresses,
        progress,
        options: folder.options()?,
    })
}

type Starting = JoinHandle<Result<Arc<dyn Running>, StartError>>;

/// The time between start and teardown.
struct Shift {
    desk: Desk,
    listener: UnixListener,
    events: mpsc::UnboundedReceiver<Event>,
    progress: mpsc::UnboundedReceiver<Progress>,
    starting: Option<Starting>,
    linger: Option<Pin<Box<Sleep>>>,
    owner: Owner,
}

impl Shift {
    /// Works until the pair is to be torn down and says why.
    async fn work(&mut self, signals: &mut Signals) -> String {
        loop {
            match self.desk.life.wish() {
                Wish::Stop => return self.desk.reason(),
                Wish::Stay => self.linger = None,
                Wish::Linger => {
                    let until = || Box::pin(sleep_until(Instant::now() + self.owner.linger));
                    self.linger.get_or_insert_with(until);
                }
            }
            self.step(signals).await;
        }
    }

    /// Answers clients while the pair is torn down: they are to know that something happens.
    async fn answer_until(&mut self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                accepted = self.listener.accept() => self.desk.accept(accepted).await,
                Some(event) = self.events.recv() => self.desk.handle(event),
            }
        }
    }

    /// Waits for the next thing that happens and lets the desk see to it.
    async fn step(&mut self, signals: &mut Signals) {
        let running = self.desk.running();
        tokio::select! {
            accepted = self.listener.accept() => self.desk.accept(accepted).await,
            Some(event) = self.events.recv() => self.desk.handle(event),
            Some(progress) = self.progress.recv() => self.desk.progress(progress),
            started = finished(&mut self.starting) => {
                self.starting = None;
                while let Ok(progress) = self.progress.try_recv() {
                    self.desk.progress(progress);
                }
                self.desk.started(started);
            }
            death = next_death(running) => self.desk.died(death),
            () = elapsed(&mut self.linger) => self.desk.linger_elapsed(),
            name = signals.next() => self.desk.interrupted(name),
        }
    }
}

/// A start's result; a panic counts as a failure.
async fn finished(starting: &mut Option<Starting>) -> Result<Arc<dyn Running>, StartError> {
    match starting {
        Some(starting) => starting.await.unwrap_or_else(|error| Err(StartError::new(error))),
        None => pending().await,
    }
}

async fn next_death(running: Option<Arc<dyn Running>>) -> PartDeath {
    match running {
        Some(running) => running.died().await,
        None => pending().await,
    }
}

async fn elapsed(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.as_mut().await,
        None => pending().await,
    }
}

/// The signals that mean an orderly end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

fn io_error(action: &'static str, source: io::Error) -> SuperviseError {
    SuperviseError::Io { action, source }
}

/// The folder that a supervisor's arguments name.
fn folder_argument(args: &[OsString]) -> Option<PairFolder> {
    match args {
        [path] => PairFolder::at(Path::new(path)),
        _ => None,
    }
}
