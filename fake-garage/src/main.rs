//! `fake-garage`: the hub, the process of a pod, and replays of recorded sessions. Also called `garage`, by pods.
//!
//! Exit codes of `serve` and `replay` (those of `node` are in its help): 0 fine, 1 an error while running, 2 a mistake in the command line or its files, 3 a replay is not as
//! recorded, 96 the hub could not start (an address taken, the history exists).

use std::io::IsTerminal as _;
use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    let command = cli::Invocation::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        // Colours are for terminals; in files they are noise.
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| command.default_log().into()),
        )
        .init();
    match command.run() {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}
