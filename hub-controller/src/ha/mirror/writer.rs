//! Writing one copy.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{
    Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::core::Status;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use thiserror::Error;
use tracing::warn;

use super::known::{Known, Seen};
use crate::api::kind::MirroredKind;
use crate::api::naming::TOKEN_ACCOUNT_ANNOTATION;
use crate::decision::copy::{Copy, Key, Upkeep, original_of};
use crate::error::status_of;
use crate::metrics::Metrics;

/// A write that is not answered within this time is tried again; what became of it is looked up first.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often one job may find that its copy has changed meanwhile.
const ROUNDS: usize = 5;

/// A copy that could not be written.
#[derive(Debug, Error)]
pub(super) enum ApplyError {
    /// The API server refused or did not answer.
    #[error("the API server did not let the mirror {what}")]
    Kube {
        what: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
    /// Somebody else made an object of this name here.
    #[error("an object of this name is here that the mirror did not make; it is left alone")]
    Foreign,
    /// The copy of a former original is still being deleted.
    #[error("the copy of a former original is still being deleted")]
    Terminating,
    /// A token Secret without its account would be deleted.
    #[error("the account {0} of this token Secret is not here yet")]
    NoAccount(String),
    /// The copy changes faster than it can be written.
    #[error("the copy was changed by others {ROUNDS} times while it was written")]
    Unsettled,
    /// The API server did not answer in time.
    #[error("the API server did not answer within {} s", PATIENCE.as_secs())]
    TimedOut,
}

impl ApplyError {
    /// Whether it takes a person.
    pub(super) fn is_lasting(&self) -> bool {
        match self {
            Self::Foreign => true,
            Self::Kube { source, .. } => {
                status_of(source).is_some_and(|status| status.is_forbidden() && !is_terminating(status))
            }
            _ => false,
        }
    }
}

/// A namespace that goes away forbids new objects in it.
fn is_terminating(status: &Status) -> bool {
    status.message.contains("being terminated")
}

/// What follows on a step.
enum Step {
    Done,
    Again,
}

/// Writes copies. Clones share what they know.
#[derive(Clone)]
pub(super) struct Writer {
    client: Client,
    known: Arc<Known>,
    metrics: Arc<Metrics>,
}

impl Writer {
    pub(super) fn new(client: Client, known: Arc<Known>, metrics: Arc<Metrics>) -> Self {
        Self { client, known, metrics }
    }

    /// Makes the copy look as wanted.
    pub(super) async fn write(&self, copy: &Copy) -> Result<(), ApplyError> {
        self.within_patience(&copy.key, async {
            for _ in 0..ROUNDS {
                if let Step::Done = self.step(copy).await? {
                    return Ok(());
                }
            }
            Err(ApplyError::Unsettled)
        })
        .await
    }

    /// Deletes the copy of an original that is gone.
    pub(super) async fn delete(&self, key: &Key) -> Result<(), ApplyError> {
        self.within_patience(key, async {
            for _ in 0..ROUNDS {
                let Some(seen) = self.known.get(key) else { return Ok(()) };
                if let Step::Done = self.remove(key, &seen).await? {
                    return Ok(());
                }
            }
            Err(ApplyError::Unsettled)
        })
        .await
    }

    /// After a write that was not answered nothing is known about the copy.
    async fn within_patience(
        &self,
        key: &Key,
        work: impl Future<Output = Result<(), ApplyError>>,
    ) -> Result<(), ApplyError> {
        let result = tokio::time::timeout(PATIENCE, work).await.unwrap_or(Err(ApplyError::TimedOut));
        let unanswered = match &result {
            Err(ApplyError::TimedOut) => true,
            Err(ApplyError::Kube { source, .. }) => status_of(source).is_none(),
            _ => false,
        };
        if unanswered && let Ok(Ok(())) = tokio::time::timeout(PATIENCE, self.look_up(key)).await {
            return result;
        }
        result
    }

    async fn step(&self, copy: &Copy) -> Result<Step, ApplyError> {
        let key = &copy.key;
        let Some(seen) = self.known.get(key) else { return self.create(copy).await };
        if seen.original != copy.original {
            return self.remove(key, &seen).await.map(|_| Step::Again);
        }
        if copy.upkeep == Upkeep::CreateOnly {
            return Ok(Step::Done);
        }
        let wanted = copy.print();
        if seen.print.object != wanted.object {
            return self.replace(copy, &seen).await;
        }
        if copy.key.kind.has_status() && seen.print.status != wanted.status {
            return self.replace_status(copy, &seen).await;
        }
        Ok(Step::Done)
    }

    async fn create(&self, copy: &Copy) -> Result<Step, ApplyError> {
        self.account_of(copy).await?;
        match self.api(&copy.key).create(&PostParams::default(), &copy.object).await {
            Ok(live) => {
                self.wrote(&copy.key, "create", &live);
                Ok(Step::Again)
            }
            Err(error) if status_of(&error).is_some_and(Status::is_already_exists) => {
                self.look_up(&copy.key).await?;
                Ok(Step::Again)
            }
            Err(error) => Err(kube("create a copy")(error)),
        }
    }

