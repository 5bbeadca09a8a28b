//! Logs: filtered by `RUST_LOG`, for people or as JSON.

use tracing_subscriber::EnvFilter;

use super::options::LogFormat;

/// Starts logging to standard error. `RUST_LOG` filters; `info` when absent.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if let Err(error) = started {
        eprintln!("hub-controller: logging was started twice: {error}");
    }
}
