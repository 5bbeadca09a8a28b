//! A process that is never confused with a later one of the same number.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::handle::ProcessHandle;

/// One process, for good: Linux reuses process numbers, but not a number, a start time and a boot together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// The process number.
    pub pid: i32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/PID/stat`, proc(5)).
    pub start_time: u64,
    /// The boot it started in (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

/// Why a process could not be identified or signalled.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file of the proc file system could not be read.
    #[error("cannot read {}", path.display())]
    Proc {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the proc file system did not look as proc(5) says.
    #[error("{} has an unknown form", path.display())]
    Form {
        /// The file.
        path: PathBuf,
    },
    /// The kernel refused a signal or a handle on the process.
    #[error("cannot {action} process {pid}")]
    Refused {
        /// What was tried.
        action: &'static str,
        /// On which process.
        pid: i32,
        /// Why.
        source: io::Error,
    },
}

/// What `/proc/PID/stat` says, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    threads: u64,
    start_time: u64,
}

impl Stat {
    /// The first thread of a process may be a zombie while others still run, or still let go of files and locks.
    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

impl ProcessIdentity {
    /// The calling process.
    pub fn current() -> Result<Self, IdentityError> {
        let pid = rustix::process::getpid().as_raw_pid();
        Self::of(pid)?.ok_or_else(|| IdentityError::Form { path: stat_path(pid) })
    }

    /// The process that has number `pid` now; `None` if there is none. A zombie still has its number.
    pub fn of(pid: i32) -> Result<Option<Self>, IdentityError> {
        let Some(stat) = read_stat(pid)? else { return Ok(None) };
        Ok(Some(Self { pid, start_time: stat.start_time, boot_id: boot_id()? }))
    }

    /// Whether this very process still runs. A zombie does not run.
    ///
    /// A proc file system that cannot be read counts as alive: nobody must take a process for gone by mistake.
    pub fn is_alive(&self) -> bool {
        self.is_there(|stat| !stat.has_ended())
    }

    fn is_there(&self, and: impl Fn(&Stat) -> bool) -> bool {
        if boot_id().is_ok_and(|boot| boot != self.boot_id) {
            return false;
        }
        match read_stat(self.pid) {
            Ok(Some(stat)) => stat.start_time == self.start_time && and(&stat),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Kills this very process (SIGKILL) and says whether there was one; a zombie counts until it is reaped.
    pub fn kill(&self) -> Result<bool, IdentityError> {
        self.signal(Signal::KILL)
    }

    /// Asks this very process to end (SIGTERM) and says whether there was someone to ask.
    pub fn terminate(&self) -> Result<bool, IdentityError> {
        self.signal(Signal::TERM)
    }

    /// Waits until this very process has ended (it may still be a zombie). `false`: it has not within `deadline`.
    pub async fn ended(&self, deadline: Duration) -> Result<bool, IdentityError> {
        let Some(handle) = self.handle()? else { return Ok(true) };
        let refused = |source| IdentityError::Refused { action: "wait for", pid: self.pid, source };
        let end = handle.watch().map_err(refused)?;
        match tokio::time::timeout(deadline, end.ended()).await {
            Ok(ended) => ended.map(|()| true).map_err(refused),
            Err(_) => Ok(!self.is_alive()),
        }
    }

    fn signal(&self, signal: Signal) -> Result<bool, IdentityError> {
        let Some(handle) = self.handle()? else { return Ok(false) };
        handle.signal(signal).map_err(|source| IdentityError::Refused {
            action: "signal",
            pid: self.pid,
            source,
        })
    }

    /// A handle on this very process; `None` if it has ended.
    ///
    /// The order matters: a handle binds to whoever has the number when it is opened, so the identity is compared
    /// after that. From then on the handle cannot come to mean another process.
    fn handle(&self) -> Result<Option<ProcessHandle>, IdentityError> {
        // Zero and negative numbers mean groups, or everybody, to the kernel.
        let positive = Some(self.pid).filter(|pid| *pid > 0);
        let Some(pid) = positive.and_then(Pid::from_raw) else { return Ok(None) };
        let refused = |source| IdentityError::Refused { action: "open", pid: self.pid, source };
        let handle = ProcessHandle::open(pid).map_err(refused)?;
        Ok(handle.filter(|_| self.is_there(|_| true)))
    }
}

/// The identities of all processes whose proc entry is readable; who ends meanwhile is left out.
pub(crate) fn all() -> Result<Vec<ProcessIdentity>, IdentityError> {
    let root = Path::new("/proc");
    let entries = fs::read_dir(root).map_err(|source| IdentityError::Proc { path: root.into(), source })?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let boot_id = boot_id()?;
    let identity = |pid| {
        let stat = read_stat(pid).ok()??;
        Some(ProcessIdentity { pid, start_time: stat.start_time, boot_id: boot_id.clone() })
    };
    Ok(numbers.filter_map(identity).collect())
}

/// Resident memory of a process in bytes (`VmRSS`, proc(5)); `None` once it has ended.
pub fn resident_bytes(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn stat_path(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/stat"))
}

fn read_stat(pid: i32) -> Result<Option<Stat>, IdentityError> {
    let path = stat_path(pid);
    match fs::read(&path) {
        Ok(bytes) => {
            parse_stat(&String::from_utf8_lossy(&bytes)).map(Some).ok_or(IdentityError::Form { path })
        }
        Err(error) if ended(&error) => Ok(None),
        Err(source) => Err(IdentityError::Proc { path, source }),
    }
}

/// The name of a process may hold anything, blanks and parentheses included: the last parenthesis ends it.
fn parse_stat(line: &str) -> Option<Stat> {
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is field 3 of proc(5), the number of threads field 20, the start time field 22.
    let threads = fields.nth(20 - 4)?.parse().ok()?;
    let start_time = fields.nth(22 - 21)?.parse().ok()?;
    Some(Stat { state, threads, start_time })
}

/// A process that ends between opening and reading answers with ESRCH.
fn ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn boot_id() -> Result<String, IdentityError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text =
        fs::read_to_string(path).map_err(|source| IdentityError::Proc { path: path.into(), source })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) S (b) c) R 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 5 0 98765 1 2 3";
        assert_eq!(parse_stat(line), Some(Stat { state: 'R', threads: 5, start_time: 98765 }));
    }

    #[test]
    fn a_zombie_has_ended_only_when_its_other_threads_have() {
        assert!(Stat { state: 'Z', threads: 1, start_time: 1 }.has_ended());
        assert!(!Stat { state: 'Z', threads: 2, start_time: 1 }.has_ended());
        assert!(!Stat { state: 'S', threads: 1, start_time: 1 }.has_ended());
    }

    #[test]
    fn a_torn_stat_line_is_no_identity() {
        assert_eq!(parse_stat("42 (a) R 1 42"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn this_process_is_alive_and_a_recycled_number_is_not_this_process() {
        let me = ProcessIdentity::current().unwrap();
        assert!(me.is_alive());
        assert!(!ProcessIdentity { start_time: me.start_time + 1, ..me.clone() }.is_alive());
        assert!(!ProcessIdentity { boot_id: "another boot".into(), ..me }.is_alive());
    }

    #[test]
    fn killing_a_recycled_number_kills_nobody() {
        let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = i32::try_from(stranger.id()).unwrap();
        let real = ProcessIdentity::of(number).unwrap().unwrap();
        let earlier = ProcessIdentity { start_time: real.start_time - 1, ..real.clone() };
        assert!(!earlier.kill().unwrap());
        assert!(real.is_alive());
        assert!(real.kill().unwrap());
        stranger.wait().unwrap();
        assert!(!real.is_alive());
        assert!(!real.kill().unwrap());
    }

    #[test]
    fn numbers_that_mean_groups_or_everyone_are_never_signalled() {
        let me = ProcessIdentity::current().unwrap();
        for pid in [0, -1, -me.pid] {
            assert!(!ProcessIdentity { pid, ..me.clone() }.kill().unwrap());
        }
    }

    #[test]
    fn resident_memory_of_this_process_is_known() {
        assert!(resident_bytes(ProcessIdentity::current().unwrap().pid).unwrap() > 100_000);
    }
}
