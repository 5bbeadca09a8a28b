//! Pairs that live exactly as long as somebody needs them, whoever is killed meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; this target has a main of its own"
)]

mod builds;
mod client;
mod dummy;
mod failing;
mod holding;
mod killing;
mod leftovers;
mod scene;
mod soak;
mod taking_down;

use harness::entry::{Helpers, intercept};
use libtest_mimic::{Arguments, Failed, Trial};
use scene::Scene;

fn main() {
    let helpers = Helpers::new()
        .supervising(dummy::make)
        .with(dummy::PART, dummy::part)
        .with(client::COMMAND, client::run)
        .with(soak::COMMAND, soak::run);
    intercept(&helpers);
    let args = Arguments::from_args();
    let trials = [
        holding::trials(),
        failing::trials(),
        killing::trials(),
        taking_down::trials(),
        leftovers::trials(),
        builds::trials(),
        soak::trials(),
    ];
    libtest_mimic::run(&args, trials.into_iter().flatten().collect()).exit();
}

/// One test: an asynchronous body in a scene of its own.
fn trial<F>(name: &str, body: fn(Scene) -> F) -> Trial
where
    F: Future<Output = ()> + Send + 'static,
{
    Trial::test(name, move || {
        let scene = Scene::new().map_err(Failed::from)?;
        runtime().block_on(body(scene));
        Ok(())
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}
