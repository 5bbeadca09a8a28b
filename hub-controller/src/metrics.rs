//! Prometheus metrics of the hub.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StepLabels {
    step: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WriteLabels {
    kind: String,
    verb: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReconcileLabels {
    kind: String,
    result: String,
}

type Seconds = Gauge<f64, AtomicU64>;

/// The metrics and their registry. Names are those of the design record where it names any.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    failovers: Counter,
    aborted: Family<StepLabels, Counter>,
    fence_open: Gauge,
    proof_age: Seconds,
    lease_reads: Family<OutcomeLabels, Counter>,
    renewals: Family<OutcomeLabels, Counter>,
    sync_lag: Histogram,
    mirror_writes: Family<WriteLabels, Counter>,
    mirror_connected: Family<KindLabels, Gauge>,
    mirror_pending: Gauge,
    mirror_refused: Gauge,
    publish_refused: Gauge,
    reconciles: Family<ReconcileLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Registers everything.
    pub fn new() -> Self {
        let mut new = Self {
            registry: Registry::default(),
            failovers: Counter::default(),
            aborted: Family::default(),
            fence_open: Gauge::default(),
            proof_age: Gauge::default(),
            lease_reads: Family::default(),
            renewals: Family::default(),
            sync_lag: Histogram::new(exponential_buckets(0.001, 2.0, 17)),
            mirror_writes: Family::default(),
            mirror_connected: Family::default(),
            mirror_pending: Gauge::default(),
            mirror_refused: Gauge::default(),
            publish_refused: Gauge::default(),
            reconciles: Family::default(),
        };
        new.register_leadership();
        new.register_work();
        new
    }

    fn register_leadership(&mut self) {
        let registry = &mut self.registry;
        registry.register("ha_failover", "Promotions of this process", self.failovers.clone());
        registry.register("ha_promotion_aborted", "Attempts given up, by step", self.aborted.clone());
        registry.register("ha_fence_open", "1 while reconcilers may write", self.fence_open.clone());
        registry.register(
            "ha_proof_of_life_age_seconds",
            "Since when the newest renewTime of the Active was first seen; -1 before the first",
            self.proof_age.clone(),
        );
        registry.register(
            "ha_lease_reads",
            "Reads of the Active's Lease, by outcome",
            self.lease_reads.clone(),
        );
        registry.register(
            "ha_lease_renewals",
            "Renewals of the own Lease, by outcome",
            self.renewals.clone(),
        );
        registry.register(
            "ha_publish_refused",
            "1 while the hub does not declare itself, for nobody could reach its endpoint",
            self.publish_refused.clone(),
        );
        self.proof_age.set(-1.0);
    }

    fn register_work(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "ha_sync_lag_seconds",
            "From the arrival of a change on the Active to its copy being written",
            self.sync_lag.clone(),
        );
        registry.register(
            "ha_mirror_writes",
            "Writes of the mirror that were accepted",
            self.mirror_writes.clone(),
        );
        registry.register(
            "ha_mirror_connected",
            "1 while a kind is listed and watched",
            self.mirror_connected.clone(),
        );
        registry.register("ha_mirror_pending", "Copies that wait to be written", self.mirror_pending.clone());
        registry.register(
            "ha_mirror_refused",
            "1 while the wipe of this hub is missing",
            self.mirror_refused.clone(),
        );
        registry.register("hub_reconciles", "Reconciles by kind and result", self.reconciles.clone());
    }

    /// Counts a promotion.
    pub fn promoted(&self) {
        self.failovers.inc();
    }

    /// Counts an attempt that was given up.
    pub fn aborted(&self, step: &str) {
        self.aborted.get_or_create(&StepLabels { step: step.to_owned() }).inc();
    }

    /// Says whether reconcilers may write.
    pub fn fence(&self, open: bool) {
        self.fence_open.set(i64::from(open));
    }

    /// Shows a look at the Active's Lease.
    pub fn looked(&self, outcome: &str, age: Option<Duration>) {
        self.lease_reads.get_or_create(&OutcomeLabels { outcome: outcome.to_owned() }).inc();
        self.proof_age.set(age.map_or(-1.0, |age| age.as_secs_f64()));
    }

    /// Counts a renewal of the own Lease.
    pub fn renewed(&self, outcome: &str) {
        self.renewals.get_or_create(&OutcomeLabels { outcome: outcome.to_owned() }).inc();
    }

    /// Shows how long a change waited.
    pub fn synced(&self, lag: Duration) {
        self.sync_lag.observe(lag.as_secs_f64());
    }

    /// Counts a write of the mirror.
    pub fn mirrored(&self, kind: &str, verb: &str) {
        self.mirror_writes.get_or_create(&WriteLabels { kind: kind.to_owned(), verb: verb.to_owned() }).inc();
    }

    /// Shows whether a kind is listed and watched.
    pub fn connected(&self, kind: &str, connected: bool) {
        self.mirror_connected.get_or_create(&KindLabels { kind: kind.to_owned() }).set(i64::from(connected));
    }

    /// Shows how many copies wait.
    pub fn pending(&self, copies: usize) {
        self.mirror_pending.set(i64::try_from(copies).unwrap_or(i64::MAX));
    }

    /// Shows that the hub may not mirror.
    pub fn refused_to_mirror(&self, refused: bool) {
        self.mirror_refused.set(i64::from(refused));
    }

    /// Shows that the hub does not declare itself.
    pub fn refused_to_publish(&self, refused: bool) {
        self.publish_refused.set(i64::from(refused));
    }

    /// Counts a reconcile: `success`, `error` or `skipped`.
    pub fn reconciled(&self, kind: &str, result: &str) {
        let labels = ReconcileLabels { kind: kind.to_owned(), result: result.to_owned() };
        self.reconciles.get_or_create(&labels).inc();
    }

    /// The page for Prometheus, in its text format.
    pub fn page(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Metrics;

    #[test]
    fn the_page_names_what_the_design_record_names() {
        let metrics = Metrics::new();
        metrics.promoted();
        metrics.synced(Duration::from_millis(3));
        metrics.fence(true);
        metrics.looked("read", Some(Duration::from_millis(1500)));
        let page = metrics.page().unwrap();
        for line in [
            "ha_failover_total 1",
            "ha_sync_lag_seconds_count 1",
            "ha_fence_open 1",
            "ha_proof_of_life_age_seconds 1.5",
            "ha_lease_reads_total{outcome=\"read\"} 1",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
    }
}
