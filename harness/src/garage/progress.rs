//! Positive progress of an operator, seen from outside: the reconcile witness.
//!
//! "Nothing happened" is proved by what did happen: after a poke (a dummy annotation) the site's operator reads both the
//! status and the layout with its own token. That is one completed reconcile.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use onewriter_history::{CallEnd, Event, Moment, Record};
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
    status: Read,
    layout: Read,
    calls: usize,
}

/// How far a read has come. An operator may make both at once, so their order tells nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Read {
    #[default]
    Awaited,
    Begun(u64),
    Answered,
}

impl Read {
    fn begin(&mut self, call: u64) {
        if *self == Self::Awaited {
            *self = Self::Begun(call);
        }
    }

    /// The call ended; one that was not answered with success is awaited again.
    fn end(&mut self, end: &CallEnd) {
        if *self == Self::Begun(end.call) {
            *self = if end.status == Some(200) { Self::Answered } else { Self::Awaited };
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Awaited => "not read",
            Self::Begun(_) => "being read",
            Self::Answered => "read",
        }
    }
}

impl Reads {
    /// Takes a record in; true once both the status and the layout were read.
    fn complete_with(&mut self, record: &Record, mesh: &Mesh, site: Site) -> bool {
        match &record.event {
            Event::CallBegin(call)
                if call.mesh == mesh.name && call.caller.as_deref() == Some(site.name()) =>
            {
                self.calls += 1;
                match call.path.as_str() {
                    "/v2/GetClusterStatus" => self.status.begin(call.call),
                    "/v2/GetClusterLayout" => self.layout.begin(call.call),
                    _ => {}
                }
            }
            Event::CallEnd(end) => {
                self.status.end(end);
                self.layout.end(end);
            }
            _ => {}
        }
        self.status == Read::Answered && self.layout == Read::Answered
    }

    fn not_reached(&self, site: Site, limit: Duration) -> NotReached {
        let state = format!(
            "{} calls since the poke; the status was {}, the layout was {}",
            self.calls,
            self.status.in_words(),
            self.layout.in_words()
        );
        NotReached {
            site,
            awaited: "completed reconcile after a poke".to_owned(),
            limit,
            last_state: Some((state, Duration::ZERO)),
            last_error: None,
        }
    }
}
