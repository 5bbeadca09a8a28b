//! What real Garage cannot be asked for: many nodes in one process, many calls, the price of recording.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::client::Failure;
use crate::fake::{FakeHub, Recording};
use crate::load::{closed_loop, open_loop};
use crate::mesh::{Mesh, admin, read_layout};
use crate::table::{Figures, Table, Target};

const MESHES: usize = 10;
const NODES_PER_MESH: usize = 100;
/// Reads per second of the load that does not wait for answers.
const READ_RATE: u32 = 5000;
/// Nodes that it asks, each on a connection and a thread of its own.
const READERS: usize = 20;

/// 1,000 nodes in one process.
pub(crate) async fn scale(table: &mut Table, folder: &Path, rounds: u8) -> Result<(), Failure> {
    let home = folder.join("scale");
    std::fs::create_dir_all(&home)?;
    let hub = FakeHub::spawn(&home, 32)?;
    let mut meshes = Vec::new();
    for place in 0..MESHES {
        eprintln!("scale, mesh {} of {MESHES}", place + 1);
        let mesh = Mesh::connect(hub.nodes(&format!("mesh-{place}"), NODES_PER_MESH).await?).await?;
        mesh.first_layout(2).await?;
        meshes.push(mesh);
    }
    let mut memory = Figures::default();
    memory.add(hub.memory()?);
    let nodes = meshes.iter().flat_map(|mesh| mesh.addresses.iter().map(|address| admin(*address)));
    let asked: Vec<_> = nodes.step_by(MESHES * NODES_PER_MESH / READERS).collect();
    let (mut median, mut late) = (Figures::default(), Figures::default());
    let idle = hub.processor_seconds()?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut busy = Figures::default();
    busy.add((hub.processor_seconds()? - idle) / 3.0 * 100.0);
    for _ in 0..rounds {
        let load = open_loop(&asked, READ_RATE, Duration::from_secs(4), &read_layout())?;
        median.add(load.percentile(50));
        late.add(load.percentile(99));
    }
    memory.add(hub.memory()?);
    table.figure(
        "1,000 nodes in 10 meshes: memory, before and after the reads",
        "MB",
        &memory,
        Target::AtMost(300.0),
    );
    table.figure("1,000 nodes, nothing asked: one core's time", "%", &busy, Target::None);
    table.figure("1,000 nodes, 5,000 reads/s at fixed times: median", "ms", &median, Target::None);
    table.figure(
        "1,000 nodes, 5,000 reads/s at fixed times: 99th percentile",
        "ms",
        &late,
        Target::AtMost(2.0),
    );
    Ok(())
}

/// A hub with a mesh, and what was measured of it.
struct Recorded {
    hub: FakeHub,
    mesh: Mesh,
    rates: Figures,
    /// Processor time per call in microseconds, client included.
    work: Figures,
}

impl Recorded {
    async fn begin(folder: &Path, network: u8, recording: Recording) -> Result<Self, Failure> {
        let home = folder.join(format!("recording-{network}"));
        std::fs::create_dir_all(&home)?;
        let hub = FakeHub::in_process(&home, network, recording)?;
        let mesh = Mesh::connect(hub.nodes("recorded", 4).await?).await?;
        mesh.first_layout(2).await?;
        Ok(Self { hub, mesh, rates: Figures::default(), work: Figures::default() })
    }

    /// Reads on eight connections, two to each node.
    async fn load(&mut self) -> Result<(), Failure> {
        let nodes = self.mesh.addresses.iter().map(|address| admin(*address));
        let asked: Vec<SocketAddr> = nodes.clone().chain(nodes).collect();
        let call = read_layout();
        let before = self.hub.processor_seconds()?;
        let load = closed_loop(&asked, Duration::from_secs(2), move |_| Ok(call.clone())).await?;
        self.work.add((self.hub.processor_seconds()? - before) / load.answers() * 1e6);
        self.rates.add(load.rate());
        Ok(())
    }
}

/// What recording costs, and how many calls there are with it.
pub(crate) async fn recording(table: &mut Table, folder: &Path, rounds: u8) -> Result<(), Failure> {
    let mut with = Recorded::begin(folder, 33, Recording::On).await?;
    let mut without = Recorded::begin(folder, 34, Recording::Off).await?;
    for round in 0..2 * rounds {
        eprintln!("recording, round {} of {}", round + 1, 2 * rounds);
        with.load().await?;
        without.load().await?;
    }
    let cost = with.rates.over(&without.rates).map(|share| (1.0 - share) * 100.0);
    let more_work = with.work.over(&without.work).map(|share| (share - 1.0) * 100.0);
    let possible = with.work.map(|work| 2e6 / work);
    let calls = Target::AtLeast(20_000.0);
    table.figure(
        "calls per second: 8 connections to 4 nodes, recorded, client included",
        "/s",
        &with.rates,
        calls,
    );
    table.figure("the same without recording", "/s", &without.rates, Target::None);
    table.figure("what recording costs of the throughput", "%", &cost, Target::AtMost(10.0));
    table.figure("processor time per call, recorded, client included", "µs", &with.work, Target::None);
    table.figure("calls per second that two whole cores have time for at that", "/s", &possible, calls);
    table.figure("processor time that recording adds to a call", "%", &more_work, Target::None);
    Ok(())
}
