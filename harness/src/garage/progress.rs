//! Positive progress of an operator, seen from outside: the reconcile witness.
//!
//! "Nothing happened" is proved by what did happen: after a poke (a dummy annotation) the site's operator reads the
//! status and then the layout with its own token. That is one completed reconcile.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use onewriter_history::{Event, Moment, Record};
use serde_json::json;

use super::mesh::Mesh;
use super::objects;
use crate::failure::{Failure, NotReached};
use crate::history::JournalTail;
use crate::scenario::Scope;
use crate::site::Site;

/// Annotation that wakes an operator without asking it for anything.
const POKE: &str = "onewriter.dev/poke";

/// Pokes the GarageCluster `name` of `site` and waits for a completed reconcile, `times` times over.
pub async fn completes_reconciles(
    scope: &Scope,
    mesh: &Mesh,
    site: Site,
    name: &str,
    times: u32,
) -> Result<(), Failure> {
    for number in 1..=times {
        scope
            .recorder
            .step(format!("poke GarageCluster {name} on {site} and await reconcile {number} of {times}"));
        let poked = Moment::now();
        poke(scope, site, name, number).await?;
        await_reconcile(scope, mesh, site, poked).await?;
    }
    Ok(())
}

async fn poke(scope: &Scope, site: Site, name: &str, number: u32) -> Result<(), Failure> {
    let api = objects::clusters(scope.client(site), &scope.namespace);
    let annotation = json!({"metadata": {"annotations": {POKE: number.to_string()}}});
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(annotation)).await;
    patched.map(drop).map_err(|error| Failure::harness(site, format!("poke GarageCluster {name}"), error))
}

async fn await_reconcile(scope: &Scope, mesh: &Mesh, site: Site, poked: Moment) -> Result<(), Failure> {
    let step = "follow the hub's journal";
    let mut tail = JournalTail::open(&scope.journal).map_err(|error| Failure::harness(site, step, error))?;
    let mut reads = Reads::default();
    let following = async {
        loop {
            let record = tail.next().await?;
            if record.mono_ns > poked.mono_ns && reads.complete_with(&record, mesh, site) {
                return Ok::<(), std::io::Error>(());
            }
        }
    };
    match tokio::time::timeout(scope.limits.step, following).await {
        Ok(read) => read.map_err(|error| Failure::harness(site, step, error)),
        Err(_elapsed) => Err(reads.not_reached(site, scope.limits.step).into()),
    }
}

/// What was read since the poke.
#[derive(Debug, Default)]
struct Reads {
    status: bool,
    calls: usize,
}

impl Reads {
    /// Takes a record in; true once a status read was followed by a layout read.
    fn complete_with(&mut self, record: &Record, mesh: &Mesh, site: Site) -> bool {
        let Event::CallBegin(call) = &record.event else { return false };
        if call.mesh != mesh.name || call.caller.as_deref() != Some(site.name()) {
            return false;
        }
        self.calls += 1;
        match call.path.as_str() {
            "/v2/GetClusterStatus" => self.status = true,
            "/v2/GetClusterLayout" => return self.status,
            _ => {}
        }
        false
    }

    fn not_reached(&self, site: Site, limit: Duration) -> NotReached {
        let status = if self.status { "the status was read, the layout not" } else { "no status read" };
        NotReached {
            site,
            awaited: "completed reconcile after a poke".to_owned(),
            limit,
            last_state: Some((format!("{} calls since the poke, {status}", self.calls), Duration::ZERO)),
            last_error: None,
        }
    }
}
