//! Kubernetes events. Where creating them is forbidden they are skipped, and nothing else changes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};
use tracing::{debug, warn};

use super::error::chain;

/// Longest note that the API accepts, in bytes.
const NOTE_LIMIT: usize = 1000;

/// Publishes events.
pub struct Events {
    recorder: Recorder,
    told: Mutex<BTreeSet<(String, &'static str)>>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

impl Events {
    /// A publisher that reports as `garage-operator`.
    pub fn new(client: Client) -> Self {
        let reporter = Reporter { controller: "garage-operator".to_owned(), instance: None };
        Self { recorder: Recorder::new(client, reporter), told: Mutex::default() }
    }

    /// Publishes a warning about an object.
    pub async fn warn<K>(&self, object: &K, reason: &'static str, action: &'static str, note: &str)
    where
        K: Resource<DynamicType = ()>,
    {
        let end = (0..=NOTE_LIMIT.min(note.len())).rev().find(|end| note.is_char_boundary(*end)).unwrap_or(0);
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note[..end].to_owned()),
            action: action.to_owned(),
            secondary: None,
        };
        match self.recorder.publish(&event, &object.object_ref(&())).await {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                debug!(reason, "events may not be created; skipping one");
            }
            Err(error) => warn!(reason, error = %chain(&error), "an event could not be published"),
        }
    }

    /// Publishes a warning once per object and reason, until [`Events::forget`].
    pub async fn warn_once<K>(&self, object: &K, reason: &'static str, action: &'static str, note: &str)
    where
        K: Resource<DynamicType = ()>,
    {
        let key = (object.uid().unwrap_or_default(), reason);
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            self.warn(object, reason, action, note).await;
        }
    }

    /// The reason is over: its next warning is news again.
    pub fn forget<K: Resource<DynamicType = ()>>(&self, object: &K, reason: &'static str) {
        let key = (object.uid().unwrap_or_default(), reason);
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}
