//! Which role each site was declared to have, and when.

use std::collections::BTreeMap;

use onewriter_history::{Event, History};
use serde::{Deserialize, Serialize};

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

/// The roles of every mesh over time.
#[derive(Debug, Default)]
pub struct Roles {
    /// Mesh to changes, each with the sequence number from which it holds.
    changes: BTreeMap<String, Vec<Change>>,
}

#[derive(Debug)]
struct Change {
    from: u64,
    cell: Option<String>,
    roles: BTreeMap<String, Role>,
}

impl Roles {
    /// Reads the declarations in `history`. Those that cannot be read are returned beside, as sequence numbers.
    #[must_use]
    pub fn of(history: &History) -> (Self, Vec<u64>) {
        let mut roles = Self::default();
        let mut unreadable = Vec::new();
        for record in &history.records {
            let Event::State(state) = &record.event else { continue };
            if state.subject != ROLES {
                continue;
            }
            match (&state.mesh, serde_json::from_value(state.value.clone())) {
                (Some(mesh), Ok(declared)) => {
                    let change = Change { from: record.seq, cell: state.cell.clone(), roles: declared };
                    roles.changes.entry(mesh.clone()).or_default().push(change);
                }
                _ => unreadable.push(record.seq),
            }
        }
        (roles, unreadable)
    }

    /// The role of `site` in `mesh` when event `seq` happened; none if none was declared.
    #[must_use]
    pub fn at(&self, mesh: &str, site: &str, seq: u64) -> Option<Role> {
        self.change(mesh, seq)?.roles.get(site).copied()
    }

    /// The cell that declared the roles of `mesh` in force at `seq`.
    #[must_use]
    pub fn cell(&self, mesh: &str, seq: u64) -> Option<&str> {
        self.change(mesh, seq)?.cell.as_deref()
    }

    fn change(&self, mesh: &str, seq: u64) -> Option<&Change> {
        self.changes.get(mesh)?.iter().rev().find(|change| change.from <= seq)
    }
}
