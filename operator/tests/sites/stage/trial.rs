//! One test: joins the pair, runs, and shows what there is to see when it fails.

use std::sync::Arc;

use harness::failure::chain;
use harness::supervisor::{Client, StateRoot, Wanted};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use super::pair::Description;
use super::scene::Scene;

/// The pair that a test runs on.
#[derive(Clone, Debug)]
pub struct Pair(Arc<Client>);

impl Pair {
    /// Asks the pair to do something; see `stage::pair`.
    pub async fn request(&self, body: Value) {
        self.0.request(body).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    }
}

/// A test with a scene of its own.
pub fn trial<F>(name: impl Into<String>, body: impl FnOnce(Scene) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    let name = name.into();
    Trial::test(name.clone(), move || {
        // All test processes of one build share this pair.
        let key = format!("operator tests of {}", env!("CARGO_MANIFEST_DIR"));
        blocking(run(Wanted::shared(key, name, Value::Null), |scene, _| body(scene)))
    })
}

/// A test with a pair of its own.
pub fn private_trial<F>(name: &str, body: impl FnOnce(Scene, Pair) -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    let purpose = name.to_owned();
    Trial::test(name, move || blocking(run(Wanted::private(purpose, Value::Null), body)))
}

fn blocking(run: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, run)
}

async fn run<F>(wanted: Wanted, body: impl FnOnce(Scene, Pair) -> F) -> Result<(), Failed>
where
    F: Future<Output = ()> + 'static,
{
    let root = StateRoot::from_env().map_err(|error| chain(&error))?;
    let shared = wanted.key.is_some();
    let client = Client::start_or_attach(&root, wanted, |_| {}).await.map_err(|error| chain(&error))?;
    let description: Description = serde_json::from_value(client.description().clone())?;
    let (scene, client) = (Scene::set(description).await?, Arc::new(client));
    let running = tokio::task::spawn_local(body(scene.clone(), Pair(Arc::clone(&client))));
    let result = tokio::select! {
        result = running => match result {
            Ok(()) => Ok(()),
            Err(error) => Err(format!("{}{}", panic_text(error), scene.epitaph().await)),
        },
        death = client.died() => Err(format!("{} ended: {}\n{}", death.part, death.status, death.log.tail)),
    };
    scene.strike().await;
    if let Some(client) = Arc::into_inner(client) {
        client.release(shared).await.map_err(|error| chain(&error))?;
    }
    result.map_err(Failed::from)
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the test was cancelled".to_owned() };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
