//! What every test here starts from.

use std::{net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use harness::{
    local::{ServiceAccountName, Settings},
    process::{Launcher, Marker},
    progress::Lines,
    site::PerSite,
    toolchain::{Binaries, Environment, prepare},
};
use libtest_mimic::Failed;

/// No test waits longer than this for anything in a cluster.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A folder, a launcher, the programs, and addresses.
pub(crate) struct World {
    pub(crate) folder: Arc<tempfile::TempDir>,
    pub(crate) launcher: Launcher,
    pub(crate) binaries: Binaries,
    pub(crate) addresses: PerSite<Ipv4Addr>,
}

impl World {
    pub(crate) async fn new() -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let marker = Marker { id: "local-test".into(), folder: folder.path().into() };
        let launcher = Launcher::new(folder.path().join("processes"), marker)?;
        let environment = Environment::of_process()?;
        let binaries = prepare(&environment, &launcher, &Lines::new(std::io::stderr())).await?;
        let block = free_block();
        let address = |host| Ipv4Addr::new(127, block, 0, host);
        let addresses = PerSite { east: address(1), west: address(2) };
        Ok(Self { folder: Arc::new(folder), launcher, binaries, addresses })
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            folder: self.pair_folder(),
            addresses: self.addresses,
            operator: ServiceAccountName {
                namespace: "garage-operator-system".into(),
                name: "garage-operator".into(),
            },
            objects: Vec::new(),
        }
    }

    pub(crate) fn pair_folder(&self) -> PathBuf {
        self.folder.path().join("pair")
    }
}

/// A block of addresses that other tests of this machine hardly use; ports in it are chosen free anyway.
fn free_block() -> u8 {
    u8::try_from(100 + std::process::id() % 100).unwrap()
}
