//! What the tests start from.
//!
//! | module | what it holds |
//! |---|---|
//! | [`world`] | two control planes, and who may do what on them |
//! | [`hub`] | a hub process |
//! | [`decisions`] | its decision log |
//! | [`objects`] | making, changing and awaiting objects |
//! | [`hold`] | writes that an API server holds back |

pub mod decisions;
pub mod hold;
pub mod hub;
pub mod objects;
pub mod world;

use std::time::Duration;

use libtest_mimic::{Failed, Trial};

pub use hub::{Hub, Launching, Role};
pub use world::World;

/// Nothing that a test waits for takes longer than this, also on a busy machine.
pub const LIMIT: Duration = Duration::from_mins(1);

/// One test, in a world of its own. What it started is stopped at its end; its logs are shown if it failed.
pub fn trial<F>(name: impl Into<String>, body: impl FnOnce(World) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let world = World::new().await.map_err(|error| Failed::from(error.to_string()))?;
            let keeper = world.keeper();
            let result = tokio::task::spawn_local(body(world)).await;
            keeper.stop().await;
            result.map_err(|panicked| Failed::from(format!("{}\n{}", panic_text(panicked), keeper.logs())))
        })
    })
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the test was cancelled".to_owned() };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
