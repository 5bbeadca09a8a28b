//! What every reconcile can use.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::runtime::reflector::Store;

use super::events::Events;
use super::ledger::Ledger;
use super::locks::LayoutLocks;
use super::pace::Paces;
use super::watched_nodes::WatchedNodes;
use crate::api::v1beta2::GarageCluster;
use crate::decision::cadence::Cadence;
use crate::decision::factor_migration::Patience;
use crate::garage::Deadlines;
use crate::guard::LayoutGuard;
use crate::metrics::Metrics;

/// Settings of the reconcilers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// DNS domain of Services.
    pub cluster_domain: String,
    /// Garage image where no spec names one.
    pub default_garage_image: String,
    /// Image of the init container that purges layout files; that of the node when empty.
    pub layout_purge_image: String,
    /// How long a factor migration may wait.
    pub migration_patience: Patience,
    /// Waiting periods.
    pub cadence: Cadence,
    /// Deadlines of admin calls.
    pub deadlines: Deadlines,
    /// Reconciles of one kind at the same time.
    pub concurrency: u16,
    /// Whether each cluster gets an admin token of its own for the calls through its Service.
    pub operator_admin_token: bool,
    /// Longest that one reconcile may take: a call that never ends must not keep its object from being looked at.
    pub reconcile_deadline: Duration,
    /// Whether the blocks of a drained storage node have to be proved elsewhere before it goes.
    pub drain_block_proof: bool,
    /// How long nothing may move before a drain is complete.
    pub drain_quiet_period: Duration,
    /// How long a gateway must be down for its role to be stale.
    pub tombstone_age: Duration,
    /// How long a node may be without a role before an event tells it.
    pub roleless_warning: Duration,
}

/// What every reconcile of one watch scope can use.
pub struct Context {
    /// Kubernetes client.
    pub client: Client,
    /// HTTP client of all admin clients.
    pub http: crate::garage::Http,
    /// Settings.
    pub settings: Settings,
    /// The guard of the layout.
    pub guard: LayoutGuard,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Kubernetes events.
    pub events: Events,
    /// One layout mutation per layout owner at a time.
    pub locks: LayoutLocks,
    /// What is recorded about the layout writer of each cluster.
    pub ledger: Ledger,
    /// How long each object has been pending, and failing.
    pub paces: Paces,
    /// All `GarageClusters` as watched.
    pub clusters: Store<GarageCluster>,
    /// All `GarageNodes` as watched.
    pub nodes: WatchedNodes,
}
