//! Two real control planes: what they do, and how they start and end.
//!
//! Needs the control-plane programs: they are looked up, and built when they are found nowhere.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; this target has a main of its own"
)]

mod failing;
mod listening;
#[path = "../own_main/mod.rs"]
mod own_main;
mod pods;
mod stand_in;
mod working;
mod world;

use harness::entry::Helpers;
use libtest_mimic::{Failed, Trial};
use world::World;

fn main() {
    own_main::run(&Helpers::new(), &[working::trials, failing::trials, pods::trials]);
}

/// One test, in a folder and with a launcher of its own. Whatever it started is stopped at its end.
fn trial<F>(name: &str, body: fn(World) -> F) -> Trial
where
    F: Future<Output = ()> + Send + 'static,
{
    own_main::trial(name, move || async move {
        let world = World::new().await?;
        let launcher = world.launcher.clone();
        let folder = world.folder.clone();
        let result = tokio::spawn(body(world)).await;
        launcher.stop_all(std::time::Duration::ZERO).await;
        drop(folder);
        result.map_err(|panicked| Failed::from(panic_text(panicked)))
    })
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let panic = error.into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