    /// A token Secret is deleted at once where its account is not there.
    async fn account_of(&self, copy: &Copy) -> Result<(), ApplyError> {
        if copy.upkeep != Upkeep::CreateOnly {
            return Ok(());
        }
        let account = copy.object.annotations().get(TOKEN_ACCOUNT_ANNOTATION).cloned().unwrap_or_default();
        let key = Key::new(MirroredKind::ServiceAccount, &copy.key.namespace, &account);
        match self.api(&key).get_opt(&account).await.map_err(kube("read an account"))? {
            Some(live) if live.metadata.deletion_timestamp.is_none() => Ok(()),
            _ => Err(ApplyError::NoAccount(account)),
        }
    }

    async fn replace(&self, copy: &Copy, seen: &Seen) -> Result<Step, ApplyError> {
        let mut object = copy.object.clone();
        object.metadata.resource_version = Some(seen.version.clone());
        let answer = self.api(&copy.key).replace(&copy.key.name, &PostParams::default(), &object).await;
        self.after_replace(copy, seen, "update", answer).await
    }

    async fn replace_status(&self, copy: &Copy, seen: &Seen) -> Result<Step, ApplyError> {
        let mut object = copy.object.clone();
        object.metadata.resource_version = Some(seen.version.clone());
        object.data["status"] = copy.status.clone().unwrap_or_else(|| json!({}));
        let api = self.api(&copy.key);
        let answer = api.replace_status(&copy.key.name, &PostParams::default(), &object).await;
        self.after_replace(copy, seen, "update-status", answer).await
    }

    async fn after_replace(
        &self,
        copy: &Copy,
        seen: &Seen,
        verb: &'static str,
        answer: Result<DynamicObject, kube::Error>,
    ) -> Result<Step, ApplyError> {
        let error = match answer {
            Ok(live) => {
                self.wrote(&copy.key, verb, &live);
                return Ok(Step::Again);
            }
            Err(error) => error,
        };
        match status_of(&error) {
            Some(status) if status.is_conflict() || status.is_not_found() => {
                self.look_up(&copy.key).await?;
                Ok(Step::Again)
            }
            // A field that cannot be changed, such as the role of a RoleBinding, takes another object.
            Some(status) if status.is_invalid() && !copy.key.kind.has_status() => {
                warn!(key = %copy.key, why = %status.message, "a copy has to be made anew");
                self.remove(&copy.key, seen).await.map(|_| Step::Again)
            }
            _ => Err(kube("update a copy")(error)),
        }
    }

    /// Deletes this copy and no other.
    async fn remove(&self, key: &Key, seen: &Seen) -> Result<Step, ApplyError> {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions {
                uid: Some(seen.uid.clone()),
                resource_version: Some(seen.version.clone()),
            }),
            ..DeleteParams::default()
        };
        match self.api(key).delete(&key.name, &params).await {
            Ok(answer) => {
                self.metrics.mirrored(key.kind.name(), "delete");
                self.known.set(key, None);
                if let Some(left) = answer.left() {
                    self.release(key, &left).await?;
                }
                Ok(Step::Done)
            }
            Err(error) if status_of(&error).is_some_and(Status::is_not_found) => {
                self.known.set(key, None);
                Ok(Step::Done)
            }
            Err(error) if status_of(&error).is_some_and(Status::is_conflict) => {
                self.look_up(key).await.map(|()| Step::Again)
            }
            Err(error) => Err(kube("delete a copy")(error)),
        }
    }

    /// A copy with finalizers, which it has from elsewhere, would stay Terminating: whoever removes them is fenced.
    async fn release(&self, key: &Key, left: &DynamicObject) -> Result<(), ApplyError> {
        if left.finalizers().is_empty() || key.kind == MirroredKind::Namespace {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"metadata": {"finalizers": Value::Null, "uid": left.metadata.uid}}));
        match self.api(key).patch(&key.name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            Err(error) if status_of(&error).is_some_and(|it| it.is_not_found() || it.is_conflict()) => Ok(()),
            Err(error) => Err(kube("release a copy")(error)),
        }
    }

    /// Learns what the copy looks like now.
    async fn look_up(&self, key: &Key) -> Result<(), ApplyError> {
        let live = self.api(key).get_opt(&key.name).await.map_err(kube("read a copy"))?;
        let Some(live) = live else {
            self.known.set(key, None);
            return Ok(());
        };
        if original_of(&live).is_none() {
            self.known.set(key, None);
            return Err(ApplyError::Foreign);
        }
        if live.metadata.deletion_timestamp.is_some() {
            self.known.set(key, None);
            self.release(key, &live).await?;
            return Err(ApplyError::Terminating);
        }
        self.known.set(key, Seen::of(key.kind, &live));
        Ok(())
    }

    fn wrote(&self, key: &Key, verb: &'static str, live: &DynamicObject) {
        self.metrics.mirrored(key.kind.name(), verb);
        self.known.set(key, Seen::of(key.kind, live));
    }

    fn api(&self, key: &Key) -> Api<DynamicObject> {
        let resource = key.kind.resource();
        if key.kind.is_cluster_scoped() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &key.namespace, &resource)
        }
    }
}

fn kube(what: &'static str) -> impl FnOnce(kube::Error) -> ApplyError {
    move |source| ApplyError::Kube { what, source: Box::new(source) }
}
