//! What real Garage cannot be asked for: many nodes in one process, many calls, the price of recording.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::client::Failure;
use crate::fake::{FakeHub, Recording};
use crate::load::{Load, closed_loop, open_loop};
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
    let before = hub.processor_seconds()?;
    tokio::time::sleep(QUIET).await;
    let mut busy = Figures::default();
    busy.add((hub.processor_seconds()? - before) / QUIET.as_secs_f64() * 100.0);
    let nodes = meshes.iter().flat_map(|mesh| mesh.addresses.iter().map(|address| admin(*address)));
    let many: Vec<_> = nodes.step_by(MESHES * NODES_PER_MESH / READERS).collect();
    let (small_hub, small_mesh) = control(folder).await?;
    let four: Vec<_> = small_mesh.addresses.iter().cycle().take(READERS).map(|node| admin(*node)).collect();
    let (mut of_many, mut of_four) = (Latencies::default(), Latencies::default());
    for _ in 0..rounds {
        of_many.add(&open_loop(&many, READ_RATE, Duration::from_secs(4), &read_layout())?);
        of_four.add(&open_loop(&four, READ_RATE, Duration::from_secs(4), &read_layout())?);
    }
    drop(small_hub);
    memory.add(hub.memory()?);
    let megabytes = Target::AtMost(300.0);
    table.figure("1,000 nodes in 10 meshes: memory, before and after the reads", "MB", &memory, megabytes);
    table.figure("1,000 nodes, nothing asked: one core's time", "%", &busy, Target::None);
    of_many.tell(table, "1,000 nodes, 5,000 reads/s at fixed times", Target::AtMost(2.0));
    of_four.tell(table, "control: the same on a hub of 4 nodes", Target::None);
    Ok(())
}

/// How long nothing is asked while the hub's processor time is measured.
const QUIET: Duration = Duration::from_secs(3);

/// What the machine makes of the same reads where there is next to nothing to do: a hub of four nodes.
async fn control(folder: &Path) -> Result<(FakeHub, Mesh), Failure> {
    let home = folder.join("control");
    std::fs::create_dir_all(&home)?;
    let hub = FakeHub::spawn(&home, 35)?;
    let mesh = Mesh::connect(hub.nodes("control", 4).await?).await?;
    mesh.first_layout(2).await?;
    Ok((hub, mesh))
}

/// How long answers took, round by round.
#[derive(Default)]
struct Latencies {
    median: Figures,
    late: Figures,
}

impl Latencies {
    fn add(&mut self, load: &Load) {
        self.median.add(load.percentile(50));
        self.late.add(load.percentile(99));
    }

    fn tell(&self, table: &mut Table, what: &str, target: Target) {
        table.figure(&format!("{what}: median"), "ms", &self.median, Target::None);
        table.figure(&format!("{what}: 99th percentile"), "ms", &self.late, target);
    }
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
