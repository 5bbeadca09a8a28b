//! Ctrl-C and SIGTERM.

use harness::report::Exit;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT or SIGTERM, and says how the program ends after clean-up.
pub(super) async fn interrupted() -> Exit {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers the signals have their default effect, and the supervisor cleans up behind us.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => Exit::Interrupted,
        _ = terminate.recv() => Exit::Terminated,
    }
}
