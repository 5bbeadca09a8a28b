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
#[path = "../own_main/mod.rs"]
mod own_main;
mod scene;
mod soak;
mod taking_down;

use harness::entry::Helpers;
use libtest_mimic::Trial;
use scene::Scene;

fn main() {
    let helpers = Helpers::new()
        .supervising(dummy::make)
        .with(dummy::PART, dummy::part)
        .with(client::COMMAND, client::run)
        .with(soak::COMMAND, soak::run);
    let tests = [
        holding::trials,
        failing::trials,
        killing::trials,
        taking_down::trials,
        leftovers::trials,
        builds::trials,
        soak::trials,
    ];
    own_main::run(&helpers, &tests);
}

/// One test: an asynchronous body in a scene of its own.
fn trial<F>(name: &str, body: fn(Scene) -> F) -> Trial
where
    F: Future<Output = ()> + Send + 'static,
{
    own_main::trial(name, move || async move {
        body(Scene::new()?).await;
        Ok(())
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}
