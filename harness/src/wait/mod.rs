//! Waiting for the cluster, on a watch and with a deadline.
//!
//! A condition is a function from the object (none while it does not exist) to `Ok` when it holds, or to a line that
//! describes what is there instead. That line is what a missed wait reports.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use onewriter_history::Moment;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::failure::{NotReached, chain};
use crate::history::Recorder;
use crate::run::latency::WAIT;
use crate::site::Site;

mod backoff;

pub use backoff::WatchBackoff;

/// What a condition says of an object that does not satisfy it: a line for people.
pub type Unmet = String;

tokio::task_local! {
    /// Where the waits of the task at work record that they returned.
    static RECORDER: Recorder;
}

/// Runs `body`, whose waits record through `recorder` when and with which version of an object they returned: the run
/// then tells how long that took from the moment at which the API server had that version.
pub async fn recorded<F: Future>(recorder: Recorder, body: F) -> F::Output {
    RECORDER.scope(recorder, body).await
}

fn record<K: Resource>(site: Site, object: Option<&K>, began: Moment) {
    let Some(meta) = object.map(Resource::meta) else { return };
    let (Some(name), Some(version)) = (&meta.name, &meta.resource_version) else { return };
    let value =
        json!({"site": site.name(), "name": name, "resourceVersion": version, "beganNs": began.mono_ns});
    // Whoever waits outside of a cell is not measured.
    RECORDER.try_with(|recorder| recorder.state(WAIT, value)).unwrap_or_default();
}

/// Waits until `holds` accepts the object `name`, and returns the object as it was then (none if it was absent).
///
/// The object is watched; errors of the watch are retried with back-off until the deadline and then reported with
/// the last state. `awaited` is a noun phrase for that report.
///
/// # Errors
/// [`NotReached`] once `limit` has passed.
pub async fn until<K>(
    site: Site,
    api: Api<K>,
    name: &str,
    awaited: impl Into<String>,
    limit: Duration,
    holds: impl Fn(Option<&K>) -> Result<(), Unmet>,
) -> Result<Option<K>, NotReached>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(api, config).backoff(WatchBackoff::default());
    let mut seen = Seen::default();
    let began = Moment::now();
    let reached = tokio::time::timeout(limit, first_match(events, holds, &mut seen)).await;
    if let Ok(object) = &reached {
        record(site, object.as_ref(), began);
    }
    reached.map_err(|_elapsed| seen.into_not_reached(site, awaited.into(), limit))
}

/// Waits until the object `name` does not exist; `what` names it in reports.
///
/// # Errors
/// [`NotReached`] once `limit` has passed; it lists finalizers and the deletion time of what is left.
pub async fn until_gone<K>(
    site: Site,
    api: Api<K>,
    name: &str,
    what: &str,
    limit: Duration,
) -> Result<(), NotReached>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let gone = |object: Option<&K>| object.map_or(Ok(()), |object| Err(leftover(object)));
    until(site, api, name, format!("end of {what}"), limit, gone).await.map(drop)
}

/// What keeps an object from going away.
pub fn leftover<K: Resource>(object: &K) -> String {
    let meta = object.meta();
    let deleted = meta.deletion_timestamp.as_ref().map_or_else(
        || "not marked for deletion".to_owned(),
        |time| format!("marked for deletion at {}", time.0),
    );
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    format!("still there, {deleted}, finalizers {finalizers:?}")
}

#[derive(Default)]
struct Seen {
    state: Option<(String, Instant)>,
    error: Option<(String, Instant)>,
}

impl Seen {
    fn into_not_reached(self, site: Site, awaited: String, limit: Duration) -> NotReached {
        let with_age = |(text, when): (String, Instant)| (text, when.elapsed());
        NotReached {
            site,
            awaited,
            limit,
            last_state: self.state.map(with_age),
            last_error: self.error.map(with_age),
        }
    }
}

async fn first_match<K>(
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
    holds: impl Fn(Option<&K>) -> Result<(), Unmet>,
    seen: &mut Seen,
) -> Option<K> {
    let mut events = std::pin::pin!(events);
    let mut listed = None;
    loop {
        let Some(event) = events.next().await else {
            // The watcher restarts by itself for ever; an end would be a defect of the library.
            return std::future::pending().await;
        };
        let object = match event {
            Err(error) => {
                seen.error = Some((chain(&error), Instant::now()));
                continue;
            }
            Ok(Event::Init) => {
                listed = None;
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listed = Some(object);
                continue;
            }
            Ok(Event::InitDone) => listed.take(),
            Ok(Event::Apply(object)) => Some(object),
            Ok(Event::Delete(_)) => None,
        };
        match holds(object.as_ref()) {
            Ok(()) => return object,
            Err(unmet) => seen.state = Some((unmet, Instant::now())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn config_map(value: &str) -> ConfigMap {
        ConfigMap { data: Some([("v".to_owned(), value.to_owned())].into()), ..ConfigMap::default() }
    }

    fn value_is(wanted: &'static str) -> impl Fn(Option<&ConfigMap>) -> Result<(), Unmet> {
        move |object| match object.and_then(|map| map.data.as_ref()?.get("v")) {
            Some(value) if value == wanted => Ok(()),
            Some(value) => Err(format!("v = {value}")),
            None => Err("absent".to_owned()),
        }
    }

    #[tokio::test]
    async fn the_first_object_that_satisfies_the_condition_ends_the_wait() {
        let events = stream::iter([
            Ok(Event::Init),
            Ok(Event::InitApply(config_map("a"))),
            Ok(Event::InitDone),
            Ok(Event::Apply(config_map("b"))),
            Ok(Event::Apply(config_map("c"))),
        ]);
        let mut seen = Seen::default();
        let found = first_match(events, value_is("b"), &mut seen).await;
        assert_eq!(found, Some(config_map("b")));
        assert_eq!(seen.state.unwrap().0, "v = a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_missed_wait_keeps_the_last_state_and_the_last_error() {
        let events =
            stream::iter([Ok(Event::Init), Ok(Event::InitDone), Err(watcher::Error::NoResourceVersion)])
                .chain(stream::pending());
        let mut seen = Seen::default();
        let wait = first_match(events, value_is("b"), &mut seen);
        tokio::time::timeout(Duration::from_secs(9), wait).await.unwrap_err();
        let missed = seen.into_not_reached(Site::East, "b".into(), Duration::from_secs(9));
        assert_eq!(missed.last_state.unwrap().0, "absent");
        assert!(missed.last_error.is_some(), "the watch error is reported");
    }
}
