//! The life of a node whose process is a pod's: who watches it learns how it ended, and who stops watching ends it.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::stream;
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};

use super::registry::{ControlError, Place};
use crate::mesh::Process;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// By itself or after SIGTERM, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// What a kill is told as.
const SIGKILL: i32 = 9;

/// Kills a process unless it has ended before.
struct Watch {
    place: Place,
    boot: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Place { actor, node } = &self.place;
        let lives = actor.read(|cluster| is_boot(cluster.mesh().node(*node), self.boot));
        if lives {
            actor.alter(|mesh| mesh.kill(*node));
        }
    }
}

fn is_boot(node: &crate::mesh::Node, boot: u64) -> bool {
    node.boot() == boot && !matches!(node.process(), Process::Ended { .. })
}

/// Follows the process of a node that was started as its `boot`-th: one line once it has ended.
///
/// The process is killed if the answer is given up before: the pod has gone without a word.
pub fn follow(place: Place, boot: u64) -> Result<Response, ControlError> {
    let (name, started) = place.actor.read(|cluster| {
        let node = cluster.mesh().node(place.node);
        (node.config().name.clone(), node.boot())
    });
    if !(1..=started).contains(&boot) {
        return Err(ControlError::NoBoot { node: name, boot, started });
    }
    let port = place.port().ok();
    let lives = place.actor.read(|cluster| is_boot(cluster.mesh().node(place.node), boot));
    let watch = Watch { place, boot };
    let line = async move {
        if let Some(port) = port.filter(|_| lives) {
            port.closing().await;
        }
        let mut line = serde_json::to_vec(&watch.ended()).unwrap_or_default();
        line.push(b'\n');
        Ok::<_, Infallible>(line)
    };
    let body = Body::from_stream(stream::once(line));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

impl Watch {
    fn ended(&self) -> Ended {
        let read = |cluster: &crate::admin::Cluster| {
            let node = cluster.mesh().node(self.place.node);
            (node.boot(), node.process())
        };
        match self.place.actor.read(read) {
            (boot, Process::Ended { code: Some(code) }) if boot == self.boot => Ended::Exit(code),
            // Whoever was started anew meanwhile was killed before.
            _ => Ended::Signal(SIGKILL),
        }
    }
}
