//! Ctrl-C and SIGTERM.

use harness::report::Exit;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Hears every SIGINT and SIGTERM from its making to the end of the program, so that none is lost between two phases.
#[derive(Debug, Clone)]
pub(super) struct Interrupts(watch::Receiver<Heard>);

/// What was heard so far.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    times: u32,
    last: Option<Exit>,
}

impl Interrupts {
    /// Listens from now on. Needs a runtime.
    pub(super) fn listen() -> Self {
        let (sender, receiver) = watch::channel(Heard::default());
        tokio::spawn(forward(sender));
        Self(receiver)
    }

    /// How the program ends because of what was heard, if anything was.
    pub(super) fn heard(&self) -> Option<Exit> {
        self.0.borrow().last
    }

    /// Waits until something was heard.
    pub(super) async fn once(&self) -> Exit {
        self.times(1).await
    }

    /// Waits until somebody insists.
    pub(super) async fn twice(&self) -> Exit {
        self.times(2).await
    }

    async fn times(&self, times: u32) -> Exit {
        let mut heard = self.0.clone();
        match heard.wait_for(|heard| heard.times >= times).await.map(|heard| heard.last) {
            Ok(Some(exit)) => exit,
            // Without handlers the signals have their default effect, and the supervisor cleans up behind us.
            _ => std::future::pending().await,
        }
    }
}

async fn forward(sender: watch::Sender<Heard>) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    loop {
        let exit = tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
        };
        sender.send_modify(|heard| *heard = Heard { times: heard.times + 1, last: Some(exit) });
    }
}
