//! One test: joins the pair, runs, and shows what there is to see when it fails.

use harness::failure::chain;
use harness::supervisor::{Client, StateRoot, Wanted};
use libtest_mimic::{Failed, Trial};

use super::pair::Description;
use super::scene::Scene;

/// A test with a scene of its own.
pub fn trial<F>(name: impl Into<String>, body: impl FnOnce(Scene) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    let name = name.into();
    Trial::test(name.clone(), move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        tokio::task::LocalSet::new().block_on(&runtime, run(&name, body))
    })
}

async fn run<F>(name: &str, body: impl FnOnce(Scene) -> F + Send + 'static) -> Result<(), Failed>
where
    F: Future<Output = ()> + 'static,
{
    let client = attach(name).await?;
    let description: Description = serde_json::from_value(client.description().clone())?;
    let scene = Scene::set(description).await?;
    let running = tokio::task::spawn_local(body(scene.clone()));
    let result = tokio::select! {
        result = running => match result {
            Ok(()) => Ok(()),
            Err(error) => Err(format!("{}{}", panic_text(error), scene.epitaph().await)),
        },
        death = client.died() => Err(format!("{} ended: {}\n{}", death.part, death.status, death.log.tail)),
    };
    scene.strike().await;
    client.release(true).await.map_err(|error| chain(&error))?;
    result.map_err(Failed::from)
}

/// Joins the pair that all tests of this build share.
async fn attach(purpose: &str) -> Result<Client, Failed> {
    let root = StateRoot::from_env().map_err(|error| chain(&error))?;
    let key = format!("operator tests of {}", env!("CARGO_MANIFEST_DIR"));
    let wanted = Wanted::shared(key, purpose, serde_json::Value::Null);
    Client::start_or_attach(&root, wanted, |_| {}).await.map_err(|error| chain(&error).into())
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the test was cancelled".to_owned() };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
