//! How results, problems and logs are shown.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use harness::report::Exit;
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use super::args::{Format, Global};

/// Shows a result on stdout: `value` as JSON, or what `human` says.
pub(super) fn show(global: &Global, value: &impl Serialize, human: impl FnOnce() -> String) -> Exit {
    let text = match global.format {
        Format::Human => human(),
        Format::Json => match serde_json::to_string_pretty(value) {
            Ok(json) => json + "\n",
            Err(error) => return fail(Exit::Internal, &format!("the result cannot be encoded: {error}")),
        },
    };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Exit::Pass,
        // Whoever read our output has seen enough (`onewriter list | head -1`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Pass,
        Err(error) => fail(Exit::Internal, &format!("stdout cannot be written: {error}")),
    }
}

/// A path as a shell takes it.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Says on stderr what went wrong, and returns `exit`.
pub(super) fn fail(exit: Exit, message: &str) -> Exit {
    // Nobody is left to tell where stderr cannot be written.
    drop(writeln!(io::stderr(), "error: {message}"));
    exit
}

/// Sends the program's own logs to stderr: warnings, more with `-v`, or what `RUST_LOG` asks for.
pub(super) fn start_logging(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        // The client library logs every refused request as an error; those who made it say so themselves.
        (true, _) => "error,kube_client=off",
        (_, 0) => "warn,kube_client=off",
        (_, 1) => "info,kube=warn,kube_client=off,hyper=warn",
        _ => "debug,hyper=info,rustls=info,tower=info",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .compact();
    if subscriber.try_init().is_err() {
        // A test binary has its own already.
    }
}

/// Whether a person is watching: stderr is a terminal and this is no CI job.
pub(super) fn is_interactive() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && std::env::var_os("CI").is_none() && !dumb
}
