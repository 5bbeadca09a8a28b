//! The fake beside real Garage 2.5.0, and what the fake can take beyond it; prints tables in Markdown.
//!
//! `just bench-garage` installs the real one and runs this; docs/benchmarks.md tells how to read it.

mod client;
mod comparison;
mod fake;
mod limits;
mod load;
mod memory;
mod mesh;
mod real;
mod table;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use client::Failure;
use table::Table;
use tokio::signal::unix::{SignalKind, signal};

/// Compare the fake with real Garage on this machine.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program of real Garage; needed for the comparison.
    #[arg(long, value_name = "FILE", env = "GARAGE")]
    garage: Option<PathBuf>,
    /// How often everything is measured.
    #[arg(long, default_value_t = 3)]
    rounds: u8,
    /// Measure only these parts.
    #[arg(value_enum, default_values_t = [Part::Comparison, Part::Recording, Part::Scale])]
    parts: Vec<Part>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The fake beside real Garage.
    Comparison,
    /// What recording costs, and how many calls there are with it.
    Recording,
    /// 1,000 nodes in one process.
    Scale,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        measured = measure(&arguments) => measured,
        // Ending by way of here ends the processes that were started, too.
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        _ = terminated.recv() => Err("terminated".into()),
    }
}

#[expect(clippy::print_stdout, reason = "the tables are what this is for")]
async fn measure(arguments: &Arguments) -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let wanted = |part| arguments.parts.contains(&part);
    if wanted(Part::Comparison) {
        let garage = arguments.garage.as_deref();
        let garage = garage.ok_or("the comparison needs --garage FILE; `just bench-garage` installs it")?;
        println!("{}", comparison::compare(garage, folder.path(), arguments.rounds).await?);
    }
    if wanted(Part::Recording) {
        let mut table = Table::of_figures();
        limits::recording(&mut table, folder.path(), arguments.rounds).await?;
        println!("{table}");
    }
    if wanted(Part::Scale) {
        let mut table = Table::of_figures();
        limits::scale(&mut table, folder.path(), arguments.rounds).await?;
        println!("{table}");
    }
    Ok(())
}
