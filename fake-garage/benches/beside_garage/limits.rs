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

/// What recording costs, and how many calls there are with it.
pub(crate) async fn recording(table: &mut Table, folder: &Path, rounds: u8) -> Result<(), Failure> {
    let mut pair = Vec::new();
    for (recording, network) in [(Recording::On, 33), (Recording::Off, 34)] {
        let home = folder.join(format!("recording-{network}"));
        std::fs::create_dir_all(&home)?;
        let hub = FakeHub::in_process(&home, network, recording)?;
        let mesh = Mesh::connect(hub.nodes("recorded", 4).await?).await?;
        mesh.first_layout(2).await?;
        pair.push((hub, mesh, Figures::default()));
    }
    for round in 0..2 * rounds {
        for (_, mesh, rates) in &mut pair {
            eprintln!("recording, round {} of {}", round + 1, 2 * rounds);
            let asked: Vec<SocketAddr> =
                (0..2).flat_map(|_| mesh.addresses.iter().map(|address| admin(*address))).collect();
            let call = read_layout();
            let load = closed_loop(&asked, Duration::from_secs(1), move |_| Ok(call.clone())).await?;
            rates.add(load.rate());
        }
    }
    let [(_, _, with), (_, _, without)] = &pair[..] else { return Err("two hubs are compared".into()) };
    let cost = with.over(without).map(|share| (1.0 - share) * 100.0);
    table.figure(
        "calls per second in all: 8 connections to 4 nodes, recorded",
        "/s",
        with,
        Target::AtLeast(20_000.0),
    );
    table.figure("the same without recording", "/s", without, Target::None);
    table.figure("what recording costs of the throughput", "%", &cost, Target::AtMost(10.0));
    Ok(())
}
