//! Makes the dynamic admin token of a cluster, has every pod prove it, and revokes it in the end (operator contract §2.2).

use kube::ResourceExt;
use tracing::{info, warn};

use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::super::operator_token::{self, Stored, discard, label, mark, pod_set, read, store};
use super::super::scope::{self, address, is_ready};
use super::observe::Picture;
use crate::api::v1beta2::GarageCluster;
use crate::decision::mutation::is_settled;
use crate::garage::{AdminClient, AdminError};

/// Whether nothing has to be done about the token soon.
pub(super) type Settled = bool;

/// Makes or proves the token as soon as the layout is committed and every pod has a role in it: before that, a node may
/// not have the table that the token is in.
pub(super) async fn keep(
    context: &Context,
    cluster: &GarageCluster,
    picture: &Picture,
) -> Result<Settled, ReconcileError> {
    if !wanted(context, cluster) {
        return Ok(true);
    }
    let (set, stored) = (pod_set(&picture.pods), read(&context.client, cluster).await?);
    let proved = stored.as_ref().is_some_and(|stored| stored.proved.as_ref() == Some(&set));
    if proved || !is_due(picture) {
        return Ok(true);
    }
    let Ok(endpoints) = Endpoints::of(context, cluster).await? else { return Ok(true) };
    let addresses: Vec<&str> = picture.pods.values().filter_map(address).collect();
    let site = Site { context, cluster, endpoints: &endpoints, addresses };
    let accepted = match site.prove(stored).await? {
        Ok(accepted) => accepted,
        Err(error) => {
            info!(cluster = %cluster.name_any(), error = %chain(&error), "the admin token is not proved yet");
            false
        }
    };
    if accepted {
        mark(&context.client, cluster, Some(&set)).await?;
        info!(cluster = %cluster.name_any(), "every pod accepts the admin token of the operator");
    }
    Ok(accepted)
}

fn wanted(context: &Context, cluster: &GarageCluster) -> bool {
    context.settings.operator_admin_token && operator_token::has_own(cluster)
}

/// Whether the layout is committed, and every pod is ready and has a role.
fn is_due(picture: &Picture) -> bool {
    let committed = picture
        .garage
        .as_ref()
        .is_some_and(|garage| garage.layout.version > 0 && !garage.layout.roles.is_empty());
    let facts = &picture.facts;
    committed
        && facts.migrating.is_none()
        && facts.ready >= facts.wanted
        && facts.without_role.is_empty()
        && picture.intent.removals.is_empty()
        && !picture.pods.is_empty()
        && picture.pods.values().all(is_ready)
}

struct Site<'a> {
    context: &'a Context,
    cluster: &'a GarageCluster,
    endpoints: &'a Endpoints,
    addresses: Vec<&'a str>,
}

impl Site<'_> {
    /// Asks every pod whether it accepts the token, and makes one if there is none.
    async fn prove(&self, stored: Option<Stored>) -> Result<Result<bool, AdminError>, ReconcileError> {
        let stored = match stored {
            Some(stored) => stored,
            None => match self.make().await? {
                Ok(Some(stored)) => stored,
                Ok(None) => return Ok(Ok(false)),
                Err(error) => return Ok(Err(error)),
            },
        };
        match self.accepted(&stored).await {
            Ok(true) => Ok(Ok(true)),
            Ok(false) => {
                if self.unknown(&stored.id).await {
                    warn!(cluster = %self.cluster.name_any(), "Garage does not know the admin token of the operator; making a new one");
                    discard(&self.context.client, self.cluster, &stored).await?;
                }
                Ok(Ok(false))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Makes a token and keeps it. One of the same name is left from a crash: nobody knows its secret.
    async fn make(&self) -> Result<Result<Option<Stored>, AdminError>, ReconcileError> {
        let Some(first) = self.addresses.first() else { return Ok(Ok(None)) };
        let admin = self.endpoints.pod(first);
        let name = label(self.cluster);
        let made = async {
            if !is_settled(&admin.layout_history().await?) {
                return Ok(None);
            }
            for left in admin.admin_tokens_named(&name).await? {
                admin.delete_admin_token(&left).await?;
            }
            admin.create_admin_token(&name).await.map(Some)
        };
        let made = match made.await {
            Ok(Some(made)) => made,
            Ok(None) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(error)),
        };
        Ok(Ok(store(&self.context.client, self.cluster, &made).await?))
    }

    /// Whether every pod answers to the token and knows it.
    async fn accepted(&self, stored: &Stored) -> Result<bool, AdminError> {
        for address in &self.addresses {
            let admin = self.endpoints.pod_with(address, stored.token.clone());
            let known = match admin.cluster_status().await {
                Ok(_) => admin.knows_admin_token(&stored.id).await?,
                Err(error) if error.status() == Some(403) => false,
                Err(error) => return Err(error),
            };
            if !known {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether every pod says that there is no such token. Right after it was made, some have not heard of it yet.
    async fn unknown(&self, id: &str) -> bool {
        for address in &self.addresses {
            if !matches!(self.endpoints.pod(address).knows_admin_token(id).await, Ok(false)) {
                return false;
            }
        }
        true
    }
}

/// Revokes the token while a pod can still be asked. The cluster goes in any case: what is left is a token that nobody
/// has.
pub(super) async fn revoke(context: &Context, cluster: &GarageCluster) -> Result<(), ReconcileError> {
    let Some(stored) = read(&context.client, cluster).await? else { return Ok(()) };
    let pods = scope::pods(&context.client, cluster).await?;
    let revoked = match Endpoints::of(context, cluster).await? {
        Ok(endpoints) => {
            let voices = pods.values().filter(|pod| is_ready(pod)).filter_map(address);
            let voices: Vec<AdminClient> = voices.map(|address| endpoints.pod(address)).collect();
            let limit = context.settings.deadlines.read;
            tokio::time::timeout(limit, revoked_by(&voices, &stored.id)).await.unwrap_or(false)
        }
        Err(_) => false,
    };
    if !revoked {
        warn!(cluster = %cluster.name_any(), token = %stored.id, "the admin token of the operator could not be revoked; delete it in Garage");
    }
    discard(&context.client, cluster, &stored).await
}

async fn revoked_by(voices: &[AdminClient], id: &str) -> bool {
    for admin in voices {
        if admin.delete_admin_token(id).await.is_ok() {
            return true;
        }
    }
    false
}
