//! What a cell has while it runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;

use super::disturbance::DISTURBANCE;
use super::{AbortSwitch, Cell, Disturbance, Disturber};
use crate::failure::Failure;
use crate::history::Recorder;
use crate::pair::PairDescription;
use crate::site::{PerSite, Site};

/// How long things may take. All of them are mandatory: nothing waits for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One wait of a scenario.
    pub step: Duration,
    /// The body of a cell.
    pub scenario: Duration,
    /// The teardown of a cell.
    pub teardown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            step: Duration::from_mins(1),
            scenario: Duration::from_mins(3),
            teardown: Duration::from_mins(1),
        }
    }
}

/// What a cell has while it runs: both sites, a namespace of its own in each, and the history.
#[derive(Clone)]
pub struct Scope {
    /// Path of the cell.
    pub cell: String,
    /// Namespace of the cell, the same name on both sites.
    pub namespace: String,
    /// Kubernetes clients of the sites.
    pub clients: PerSite<Client>,
    /// The hub's journal, live.
    pub journal: PathBuf,
    /// URLs of the metrics of the operators under test; empty where there are none.
    pub metrics: PerSite<String>,
    /// Folder for what is saved of the cell.
    pub evidence: PathBuf,
    /// Records what the cell does.
    pub recorder: Recorder,
    /// How long things may take.
    pub limits: Limits,
    /// Ends the cell early when it is thrown.
    pub abort: AbortSwitch,
    /// Breaks and mends what several namespaces share. Only for cells that say so: see [`super::Disturbs`].
    pub disturber: Arc<dyn Disturber>,
    /// Where the parts of the pair are.
    pub pair: Arc<PairDescription>,
    /// Whether a failed cell is left as it is, for a person to look at.
    pub keep_failed: bool,
    /// Whether others use the pair meanwhile, so that the cell's namespaces must be removed one by one.
    pub shared: bool,
}

impl Scope {
    /// The namespace of `cell`. `run` (a short suffix) keeps those of several runs on one pair apart, `attempt` those of a
    /// cell that is run again.
    ///
    /// On a pair of one's own the name says nothing of the run: whatever the hub draws for the mesh, which has this name,
    /// then follows from the seed alone.
    #[must_use]
    pub fn namespace_of(cell: &Cell, run: Option<&str>, attempt: u32) -> String {
        let mut name = format!("ow-{}-{}", cell.scenario.replace('_', "-"), cell.name);
        for part in run.map(str::to_owned).into_iter().chain((attempt > 0).then(|| attempt.to_string())) {
            name.push('-');
            name.push_str(&part);
        }
        name
    }

    /// Breaks or mends a part of the pair, and records that.
    pub async fn disturb(&self, site: Site, what: Disturbance) -> Result<(), Failure> {
        self.recorder.step(what.to_string());
        let detail = serde_json::to_value(what).ok();
        self.recorder.fault(DISTURBANCE, site.name(), detail);
        let done = self.disturber.disturb(what).await;
        done.map_err(|error| Failure::harness(site, what.to_string(), error))
    }

    /// The client of `site`.
    #[must_use]
    pub fn client(&self, site: Site) -> Client {
        self.clients.at(site).clone()
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope")
            .field("cell", &self.cell)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_pair_of_ones_own_a_namespace_is_named_after_its_cell_alone() {
        let cell = Cell::control("scale_down", "writer");
        assert_eq!(Scope::namespace_of(&cell, None, 0), "ow-scale-down-writer");
        assert_eq!(Scope::namespace_of(&cell, None, 2), "ow-scale-down-writer-2");
    }

    #[test]
    fn on_a_shared_pair_runs_and_attempts_have_namespaces_of_their_own() {
        let cell = Cell::control("scale_down", "writer");
        assert_eq!(Scope::namespace_of(&cell, Some("x1"), 0), "ow-scale-down-writer-x1");
        assert_eq!(Scope::namespace_of(&cell, Some("x1"), 1), "ow-scale-down-writer-x1-1");
    }
}
