//! A started process.

use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal};
use tokio::{runtime::Handle, sync::watch};

use super::handle::{ProcessEnd, ProcessHandle};

/// The wait status of a process whose end nobody could observe: exit code 255.
const UNKNOWN_END: i32 = 255 << 8;

/// A started process, leader of its own process group. Clones mean the same process; dropping one stops nothing.
#[derive(Debug, Clone)]
pub struct Child {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    log: PathBuf,
    pid: Pid,
    /// Held while the process is signalled or reaped: its number is free for others once it is reaped.
    process: Mutex<std::process::Child>,
    status: watch::Sender<Option<ExitStatus>>,
}

impl Child {
    /// Takes over a process that has just been started and waits for its end on `runtime`.
    pub(super) fn watch(
        name: String,
        log: PathBuf,
        process: std::process::Child,
        runtime: &Handle,
    ) -> io::Result<Self> {
        let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
        let (status, _) = watch::channel(None);
        let shared = Arc::new(Shared { name, log, pid, process: Mutex::new(process), status });
        match shared.end(runtime) {
            Ok(end) => drop(runtime.spawn(Arc::clone(&shared).reap(end))),
            Err(error) => {
                let mut process = shared.process.lock().unwrap_or_else(PoisonError::into_inner);
                process.kill()?;
                process.wait()?;
                return Err(error);
            }
        }
        Ok(Self { shared })
    }

    /// Name of the part.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its process number, which is also the number of its process group.
    pub fn pid(&self) -> i32 {
        self.shared.pid.as_raw_pid()
    }

    /// Where its standard output and error go.
    pub fn log(&self) -> &Path {
        &self.shared.log
    }

    /// The last lines of its log; a log that cannot be read says so in its place.
    pub fn log_tail(&self, lines: usize) -> String {
        super::log_tail::log_tail(&self.shared.log, lines)
    }

    /// How it ended, if it has.
    pub fn status(&self) -> Option<ExitStatus> {
        *self.shared.status.borrow()
    }

    /// Waits for its end. May be dropped, repeated, and called by many at once.
    pub async fn exited(&self) -> ExitStatus {
        let mut status = self.shared.status.subscribe();
        loop {
            if let Some(status) = *status.borrow_and_update() {
                return status;
            }
            if status.changed().await.is_err() {
                // Never: this child holds the sender.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Asks its process group to end (SIGTERM) and kills what is left of it after `grace`. Returns when it ended.
    pub async fn stop(&self, grace: Duration) -> ExitStatus {
        self.shared.signal(Signal::TERM);
        if let Ok(status) = tokio::time::timeout(grace, self.exited()).await {
            return status;
        }
        tracing::warn!(name = self.name(), pid = self.pid(), ?grace, "did not end in time and is killed");
        self.shared.signal(Signal::KILL);
        self.exited().await
    }
}

impl Shared {
    fn end(&self, runtime: &Handle) -> io::Result<ProcessEnd> {
        let _runtime = runtime.enter();
        let handle = ProcessHandle::open(self.pid)?;
        handle.ok_or_else(|| io::Error::other("reaped by somebody else"))?.watch()
    }

    /// Signals the group, unless the leader has been reaped: then the number may belong to somebody else.
    fn signal(&self, signal: Signal) {
        let _process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if self.status.borrow().is_none() {
            self.signal_group(signal);
        }
    }

    fn signal_group(&self, signal: Signal) {
        match rustix::process::kill_process_group(self.pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => {
                tracing::warn!(name = self.name, pid = self.pid.as_raw_pid(), %error, "cannot be signalled");
            }
        }
    }

    async fn reap(self: Arc<Self>, end: ProcessEnd) {
        if let Err(error) = end.ended().await {
            // Only a runtime that shuts down says so: nobody is left to be told.
            tracing::debug!(name = self.name, %error, "not waited for any more");
            return;
        }
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // The leader is a zombie until it is reaped, so its number cannot yet mean anybody else's group.
        self.signal_group(Signal::KILL);
        let status = process.wait().unwrap_or_else(|error| {
            // Somebody else reaped it. It has ended all the same, and waiters must not hang.
            tracing::error!(name = self.name, %error, "cannot learn how it ended");
            ExitStatus::from_raw(UNKNOWN_END)
        });
        self.status.send_replace(Some(status));
    }
}
