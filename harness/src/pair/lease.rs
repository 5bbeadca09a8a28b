//! The Lease by which an operator knows that it is the only one at its site.
//!
//! An operator that is killed keeps its Lease until that runs out, and an operator that could not renew it ends by itself,
//! a while after it has made up its mind. Neither is what a scenario is about, so neither is waited for by the clock.

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};

use super::operator::NAMESPACE;
use crate::wait::WatchBackoff;

/// Takes the Lease away from an operator that is dead, so that its successor leads at once: there is one at each site,
/// so nobody else holds it.
///
/// # Errors
/// When the API server does not do that.
pub async fn release(client: Client) -> kube::Result<()> {
    release_in(client, NAMESPACE).await
}

/// The same for an operator that lives in `namespace`.
///
/// # Errors
/// When the API server does not do that.
pub async fn release_in(client: Client, namespace: &str) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    leases.delete_collection(&DeleteParams::default(), &ListParams::default()).await.map(drop)
}

/// Waits until an operator that runs has renewed its Lease after `since`: from then on it does not end because it could
/// not. Returns at once if nobody holds a Lease.
///
/// # Errors
/// When the API server does not tell who holds the Lease.
pub async fn renewed(client: Client, since: Timestamp) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let held = leases.list(&ListParams::default()).await?.items.iter().any(|lease| renewal(lease).is_some());
    if !held {
        return Ok(());
    }
    let events = watcher(leases, watcher::Config::default()).backoff(WatchBackoff::default());
    // What is there when the watch begins comes first.
    let mut leases = std::pin::pin!(events.applied_objects());
    while let Some(lease) = leases.next().await {
        if lease.is_ok_and(|lease| renewal(&lease).is_some_and(|time| time.0 > since)) {
            break;
        }
    }
    Ok(())
}

/// When a Lease that somebody holds was renewed last.
fn renewal(lease: &Lease) -> Option<MicroTime> {
    let spec = lease.spec.as_ref()?;
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())?;
    spec.renew_time.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_was_given_back_is_held_by_nobody() {
        let lease = |holder: &str| -> Lease {
            serde_json::from_value(serde_json::json!({
                "spec": {"holderIdentity": holder, "renewTime": "2026-01-02T03:04:05.000006Z"},
            }))
            .unwrap()
        };
        assert!(renewal(&lease("")).is_none());
        assert!(renewal(&lease("east_1")).is_some());
    }
}
