//! A program that can be ended on purpose and started again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::{Child, Launch, LaunchError, Launcher};

/// A program that can be ended on purpose and started again as it was.
#[derive(Debug)]
pub struct Revivable {
    launcher: Launcher,
    launch: Mutex<Launch>,
    child: Mutex<Child>,
    /// Whether it is to be down. Its end is then nothing to tell.
    down: watch::Sender<bool>,
}

impl Revivable {
    /// Starts the program.
    pub async fn start(launcher: &Launcher, launch: Launch) -> Result<Self, LaunchError> {
        let child = launcher.launch(launch.clone()).await?;
        let down = watch::Sender::new(false);
        Ok(Self { launcher: launcher.clone(), launch: Mutex::new(launch), child: Mutex::new(child), down })
    }

    /// The process as it is now.
    pub fn child(&self) -> Child {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it was ended on purpose and is not to run.
    pub fn is_down(&self) -> bool {
        *self.down.borrow()
    }

    /// From now on its end is nothing to tell, until it is revived.
    pub fn excuse(&self) {
        self.down.send_replace(true);
    }

    /// Ends it on purpose, with `grace` to do so by itself.
    pub async fn end(&self, grace: Duration) {
        self.excuse();
        self.child().stop(grace).await;
    }

    /// Changes what is started from the next time on.
    pub fn refit(&self, change: impl FnOnce(&mut Launch)) {
        change(&mut self.launch.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Starts it again if it does not run.
    pub async fn revive(&self) -> Result<Child, LaunchError> {
        if self.child().status().is_some() {
            let launch = self.launch.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let child = self.launcher.launch(launch).await?;
            *self.child.lock().unwrap_or_else(PoisonError::into_inner) = child;
        }
        self.down.send_replace(false);
        Ok(self.child())
    }

    /// Waits until the program has ended without being told to.
    pub async fn died(&self) -> Child {
        let mut down = self.down.subscribe();
        loop {
            let child = self.child();
            tokio::select! {
                _ = child.exited() => {}
                changed = down.changed() => if changed.is_ok() { continue },
            }
            if child.pid() != self.child().pid() {
                continue;
            }
            if !*down.borrow_and_update() {
                return child;
            }
            // Ended on purpose: what counts is the process that follows.
            if down.wait_for(|down| !down).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
