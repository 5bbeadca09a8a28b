//! Which role each site was declared to have, and which cell said so.

use std::collections::BTreeMap;

use onewriter_history::{Event, Record};
use serde::{Deserialize, Serialize};

use super::slot::ByMesh;
use crate::garage::role::Role;

/// Subject of the state event that declares the roles of a mesh.
pub const ROLES: &str = "roles";
/// Subject of the state event that says what a cell expects.
pub const EXPECTATION: &str = "expectation";

/// What a cell expects of each site: who must write, who must not, who must at least have looked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expectation {
    /// Sites that must make at least one layout write.
    pub writes: Vec<String>,
    /// Sites that must have read the layout, so that their silence means something.
    pub reads: Vec<String>,
}

/// The roles of every mesh as they were declared last.
#[derive(Debug, Default)]
pub struct Roles {
    meshes: ByMesh<Declared>,
}

#[derive(Debug)]
struct Declared {
    cell: Option<String>,
    roles: BTreeMap<String, Role>,
}

/// A declaration of roles cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

impl Roles {
    /// Takes the next event; the mesh is returned if the event declares its roles.
    pub fn take<'a>(&mut self, record: &'a Record) -> Result<Option<&'a str>, Unreadable> {
        let Event::State(state) = &record.event else { return Ok(None) };
        if state.subject != ROLES {
            return Ok(None);
        }
        let roles = BTreeMap::deserialize(&state.value).map_err(|_| Unreadable)?;
        let mesh = state.mesh.as_deref().ok_or(Unreadable)?;
        self.meshes.insert(mesh, Declared { cell: state.cell.clone(), roles });
        Ok(Some(mesh))
    }

    /// Takes the next event where an unreadable declaration is another check's matter.
    pub fn follow(&mut self, record: &Record) {
        self.take(record).unwrap_or_default();
    }

    /// Forgets `mesh`.
    pub fn forget(&mut self, mesh: &str) {
        self.meshes.remove(mesh);
    }

    /// The roles in `mesh`.
    pub fn in_mesh(&self, mesh: &str) -> impl Iterator<Item = (&str, Role)> {
        let roles = self.meshes.get(mesh).map(|declared| &declared.roles);
        roles.into_iter().flatten().map(|(site, role)| (site.as_str(), *role))
    }

    /// The cell that declared the roles of `mesh`.
    #[must_use]
    pub fn cell(&self, mesh: &str) -> Option<&str> {
        self.meshes.get(mesh)?.cell.as_deref()
    }
}
