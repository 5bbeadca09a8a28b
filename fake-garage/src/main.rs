//! `fake-garage`: the hub, and replays of recorded sessions.
//!
//! Exit codes: 0 fine, 1 an error while running, 2 a mistake in the command line or its files, 3 a replay is not as
//! recorded, 96 the hub could not start (an address taken, the history exists).

use std::process::ExitCode;

use clap::Parser;

mod cli;

fn main() -> ExitCode {
    let command = cli::Command::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .init();
    match command.run() {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}
