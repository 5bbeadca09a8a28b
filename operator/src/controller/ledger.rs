//! What is recorded about the layout writer of each cluster. Several reconciles know parts of it: those of nodes record
//! what they are about to apply, that of the cluster what it sees. One lock for each cluster keeps either from writing
//! over the other; after a restart the status is where it was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::{Api, Client, ResourceExt};
use tokio::sync::OwnedMutexGuard;

use super::apply::write_status;
use super::error::ReconcileError;
use crate::api::observed::LayoutWriterStatus;
use crate::api::v1beta2::{GarageCluster, GarageClusterStatus};
use crate::decision::foreign_writer::{Content, intend};
use crate::guard::ClusterKey;
use crate::mutant::{self, Mutant};

/// The record of one cluster as it was last written or is about to be; `None` before it was read.
type Page = Option<LayoutWriterStatus>;

/// The records by the UID of their cluster.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pages: Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Page>>>>>,
}

impl Ledger {
    /// Takes the record of a cluster: nobody else writes its status meanwhile.
    pub async fn open(&self, cluster: &GarageCluster) -> OwnedMutexGuard<Page> {
        let page = {
            let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(pages.entry(cluster.uid().unwrap_or_default()).or_default())
        };
        let mut page = page.lock_owned().await;
        if page.is_none() {
            *page = cluster.status.as_ref().and_then(|status| status.layout_writer.clone());
        }
        page
    }

    /// The cluster is gone.
    pub fn forget(&self, cluster: &GarageCluster) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.remove(&cluster.uid().unwrap_or_default());
    }

    /// Writes a status of a cluster with the record as it is now.
    pub async fn write(
        &self,
        client: &Client,
        cluster: &GarageCluster,
        mut status: GarageClusterStatus,
    ) -> Result<GarageClusterStatus, ReconcileError> {
        let page = self.open(cluster).await;
        status.layout_writer.clone_from(&page);
        write_status(client, cluster, &status).await?;
        Ok(status)
    }

    /// Records what is about to be applied to the layout of `owner`, before it is. A cluster that declares no role keeps
    /// no record.
    pub async fn intend(
        &self,
        client: &Client,
        owner: &ClusterKey,
        live: &Content,
        next: &Content,
    ) -> Result<(), ReconcileError> {
        if mutant::is(Mutant::IntentNotRecorded) {
            return Ok(());
        }
        let clusters: Api<GarageCluster> = Api::namespaced(client.clone(), &owner.namespace);
        let read = || async {
            let found = clusters.get_opt(&owner.name).await;
            found.map_err(ReconcileError::kube(format!("read GarageCluster {owner}")))
        };
        let Some(cluster) = read().await?.filter(|cluster| cluster.spec.site_role().is_some()) else {
            return Ok(());
        };
        let mut page = self.open(&cluster).await;
        // Read again: until the record was free, somebody else may have written the status.
        let Some(cluster) = read().await? else { return Ok(()) };
        let record = intend(page.as_ref(), live, next);
        let status = GarageClusterStatus {
            layout_writer: Some(record.clone()),
            ..cluster.status.clone().unwrap_or_default()
        };
        write_status(client, &cluster, &status).await?;
        *page = Some(record);
        Ok(())
    }
}
