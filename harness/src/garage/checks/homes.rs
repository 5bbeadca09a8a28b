//! Which site runs which node.

use super::slot::ByMesh;
use std::collections::BTreeMap;

use onewriter_history::{Event, Record};

/// The nodes of every mesh, by identity, with the site and pod that run them.
#[derive(Debug, Default)]
pub struct Homes {
    meshes: ByMesh<BTreeMap<String, Home>>,
}

/// Where a node runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Site.
    pub site: String,
    /// Name of the pod.
    pub pod: String,
}

/// What happened to a node's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process<'a> {
    /// The mesh.
    pub mesh: &'a str,
    /// Garage's identity of the node.
    pub node: &'a str,
    /// `started`, `stopped`, `killed`, …
    pub event: &'a str,
}

impl Homes {
    /// Takes the next event; returned if it is about a node's process.
    pub fn take<'a>(&mut self, record: &'a Record) -> Option<Process<'a>> {
        let Event::State(state) = &record.event else { return None };
        if state.subject != "node" {
            return None;
        }
        let text = |key: &str| state.value.get(key)?.as_str();
        let (mesh, node, event) = (state.mesh.as_deref()?, text("nodeId")?, text("event")?);
        let mut parts = text("node")?.split('/');
        let home = Home { site: parts.next()?.to_owned(), pod: parts.nth(1)?.to_owned() };
        self.meshes.slot(mesh).insert(node.to_owned(), home);
        Some(Process { mesh, node, event })
    }

    /// Forgets `mesh`.
    pub fn forget(&mut self, mesh: &str) {
        self.meshes.remove(mesh);
    }

    /// Where `node` of `mesh` runs.
    #[must_use]
    pub fn of(&self, mesh: &str, node: &str) -> Option<&Home> {
        self.meshes.get(mesh)?.get(node)
    }
}
