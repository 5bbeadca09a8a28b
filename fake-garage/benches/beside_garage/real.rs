//! Real Garage: separate processes, configured by files, nothing of it linked.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::client::Failure;
use crate::memory;
use crate::mesh::TOKEN;

/// Processes of real Garage, each a node.
pub(crate) struct RealNodes {
    processes: Vec<Child>,
    /// Where they are.
    pub(crate) addresses: Vec<IpAddr>,
}

impl RealNodes {
    /// Starts `count` nodes of `program` with their files in `folder`, in the network 127.`network`.
    pub(crate) fn spawn(program: &Path, folder: &Path, network: u8, count: u8) -> Result<Self, Failure> {
        let mut nodes = Self { processes: Vec::new(), addresses: Vec::new() };
        for place in 1..=count {
            let address = Ipv4Addr::new(127, network, 1, place);
            let home = folder.join(format!("n{place}"));
            fs::create_dir_all(&home)?;
            let config = home.join("garage.toml");
            fs::write(&config, configuration(&home, address))?;
            let log = File::create(home.join("log"))?;
            let process = Command::new(program)
                .arg("-c")
                .arg(&config)
                .arg("server")
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn()
                .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
            nodes.processes.push(process);
            nodes.addresses.push(address.into());
        }
        Ok(nodes)
    }

    /// Memory of all processes together, in megabytes.
    pub(crate) fn memory(&self) -> Result<f64, Failure> {
        self.processes.iter().map(|process| memory::resident(process.id())).sum()
    }
}

impl Drop for RealNodes {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(memory::end);
    }
}

fn configuration(home: &Path, address: Ipv4Addr) -> String {
    let home = home.display();
    let secret = "5e".repeat(32);
    format!(
        "metadata_dir = \"{home}/meta\"\n\
         data_dir = \"{home}/data\"\n\
         db_engine = \"lmdb\"\n\
         replication_factor = 2\n\
         rpc_bind_addr = \"{address}:3901\"\n\
         rpc_public_addr = \"{address}:3901\"\n\
         rpc_secret = \"{secret}\"\n\
         [s3_api]\n\
         s3_region = \"garage\"\n\
         api_bind_addr = \"{address}:3900\"\n\
         [admin]\n\
         api_bind_addr = \"{address}:3903\"\n\
         admin_token = \"{TOKEN}\"\n"
    )
}
