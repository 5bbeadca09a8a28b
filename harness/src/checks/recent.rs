//! The last events of each mesh.

use std::any::Any;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use onewriter_history::{Event, Record};

use super::Witness;

/// How many calls before the offending one a witness shows.
pub(super) const CALLS_BEFORE: usize = 5;

/// How many meshes are remembered at most. Meshes end with their cells; those silent for longest are forgotten first.
const MESHES: usize = 4096;

/// One event as a check sees it, with what came just before.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The event.
    pub record: &'a Arc<Record>,
    /// What came just before.
    pub recent: &'a Recent,
    /// For the end of a call, its beginning; for a beginning, one with the same number that has not ended. None if there
    /// is none.
    pub begun: Option<&'a Arc<Record>>,
    read: &'a OnceCell<Box<dyn Any>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(
        record: &'a Arc<Record>,
        recent: &'a Recent,
        begun: Option<&'a Arc<Record>>,
        read: &'a OnceCell<Box<dyn Any>>,
    ) -> Self {
        Self { record, recent, begun, read }
    }

    /// What `read` makes of the event, made once for all checks. They must all read an event as the same type; one that
    /// reads it otherwise gets none.
    pub fn read<T: Any>(&self, read: impl FnOnce(&'a Record) -> T) -> Option<&'a T> {
        self.read.get_or_init(|| Box::new(read(self.record))).downcast_ref()
    }

    /// The witness whose offending event is this one.
    #[must_use]
    pub fn witness(&self) -> Option<Witness> {
        Some(self.recent.witness(self.record))
    }

    /// The witness whose offending event is an earlier one: a call that this event ends, or what it began with.
    #[must_use]
    pub fn witness_of(&self, earlier: &Record) -> Option<Witness> {
        Some(self.recent.witness(earlier).answered_by(self.record))
    }
}

/// The last calls and the last step of each mesh: what a witness is made of.
#[derive(Debug, Default)]
pub struct Recent {
    meshes: BTreeMap<String, OfMesh>,
}

#[derive(Debug, Default)]
struct OfMesh {
    /// One more than a witness shows, since the offending call may be among them.
    calls: VecDeque<Arc<Record>>,
    step: Option<Arc<Record>>,
    last: u64,
}

impl OfMesh {
    fn take(&mut self, record: Arc<Record>, is_call: bool) {
        self.last = record.seq;
        if !is_call {
            self.step = Some(record);
            return;
        }
        if self.calls.len() > CALLS_BEFORE {
            self.calls.pop_front();
        }
        self.calls.push_back(record);
    }
}

impl Recent {
    pub(super) fn take(&mut self, record: Arc<Record>) {
        let is_call = match &record.event {
            Event::CallBegin(_) => true,
            Event::Step(_) => false,
            _ => return,
        };
        let mesh = mesh_of(&record.event).unwrap_or_default();
        if let Some(of_mesh) = self.meshes.get_mut(mesh) {
            of_mesh.take(record, is_call);
            return;
        }
        self.make_room();
        let mesh = mesh.to_owned();
        self.meshes.entry(mesh).or_default().take(record, is_call);
    }

    pub(super) fn forget(&mut self, mesh: &str) {
        self.meshes.remove(mesh);
    }

    fn make_room(&mut self) {
        if self.meshes.len() < MESHES {
            return;
        }
        let mut ages: Vec<u64> = self.meshes.values().map(|mesh| mesh.last).collect();
        ages.sort_unstable();
        let limit = ages[ages.len() / 2];
        self.meshes.retain(|_, mesh| mesh.last > limit);
    }

    /// The witness whose offending event is `record`, one of the last events or older.
    #[must_use]
    pub fn witness(&self, record: &Record) -> Witness {
        let of_mesh = self.meshes.get(mesh_of(&record.event).unwrap_or_default());
        let earlier = |other: &&Arc<Record>| other.seq < record.seq;
        let before: Vec<&Record> = of_mesh
            .into_iter()
            .flat_map(|mesh| mesh.calls.iter().rev().filter(earlier).take(CALLS_BEFORE))
            .map(AsRef::as_ref)
            .collect();
        let step = of_mesh.and_then(|mesh| mesh.step.as_ref()).filter(earlier);
        Witness::new(record, step.map(AsRef::as_ref), before.into_iter().rev())
    }
}

/// The mesh that an event belongs to by its own word.
pub(super) fn mesh_of(event: &Event) -> Option<&str> {
    match event {
        Event::CallBegin(call) => Some(&call.mesh),
        Event::Step(step) => step.mesh.as_deref(),
        Event::State(state) => state.mesh.as_deref(),
        Event::Fault(fault) => fault.mesh.as_deref(),
        Event::CallEnd(_) | Event::Audit(_) | Event::Log(_) => None,
    }
}
