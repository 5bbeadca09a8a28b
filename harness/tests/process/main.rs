//! Children that cannot outlive whoever started them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; this target has a main of its own"
)]

mod launching;
#[path = "../own_main/mod.rs"]
mod own_main;
mod parent;
mod stopping;

use std::{path::Path, time::Duration};

use harness::{
    entry::Helpers,
    process::{Launch, Launcher, Marker, ProcessIdentity},
};
use libtest_mimic::Trial;

/// No test waits longer than this for anything.
const DEADLINE: Duration = Duration::from_secs(20);

fn main() {
    let helpers = Helpers::new().with(parent::COMMAND, parent::run);
    own_main::run(&helpers, &[launching::trials, stopping::trials, parent::trials]);
}

/// One test: an asynchronous body with a launcher and its folder.
fn trial<F>(name: &str, body: fn(Launcher, tempfile::TempDir) -> F) -> Trial
where
    F: Future<Output = ()> + Send + 'static,
{
    own_main::trial(name, move || async move {
        let folder = tempfile::tempdir()?;
        body(launcher(folder.path()), folder).await;
        Ok(())
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

fn launcher(folder: &Path) -> Launcher {
    let marker = Marker { id: "process-test".into(), folder: folder.into() };
    Launcher::new(folder.join("processes"), marker).unwrap()
}

/// A shell script as a child whose log is `NAME.log`.
fn shell(folder: &Path, name: &str, script: &str) -> Launch {
    Launch {
        name: name.into(),
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: Vec::new(),
        log: folder.join(format!("{name}.log")),
    }
}

async fn assert_ends(process: &ProcessIdentity) {
    assert!(process.ended(DEADLINE).await.unwrap(), "process {} still runs", process.pid);
}
