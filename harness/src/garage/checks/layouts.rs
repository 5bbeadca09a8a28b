//! The layout of each mesh, as its recorded writes make it.

use std::collections::BTreeMap;
use std::sync::Arc;

use onewriter_history::{CallEnd, Event, Record, State};
use serde_json::Value;

use super::calls::{Write, layout_write};
use super::slot::ByMesh;
use crate::checks::OpenCalls;

/// A role as it is staged: zone, bytes or none for a gateway, and tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleValue {
    /// Zone.
    pub zone: String,
    /// Bytes; none for a gateway.
    pub capacity: Option<u64>,
    /// Tags, in alphabetical order: Garage keeps them in any.
    pub tags: Vec<String>,
}

impl RoleValue {
    /// The role without its tags, which are the operator's own affair where a declaration is concerned.
    #[must_use]
    pub fn untagged(&self) -> Self {
        Self { tags: Vec::new(), ..self.clone() }
    }
}

impl std::fmt::Display for RoleValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.capacity {
            Some(bytes) => write!(f, "{bytes} bytes in zone {}", self.zone)?,
            None => write!(f, "gateway in zone {}", self.zone)?,
        }
        if self.tags.is_empty() { Ok(()) } else { write!(f, " with tags {}", self.tags.join(", ")) }
    }
}

/// A staged change of a node's role; none removes it.
pub type Change = Option<RoleValue>;

/// A change that is staged and neither applied nor reverted.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The change.
    pub change: Change,
    /// The call that staged it.
    pub call: Arc<Record>,
    /// Sequence number of its answer.
    pub answered: u64,
}

/// What happened to the layout of a mesh.
#[derive(Debug)]
pub enum Happened {
    /// An Update was answered 200 and staged these changes.
    Staged {
        /// The call.
        call: Arc<Record>,
        /// Node to change.
        changes: Vec<(String, Change)>,
    },
    /// Staged changes became a version, or were dropped.
    Taken {
        /// The call that did it; none where nobody's was open.
        call: Option<Arc<Record>>,
        /// Whether they became a version.
        applied: bool,
        /// What was staged until then, by node.
        pending: BTreeMap<String, Pending>,
    },
    /// A node took over a version that another one has.
    Received {
        /// Garage's identity of the node.
        node: String,
        /// What was staged there after that version was made, and is lost.
        lost: Vec<Pending>,
        /// Who made that version.
        by: Option<String>,
    },
    /// Two versions of one number met.
    Clashed {
        /// The number.
        version: u64,
        /// Whether the node that tells had answered 200 to the apply of the one that is gone.
        dropped: bool,
    },
}

/// The layouts of all meshes.
#[derive(Debug, Default)]
pub struct Layouts {
    meshes: ByMesh<OfMesh>,
    open: OpenCalls<Arc<Record>>,
}

/// What is known of one mesh's layout.
#[derive(Debug, Default)]
pub struct OfMesh {
    staged: BTreeMap<String, Pending>,
    roles: BTreeMap<String, RoleValue>,
    version: u64,
    applied: u64,
    applied_by: Option<String>,
    clouded: bool,
    /// Nodes whose role is gone, with the role and the version that is without it.
    departed: BTreeMap<String, Departed>,
    /// The newest version that some node has retired.
    retired: u64,
}

/// A role that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departed {
    /// The role.
    pub role: RoleValue,
    /// The first version without it.
    pub version: u64,
}

impl OfMesh {
    /// The role of `node` in the newest version.
    #[must_use]
    pub fn role(&self, node: &str) -> Option<&RoleValue> {
        self.roles.get(node)
    }

    /// The role that `node` had, if it is gone.
    #[must_use]
    pub fn departed(&self, node: &str) -> Option<&Departed> {
        self.departed.get(node)
    }

    /// Whether every version before `version` is retired: its data is where it belongs from then on (Garage admin
    /// reference §9).
    #[must_use]
    pub fn is_settled_before(&self, version: u64) -> bool {
        self.retired + 1 >= version
    }

    /// The newest version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether nodes may hold different layouts, so that there is no such thing as *the* layout: versions met that
    /// were made apart, or a node lost its files.
    #[must_use]
    pub fn is_clouded(&self) -> bool {
        self.clouded
    }
}

impl OfMesh {
    fn change(&mut self, node: &str, change: Option<&RoleValue>, version: u64) {
        if let Some(role) = change {
            self.departed.remove(node);
            self.roles.insert(node.to_owned(), role.clone());
        } else if let Some(role) = self.roles.remove(node) {
            self.departed.insert(node.to_owned(), Departed { role, version });
        }
    }
}

impl Layouts {
    /// What is known of the layout of `mesh`.
    #[must_use]
    pub fn of(&self, mesh: &str) -> Option<&OfMesh> {
        self.meshes.get(mesh)
    }

    /// Forgets `mesh`.
    pub fn forget(&mut self, mesh: &str) {
        self.meshes.remove(mesh);
    }

