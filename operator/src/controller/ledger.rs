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

/// The record of one cluster as it was last written or is about to be.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The record; `None` before it was read, and where there is none.
    pub record: Option<LayoutWriterStatus>,
    /// Generation of the cluster from which it was made.
    generation: i64,
}

impl Page {
    /// Whether the record was made from a newer spec than `cluster` has: whoever began to look before the spec changed
    /// must not take back what was recorded since (a promoted site's first apply, a demotion).
    pub fn is_ahead_of(&self, cluster: &GarageCluster) -> bool {
        cluster.metadata.generation.unwrap_or_default() < self.generation
    }

    /// Takes `record` down, which was made from `cluster`.
    pub fn put(&mut self, cluster: &GarageCluster, record: Option<LayoutWriterStatus>) {
        self.generation = self.generation.max(cluster.metadata.generation.unwrap_or_default());
        self.record = record;
    }
}

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
        if page.record.is_none() {
            page.record = cluster.status.as_ref().and_then(|status| status.layout_writer.clone());
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
        status.layout_writer.clone_from(&page.record);
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
        let record = intend(page.record.as_ref(), live, next);
        let status = GarageClusterStatus {
            layout_writer: Some(record.clone()),
            ..cluster.status.clone().unwrap_or_default()
        };
        write_status(client, &cluster, &status).await?;
        page.put(&cluster, Some(record));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Page;
    use crate::api::layout::LayoutSiteRole;
    use crate::api::observed::LayoutWriterStatus;
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};

    fn cluster(generation: i64) -> GarageCluster {
        let mut cluster = GarageCluster::new("garage", GarageClusterSpec::default());
        cluster.metadata.generation = Some(generation);
        cluster
    }

    fn record(role: LayoutSiteRole) -> LayoutWriterStatus {
        let (last_applied_version, baseline_version, intended, foreign) = (None, None, None, None);
        LayoutWriterStatus { role, last_applied_version, baseline_version, intended, foreign }
    }

    #[test]
    fn a_record_of_a_newer_spec_is_ahead_of_whoever_began_before_it() {
        let mut page = Page::default();
        assert!(!page.is_ahead_of(&cluster(1)));
        page.put(&cluster(3), Some(record(LayoutSiteRole::Writer)));
        assert!(page.is_ahead_of(&cluster(2)));
        assert!(!page.is_ahead_of(&cluster(3)));
    }
}
