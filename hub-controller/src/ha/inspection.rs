//! What a Standby finds on its own API server before it mirrors into it (design record, decision 8).

use std::time::Duration;

use kube::api::{Api, DynamicObject, ListParams};
use kube::core::PartialObjectMeta;
use kube::{Client, ResourceExt};

use super::elector::LED_ANNOTATION;
use super::lease::{LeaseError, Leases};
use crate::api::kind::{HubKind, MirroredKind};
use crate::api::naming::{MIRRORED_ANNOTATION, PROMOTED_OVER_ANNOTATION};
use crate::decision::standing::{Found, HeldLease};
use crate::program::clients::AuditId;
use thiserror::Error;

/// How many examples are told.
const EXAMPLES: usize = 3;
/// Objects per page of a list.
const PAGE: u32 = 500;

/// The own API server could not be inspected.
#[derive(Debug, Error)]
pub enum InspectionError {
    /// The Lease could not be read.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// Objects could not be listed.
    #[error(
        "{kind} objects cannot be listed; are the definitions of deploy/crd and the roles of deploy/rbac installed?"
    )]
    List {
        /// Which kind.
        kind: HubKind,
        /// What the API server says.
        #[source]
        source: Box<kube::Error>,
    },
    /// It took too long.
    #[error("the own API server did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// Looks at the own Lease and the nine kinds. `active_lease` is the uid of the Active's Lease, if it was read.
pub async fn inspect(
    client: &Client,
    own: &Leases,
    active_lease: Option<String>,
    limit: Duration,
) -> Result<Found, InspectionError> {
    let work = async {
        let lease = own.read(&AuditId::unique()).await?.and_then(|lease| {
            let holder = lease.spec.as_ref()?.holder_identity.clone().filter(|holder| !holder.is_empty())?;
            let promoted_over = lease.annotations().get(PROMOTED_OVER_ANNOTATION).cloned();
            Some(HeldLease { holder, promoted_over, led: lease.annotations().contains_key(LED_ANNOTATION) })
        });
        let mut unmarked = Vec::new();
        for kind in HubKind::ALL {
            if unmarked.len() < EXAMPLES {
                unmarked.extend(unmarked_of(client, kind).await?);
            }
        }
        unmarked.truncate(EXAMPLES);
        Ok(Found { lease, active_lease, unmarked })
    };
    tokio::time::timeout(limit, work).await.unwrap_or(Err(InspectionError::TimedOut(limit)))
}

/// Objects of this kind that no mirror made, or that a reconciler has adopted.
async fn unmarked_of(client: &Client, kind: HubKind) -> Result<Vec<String>, InspectionError> {
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &MirroredKind::Hub(kind).resource());
    let (mut found, mut next) = (Vec::new(), None);
    loop {
        let params = ListParams { limit: Some(PAGE), continue_token: next, ..ListParams::default() };
        let page = objects.list_metadata(&params).await;
        let page = page.map_err(|source| InspectionError::List { kind, source: Box::new(source) })?;
        found.extend(page.items.iter().filter(|object| !is_pristine(object, kind)).take(EXAMPLES).map(
            |object| format!("{kind} {}/{}", object.namespace().unwrap_or_default(), object.name_any()),
        ));
        next = page.metadata.continue_.filter(|token| !token.is_empty());
        if next.is_none() || found.len() >= EXAMPLES {
            return Ok(found);
        }
    }
}

fn is_pristine(object: &PartialObjectMeta<DynamicObject>, kind: HubKind) -> bool {
    let adopted = kind.finalizer().is_some_and(|name| object.finalizers().iter().any(|found| found == name));
    object.annotations().contains_key(MIRRORED_ANNOTATION) && !adopted
}
