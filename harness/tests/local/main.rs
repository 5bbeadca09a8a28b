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
mod pods;
mod stand_in;
mod working;
mod world;

use harness::entry::{Helpers, intercept};
use libtest_mimic::{Arguments, Failed, Trial};
use world::World;

fn main() {
    intercept(&Helpers::new());
    let args = Arguments::from_args();
    let trials = [working::trials(), failing::trials(), pods::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&args, trials).exit();
}

/// One test, in a folder and with a launcher of its own. Whatever it started is stopped at its end.
fn trial<F>(name: &str, body: fn(World) -> F) -> Trial
where
    F: Future<Output = ()> + Send + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Runtime::new().map_err(Failed::from)?;
        runtime.block_on(async move {
            let world = World::new().await?;
            let launcher = world.launcher.clone();
            let folder = world.folder.clone();
            let result = tokio::spawn(body(world)).await;
            launcher.stop_all(std::time::Duration::ZERO).await;
            drop(folder);
            result.map_err(|panicked| Failed::from(panic_text(panicked)))
        })
    })
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let panic = error.into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
