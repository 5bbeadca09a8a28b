//! Positive progress of an operator, seen from outside: the reconcile witness.
//!
//! "Nothing happened" is proved by what did happen: after a poke (a dummy annotation) the site's operator reads both the
//! status and the layout with its own token. That is one completed reconcile.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use onewriter_history::{Event, Moment, Record};
use serde_json::json;

use super::facts;
use super::mesh::Mesh;
use super::objects;
use crate::failure::{Failure, NotReached};
use crate::history::JournalTail;
use crate::scenario::Scope;
use crate::site::Site;

/// Annotation that wakes an operator without asking it for anything.
const POKE: &str = "onewriter.dev/poke";

/// Pokes the GarageCluster `cluster` and the GarageNodes `nodes` of `site` and waits until as many reconciles are
/// completed, `times` times over.
///
/// # Guarantees
/// Every object was reconciled with what it is now, by an operator that follows the operator contract: each pass over a
/// GarageCluster or GarageNode reads the status and the layout. So a write that any of them causes has come by then.
///
/// From the second time on the history is told that nothing changes any more (the check `quiescence`).
pub async fn completes_reconciles(
    scope: &Scope,
    mesh: &Mesh,
    site: Site,
    cluster: &str,
    nodes: &[String],
    times: u32,
) -> Result<(), Failure> {
    let clusters = objects::clusters(scope.client(site), &scope.namespace);
    let garage_nodes = objects::nodes(scope.client(site), &scope.namespace);
    for number in 1..=times {
        if number == 2 {
            // Whatever the operator still had to do, the first pass over everything has done it.
            scope.recorder.state(facts::QUIET, json!(facts::Quiet { on: true }));
        }
        scope
            .recorder
            .step(format!("poke GarageCluster {cluster} and its nodes on {site} ({number} of {times})"));
        let tail = follow(scope, site)?;
        let poked = Moment::now();
        poke(site, &clusters, cluster, poked.mono_ns).await?;
        try_join_all(nodes.iter().map(|node| poke(site, &garage_nodes, node, poked.mono_ns))).await?;
        await_reconciles(scope, mesh, site, tail, poked, 1 + nodes.len()).await?;
        super::metrics::record(scope).await;
    }
    if times > 1 {
        scope.recorder.state(facts::QUIET, json!(facts::Quiet { on: false }));
    }
    Ok(())
}

const FOLLOW: &str = "follow the hub's journal";

/// The journal from now on. To be opened before whatever is to be seen in it.
fn follow(scope: &Scope, site: Site) -> Result<JournalTail, Failure> {
    JournalTail::open_at_end(&scope.journal).map_err(|error| Failure::harness(site, FOLLOW, error))
}

/// Waits until the operator of `site` has looked at everything once more by itself: nobody nudges it.
pub async fn looks_again(scope: &Scope, mesh: &Mesh, site: Site) -> Result<(), Failure> {
    await_reconciles(scope, mesh, site, follow(scope, site)?, Moment::now(), 1).await
}

/// Never twice with the same value: a change that changes nothing wakes nobody.
async fn poke(site: Site, api: &Api<DynamicObject>, name: &str, poked: u64) -> Result<(), Failure> {
    let annotation = json!({"metadata": {"annotations": {POKE: poked.to_string()}}});
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(annotation)).await;
    patched.map(drop).map_err(|error| Failure::harness(site, format!("poke {name}"), error))
}

async fn await_reconciles(
    scope: &Scope,
    mesh: &Mesh,
    site: Site,
    mut tail: JournalTail,
    poked: Moment,
    wanted: usize,
) -> Result<(), Failure> {
    let mut reads = Reads::default();
    let following = async {
        loop {
            let record = tail.next().await?;
            if record.mono_ns > poked.mono_ns {
                reads.take(&record, mesh, site);
                if reads.completed() >= wanted {
                    return Ok::<(), std::io::Error>(());
                }
            }
        }
    };
    match tokio::time::timeout(scope.limits.step, following).await {
        Ok(read) => read.map_err(|error| Failure::harness(site, FOLLOW, error)),
        Err(_elapsed) => Err(reads.not_reached(site, wanted, scope.limits.step).into()),
    }
}

/// The reads that were begun and answered since the poke. An operator may make both of a pass at once, so their order
/// tells nothing.
#[derive(Debug, Default)]
struct Reads {
    begun: BTreeMap<u64, What>,
    status: usize,
    layout: usize,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Status,
    Layout,
}

impl Reads {
    fn take(&mut self, record: &Record, mesh: &Mesh, site: Site) {
        match &record.event {
            Event::CallBegin(call)
                if call.mesh == mesh.name && call.caller.as_deref() == Some(site.name()) =>
            {
                match call.path.as_str() {
                    "/v2/GetClusterStatus" => drop(self.begun.insert(call.call, What::Status)),
                    "/v2/GetClusterLayout" => drop(self.begun.insert(call.call, What::Layout)),
                    _ => {}
                }
            }
            Event::CallEnd(end) if end.status == Some(200) => match self.begun.remove(&end.call) {
                Some(What::Status) => self.status += 1,
                Some(What::Layout) => self.layout += 1,
                None => {}
            },
            _ => {}
        }
    }

    /// Reconciles that must have been completed: each reads both.
    fn completed(&self) -> usize {
        self.status.min(self.layout)
    }

    fn not_reached(&self, site: Site, wanted: usize, limit: Duration) -> NotReached {
        let Self { status, layout, .. } = self;
        let state = format!("since the poke the status was read {status} times, the layout {layout} times");
        NotReached {
            site,
            awaited: format!("{wanted} completed reconciles after a poke"),
            limit,
            last_state: Some((state, Duration::ZERO)),
            last_error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::garage::checks::example::{Example, ExampleCall, call};

    fn completed(calls: Vec<ExampleCall>) -> usize {
        let mesh = Mesh::new("m1");
        let mut reads = Reads::default();
        let example = calls.into_iter().fold(Example::new(), Example::call);
        for record in &example.history().records {
            reads.take(record, &mesh, Site::West);
        }
        reads.completed()
    }

    #[test]
    fn a_reconcile_is_complete_once_status_and_layout_are_read_in_any_order() {
        let (status, layout) =
            (|| call("west").get("/v2/GetClusterStatus"), || call("west").get("/v2/GetClusterLayout"));
        assert_eq!(completed(vec![status()]), 0);
        assert_eq!(completed(vec![layout(), status()]), 1);
        assert_eq!(completed(vec![status(), layout(), status(), status()]), 1);
    }

    #[test]
    fn reads_of_others_and_reads_without_an_answer_do_not_count() {
        let status = || call("west").get("/v2/GetClusterStatus");
        assert_eq!(completed(vec![status(), call("east").get("/v2/GetClusterLayout")]), 0);
        assert_eq!(completed(vec![status(), call("west").get("/v2/GetClusterLayout").unfinished()]), 0);
        assert_eq!(completed(vec![status(), call("west").get("/v2/GetClusterLayout").status(500)]), 0);
    }
}
