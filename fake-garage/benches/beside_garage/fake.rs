//! Hubs of the fake: as a process of its own, and in this one.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use fake_garage::mesh::Pacing;
use fake_garage::{ControlToken, Hub, NodeNetwork, Options};
use serde_json::json;
use tokio::sync::oneshot;

use crate::client::{Call, Connection, Failure};
use crate::memory;
use crate::mesh::TOKEN;

const CONTROL: &str = "benchmark-control-token";
/// How many nodes a hub may have.
const NODES: u32 = 1100;

/// A hub that runs.
pub(crate) struct FakeHub {
    control: SocketAddr,
    running: Running,
}

enum Running {
    Process(Child),
    Thread(Option<oneshot::Sender<()>>),
}

/// Whether a hub writes its history.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    On,
    Off,
}

impl FakeHub {
    /// Starts a hub as a process, with its history in `folder` and its nodes in the network 127.`network`.
    pub(crate) fn spawn(folder: &Path, network: u8) -> Result<Self, Failure> {
        let control = SocketAddr::new(Ipv4Addr::new(127, network, 0, 3).into(), 7070);
        let token = folder.join("control-token");
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&token)?;
        file.write_all(CONTROL.as_bytes())?;
        let mut hub = Command::new(env!("CARGO_BIN_EXE_fake-garage"))
            .args(["serve", "--listen", &control.to_string(), "--run", "benchmark"])
            .args(["--node-network", &format!("127.{network}.1.1+{NODES}")])
            .arg("--control-token-file")
            .arg(token)
            .arg("--journal")
            .arg(folder.join("journal.jsonl"))
            .stdout(Stdio::piped())
            .spawn()?;
        let out = hub.stdout.take().ok_or("a hub without an output")?;
        let mut ready = String::new();
        BufReader::new(out).read_line(&mut ready)?;
        if !ready.contains("\"ready\":true") {
            return Err(format!("the hub is not ready: {ready}").into());
        }
        Ok(Self { control, running: Running::Process(hub) })
    }

    /// Starts a hub in this process, on threads of its own.
    pub(crate) fn in_process(folder: &Path, network: u8, recording: Recording) -> Result<Self, Failure> {
        let control = SocketAddr::new(Ipv4Addr::new(127, network, 0, 3).into(), 7070);
        let options = Options {
            listen: control,
            control_token: ControlToken::new(CONTROL).ok_or("no control token")?,
            journal: folder.join("journal.jsonl"),
            run: "benchmark".to_owned(),
            node_network: NodeNetwork { first: Ipv4Addr::new(127, network, 1, 1), count: NODES },
            proxies: [].into(),
            pacing: Pacing::fast(),
            seed: 0,
        };
        let (started, ready) = std::sync::mpsc::channel::<Result<(), Failure>>();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::spawn(move || {
            let run = || -> Result<(), Failure> {
                let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
                runtime.block_on(async {
                    let hub = match recording {
                        Recording::On => Hub::start(options).await?,
                        Recording::Off => Hub::start_unrecorded(options).await?,
                    };
                    started.send(Ok(()))?;
                    // An error means that the benchmark is over, too.
                    hub.run(async { drop(stopped.await) }).await?;
                    Ok(())
                })
            };
            if let Err(error) = run() {
                drop(started.send(Err(error)));
            }
        });
        ready.recv()??;
        Ok(Self { control, running: Running::Thread(Some(stop)) })
    }

    /// Starts a mesh of `count` nodes, which are not connected yet, and gives their addresses.
    pub(crate) async fn nodes(&self, mesh: &str, count: usize) -> Result<Vec<IpAddr>, Failure> {
        let secret = hex::encode(format!("{mesh:-<32}"));
        let digest = fake_garage::hub::registry::digest(&secret);
        let mut control = Connection::open(self.control).await?;
        let tokens = json!([{"token": TOKEN, "caller": "harness", "target": "*", "label": "harness"}]);
        let path = format!("/control/v1/meshes/{mesh}");
        let body = json!({"rpcSecretSha256": digest, "tokens": tokens});
        control.succeed(&Call::with_body("PUT", &path, CONTROL, &body)?).await?;
        let mut addresses = Vec::new();
        for place in 0..count {
            let path = format!("/control/v1/nodes/site-{}/{mesh}/garage-{place}", place % 2);
            let body =
                json!({"rpcSecret": secret, "replicationFactor": 2, "hostname": format!("garage-{place}")});
            let node = control.ask(&Call::with_body("PUT", &path, CONTROL, &body)?).await?;
            addresses.push(node["address"].as_str().ok_or("a node without an address")?.parse()?);
        }
        Ok(addresses)
    }

    /// Memory of the hub's process, in megabytes.
    pub(crate) fn memory(&self) -> Result<f64, Failure> {
        memory::resident(self.process())
    }

    /// Processor time that the hub's process has used, in seconds.
    pub(crate) fn processor_seconds(&self) -> Result<f64, Failure> {
        memory::processor_seconds(self.process())
    }

    fn process(&self) -> u32 {
        match &self.running {
            Running::Process(hub) => hub.id(),
            Running::Thread(_) => std::process::id(),
        }
    }
}

impl Drop for FakeHub {
    fn drop(&mut self) {
        match &mut self.running {
            Running::Process(hub) => memory::end(hub),
            Running::Thread(stop) => drop(stop.take().map(|stop| stop.send(()))),
        }
    }
}
