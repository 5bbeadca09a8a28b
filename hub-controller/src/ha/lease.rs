//! Reading and writing Leases, each request under a name for its audit entry.

use std::time::Instant;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{GetParams, PostParams};
use kube::core::Request;
use kube::{Client, Resource, ResourceExt};
use thiserror::Error;

use crate::program::clients::AuditId;

/// A Lease could not be read or written.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// The API server refused or did not answer.
    #[error("the API server did not let the hub {what} its Lease")]
    Kube {
        /// `read` or `write`.
        what: &'static str,
        /// What the client says.
        #[source]
        source: Box<kube::Error>,
    },
    /// The Lease could not be turned into JSON.
    #[error("the Lease could not be turned into JSON")]
    Json(#[source] serde_json::Error),
    /// The request could not be made.
    #[error("the request for the Lease could not be made")]
    Request(#[source] Box<kube::core::request::Error>),
}

impl LeaseError {
    /// The API server's answer, if it gave one.
    pub fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Kube { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }
}

/// One Lease on one API server.
#[derive(Clone)]
pub struct Leases {
    client: Client,
    namespace: String,
    name: String,
}

impl Leases {
    /// The Lease `name` in `namespace`.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self { client, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The Lease; `None` when there is none.
    pub async fn read(&self, id: &AuditId) -> Result<Option<Lease>, LeaseError> {
        let request = self.requests().get(&self.name, &GetParams::default());
        match self.send(id, "read", request).await {
            Ok(lease) => Ok(Some(lease)),
            Err(error) if error.status().is_some_and(kube::core::Status::is_not_found) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the Lease.
    pub async fn create(&self, id: &AuditId, lease: &Lease) -> Result<Lease, LeaseError> {
        let data = serde_json::to_vec(lease).map_err(LeaseError::Json)?;
        self.send(id, "write", self.requests().create(&PostParams::default(), data)).await
    }

    /// Replaces the Lease; a conflict is an error.
    pub async fn replace(&self, id: &AuditId, lease: &Lease) -> Result<Lease, LeaseError> {
        let data = serde_json::to_vec(lease).map_err(LeaseError::Json)?;
        self.send(id, "write", self.requests().replace(&self.name, &PostParams::default(), data)).await
    }

    fn requests(&self) -> Request {
        Request::new(Lease::url_path(&(), Some(&self.namespace)))
    }

    async fn send(
        &self,
        id: &AuditId,
        what: &'static str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Lease, LeaseError> {
        let mut request = request.map_err(|error| LeaseError::Request(Box::new(error)))?;
        id.name(&mut request);
        let answer = self.client.request(request).await;
        answer.map_err(|source| LeaseError::Kube { what, source: Box::new(source) })
    }
}

/// The own Lease, held: only a successful write of it makes one.
#[derive(Clone, Debug)]
pub struct HeldLease {
    lease: Lease,
    valid_until: Instant,
}

impl HeldLease {
    /// This answer to a write of the own Lease; valid until then.
    pub(super) fn new(lease: Lease, valid_until: Instant) -> Self {
        Self { lease, valid_until }
    }

    /// Until when the hub may act on it, on its own monotonic clock.
    pub fn valid_until(&self) -> Instant {
        self.valid_until
    }

    /// The Lease as it was written.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Its uid.
    pub fn uid(&self) -> String {
        self.lease.uid().unwrap_or_default()
    }

    /// When it was acquired.
    pub fn acquired(&self) -> Option<MicroTime> {
        self.lease.spec.as_ref()?.acquire_time.clone()
    }

    /// A Lease that nobody holds.
    #[cfg(test)]
    pub fn for_tests(valid_until: Instant) -> Self {
        Self { lease: Lease::default(), valid_until }
    }
}