    /// Takes the next event; tells the mesh whose layout it changed, and how.
    pub fn take(&mut self, record: &Arc<Record>) -> Option<(String, Happened)> {
        match &record.event {
            Event::CallBegin(begin) => {
                if layout_write(record).is_some() {
                    self.open.begin(begin.call, record.clone());
                }
                None
            }
            Event::CallEnd(end) => {
                let open = self.open.end(end.call)?;
                self.ended(open, end, record.seq)
            }
            Event::State(state) if state.subject == "layout" => self.event(state, record.seq),
            _ => None,
        }
    }

    fn ended(&mut self, call: Arc<Record>, end: &CallEnd, seq: u64) -> Option<(String, Happened)> {
        let begin = layout_write(&call).filter(|_| end.status == Some(200))?;
        let mesh = begin.mesh.clone();
        let of_mesh = self.meshes.slot(&mesh);
        match Write::of(begin)? {
            Write::Update => {
                let changes = changes(begin.body.as_ref()?);
                for (node, change) in &changes {
                    let pending = Pending { change: change.clone(), call: call.clone(), answered: seq };
                    of_mesh.staged.insert(node.clone(), pending);
                }
                Some((mesh, Happened::Staged { call, changes }))
            }
            Write::Revert => {
                let pending = std::mem::take(&mut of_mesh.staged);
                Some((mesh, Happened::Taken { call: Some(call), applied: false, pending }))
            }
            Write::Apply | Write::Skip => None,
        }
    }

    fn event(&mut self, state: &State, seq: u64) -> Option<(String, Happened)> {
        let mesh = state.mesh.clone()?;
        let text = |key: &str| state.value.get(key)?.as_str();
        let version = state.value.get("to")?.as_u64()?;
        let node = text("nodeId")?;
        let happened = match text("event")? {
            "applied" => self.applied(&mesh, node, version, seq),
            "merged" | "replaced" => self.received(&mesh, node),
            "conflict" => self.clashed(&mesh, version, false),
            "dropped" => self.clashed(&mesh, version, true),
            "retired" => {
                let of_mesh = self.meshes.slot(&mesh);
                of_mesh.retired = of_mesh.retired.max(version);
                return None;
            }
            "reset" => {
                self.meshes.slot(&mesh).clouded = true;
                return None;
            }
            _ => return None,
        };
        Some((mesh, happened))
    }

    fn applied(&mut self, mesh: &str, node: &str, version: u64, seq: u64) -> Happened {
        let is_it = |call: &&Arc<Record>| {
            layout_write(call).is_some_and(|begin| {
                begin.mesh == mesh && begin.node_id == node && Write::of(begin) == Some(Write::Apply)
            })
        };
        let call = self.open.values().find(is_it).cloned();
        let of_mesh = self.meshes.slot(mesh);
        let pending = std::mem::take(&mut of_mesh.staged);
        for (node, pending) in &pending {
            of_mesh.change(node, pending.change.as_ref(), version);
        }
        of_mesh.version = version;
        of_mesh.applied = seq;
        of_mesh.applied_by = call.as_ref().and_then(|call| layout_write(call)?.caller.clone());
        Happened::Taken { call, applied: true, pending }
    }

    /// Apply moves the time of the staging area, so a node that takes over a version takes its staging area with it: what
    /// was staged there in between is lost although it is newer (Garage admin reference §8, rules 1 and 4).
    fn received(&mut self, mesh: &str, node: &str) -> Happened {
        let of_mesh = self.meshes.slot(mesh);
        let is_lost = |pending: &Pending| {
            pending.answered > of_mesh.applied
                && layout_write(&pending.call).is_some_and(|call| call.node_id == node)
        };
        let lost: Vec<String> = of_mesh
            .staged
            .iter()
            .filter(|(_, pending)| is_lost(pending))
            .map(|(node, _)| node.clone())
            .collect();
        let lost = lost.iter().filter_map(|node| of_mesh.staged.remove(node)).collect();
        Happened::Received { node: node.to_owned(), lost, by: of_mesh.applied_by.clone() }
    }

    fn clashed(&mut self, mesh: &str, version: u64, dropped: bool) -> Happened {
        self.meshes.slot(mesh).clouded = true;
        Happened::Clashed { version, dropped }
    }
}

/// The changes in the body of an Update (Garage admin reference §6).
fn changes(body: &Value) -> Vec<(String, Change)> {
    let roles = body.get("roles").and_then(Value::as_array).or_else(|| body.as_array());
    let change = |entry: &Value| {
        let node = entry.get("id")?.as_str()?.to_ascii_lowercase();
        if entry.get("remove").and_then(Value::as_bool).is_some() {
            return Some((node, None));
        }
        let zone = entry.get("zone")?.as_str()?.to_owned();
        let capacity = entry.get("capacity").and_then(Value::as_u64);
        let tags = entry.get("tags").and_then(Value::as_array).into_iter().flatten();
        let mut tags: Vec<String> = tags.filter_map(Value::as_str).map(str::to_owned).collect();
        tags.sort_unstable();
        Some((node, Some(RoleValue { zone, capacity, tags })))
    };
    roles.into_iter().flatten().filter_map(change).collect()
}
