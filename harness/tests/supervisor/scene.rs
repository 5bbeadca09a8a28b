//! A state root for one test, and what must be true when it is over.

use std::{
    io,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddr, UnixListener},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{
    process::ProcessIdentity,
    supervisor::{
        Client, ClientError, DownOptions, PairAddresses, PairDown, PairStatus, Progress, StateRoot, Wanted,
        down::down, status::status,
    },
};

use crate::dummy::Script;

/// No test waits longer than this for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A state root of its own.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    pub(crate) root: StateRoot,
}

/// A pair as it was while it lived, to be compared with what is left of it.
pub(crate) struct Footprint {
    folder: PathBuf,
    addresses: PairAddresses,
    pub(crate) processes: Vec<ProcessIdentity>,
}

impl Scene {
    pub(crate) fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = StateRoot::at(folder.path().join("root")).map_err(io::Error::other)?;
        Ok(Self { folder, root })
    }

    /// A place outside of the state root.
    pub(crate) fn elsewhere(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A pair of one's own that lives on for a minute unless it is told otherwise.
    pub(crate) fn private(script: &Script) -> Wanted {
        let options = serde_json::to_value(script).unwrap();
        Wanted { linger: Duration::from_mins(1), deadline: DEADLINE, ..Wanted::private("a test", options) }
    }

    pub(crate) fn shared(script: &Script) -> Wanted {
        Wanted { key: Some("shared".into()), ..Self::private(script) }
    }

    pub(crate) async fn start(&self, wanted: Wanted) -> Result<Client, ClientError> {
        Client::start_or_attach(&self.root, wanted, |_: &Progress| ()).await
    }

    pub(crate) async fn down(&self) -> Vec<PairDown> {
        down(&self.root, &DownOptions::default()).await.unwrap()
    }

    pub(crate) async fn status(&self) -> Vec<PairStatus> {
        status(&self.root).await.unwrap()
    }

    /// The root's one pair, as it is now.
    pub(crate) async fn footprint(&self) -> Footprint {
        let mut pairs = self.status().await;
        assert_eq!(pairs.len(), 1, "{pairs:?}");
        Footprint::of(&pairs.remove(0))
    }

    /// What lies in the root, by name.
    pub(crate) fn entries(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.root.path()) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Footprint {
    pub(crate) fn of(pair: &PairStatus) -> Self {
        let octet = pair.pair.strip_prefix("pair-").unwrap().parse().unwrap();
        let identify = |pid| ProcessIdentity::of(pid).unwrap();
        let processes = pair.processes.iter().filter_map(|process| identify(process.pid)).collect();
        Self { folder: pair.folder.clone(), addresses: PairAddresses::new(octet).unwrap(), processes }
    }

    /// Asserts that no process, no listening port and no folder is left.
    pub(crate) fn assert_gone(&self) {
        for process in &self.processes {
            assert!(!process.is_alive(), "process {} still runs", process.pid);
        }
        assert!(!self.folder.exists(), "{} is still there", self.folder.display());
        self.assert_no_listener();
    }

    /// Another pair may have been given the addresses by now; what listens there then is not ours.
    fn assert_no_listener(&self) {
        let name = UnixAddr::from_abstract_name(format!("onewriter/{}", self.addresses)).unwrap();
        let Ok(_reserved) = UnixListener::bind_addr(&name) else { return };
        for address in [self.addresses.hub(), (self.addresses.first_node(), 3903).into()] {
            assert!(TcpListener::bind(address).is_ok(), "somebody listens on {address}");
        }
    }

    /// Waits until the supervisor has ended.
    pub(crate) async fn wait_for_end(&self) {
        assert!(self.processes[0].ended(DEADLINE).await.unwrap(), "the supervisor still runs");
    }
}

/// Makes a named pipe.
pub(crate) fn make_pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}
