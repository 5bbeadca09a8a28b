//! The fake beside real Garage, measure by measure in turn.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Failure;
use crate::fake::FakeHub;
use crate::mesh::Mesh;
use crate::real::RealNodes;
use crate::table::{Figures, Table, Target};

/// How long each load lasts.
const LOAD: Duration = Duration::from_secs(2);
/// Nodes of a mesh.
const NODES: u8 = 4;
/// Applies per round.
const APPLIES: u32 = 3;

/// Figures of one program.
#[derive(Default)]
struct Program {
    start: Figures,
    memory: Figures,
    loaded_memory: Figures,
    reads: Figures,
    reads_on_8: Figures,
    probes: Figures,
    probes_on_8: Figures,
    stages: Figures,
    apply: Figures,
}

/// Runs `rounds` rounds with the real `garage` and files in `folder`.
pub(crate) async fn compare(garage: &Path, folder: &Path, rounds: u8) -> Result<Table, Failure> {
    let (mut fake, mut real) = (Program::default(), Program::default());
    for round in 0..rounds {
        eprintln!("comparison, round {} of {rounds}", round + 1);
        let home = folder.join(format!("round-{round}"));
        std::fs::create_dir_all(&home)?;
        let began = Instant::now();
        let hub = FakeHub::spawn(&home, 31)?;
        let fake_mesh = Mesh::connect(hub.nodes("compared", NODES.into()).await?).await?;
        fake.start.add(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        let nodes = RealNodes::spawn(garage, &home, 30, NODES)?;
        let real_mesh = Mesh::connect(nodes.addresses.clone()).await?;
        real.start.add(began.elapsed().as_secs_f64() * 1e3);
        fake_mesh.first_layout(2).await?;
        real_mesh.first_layout(2).await?;
        fake.memory.add(hub.memory()?);
        real.memory.add(nodes.memory()?);
        loads(&mut fake, &fake_mesh, &mut real, &real_mesh).await?;
        fake.loaded_memory.add(hub.memory()?);
        real.loaded_memory.add(nodes.memory()?);
    }
    Ok(table(&fake, &real))
}

/// One load after the other, each on both programs before the next.
async fn loads(
    fake: &mut Program,
    fake_mesh: &Mesh,
    real: &mut Program,
    real_mesh: &Mesh,
) -> Result<(), Failure> {
    for (program, mesh) in [(&mut *fake, fake_mesh), (&mut *real, real_mesh)] {
        program.reads.add(mesh.reads(1, LOAD).await?.rate());
        program.probes.add(mesh.probes(1, LOAD).await?.rate());
    }
    for (program, mesh) in [(&mut *fake, fake_mesh), (&mut *real, real_mesh)] {
        program.reads_on_8.add(mesh.reads(8, LOAD).await?.rate());
        program.probes_on_8.add(mesh.probes(8, LOAD).await?.rate());
    }
    for (program, mesh) in [(&mut *fake, fake_mesh), (&mut *real, real_mesh)] {
        program.stages.add(mesh.stages(LOAD).await?.rate());
    }
    for (program, mesh) in [(&mut *fake, fake_mesh), (&mut *real, real_mesh)] {
        let mut sum = Duration::ZERO;
        for _ in 0..APPLIES {
            sum += mesh.apply_change().await?;
        }
        program.apply.add((sum / APPLIES).as_secs_f64() * 1e3);
    }
    Ok(())
}

fn table(fake: &Program, real: &Program) -> Table {
    let mut table = Table::of_comparisons();
    let mut more = |what: &str, fake: &Figures, real: &Figures, target| {
        table.compare(what, "/s", (fake, real), &fake.over(real), target);
    };
    more("GetClusterLayout, 1 connection", &fake.reads, &real.reads, Target::AtLeast(100.0));
    more("GetClusterLayout, 8 connections", &fake.reads_on_8, &real.reads_on_8, Target::AtLeast(100.0));
    more(
        "the same against `/health` of the real one, 1 connection",
        &fake.reads,
        &real.probes,
        Target::AtLeast(0.5),
    );
    more(
        "the same against `/health` of the real one, 8 connections",
        &fake.reads_on_8,
        &real.probes_on_8,
        Target::AtLeast(0.5),
    );
    more("`/health`, 1 connection", &fake.probes, &real.probes, Target::None);
    more("`/health`, 8 connections", &fake.probes_on_8, &real.probes_on_8, Target::None);
    more("stage of a role (UpdateClusterLayout)", &fake.stages, &real.stages, Target::AtLeast(100.0));
    let mut less = |what: &str, unit: &str, fake: &Figures, real: &Figures, target| {
        table.compare(what, unit, (fake, real), &real.over(fake), target);
    };
    less("ApplyClusterLayout, 4 nodes", "ms", &fake.apply, &real.apply, Target::AtLeast(50.0));
    less("start until 4 nodes see each other", "ms", &fake.start, &real.start, Target::None);
    less("memory of a mesh of 4 with a layout", "MB", &fake.memory, &real.memory, Target::AtLeast(20.0));
    less("the same after the loads", "MB", &fake.loaded_memory, &real.loaded_memory, Target::None);
    table
}
