//! The harness's own part of the history: steps, states, faults.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use onewriter_history::{Event, Fault, Header, Journal, Source, State, Step, WriteError};
use serde_json::Value;

/// Writes down what the harness does, as it does it.
///
/// Cheap to clone; clones write to the same journal. [`Recorder::of_cell`] gives one that names its cell.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    cell: Option<String>,
    mesh: Option<String>,
}

#[derive(Debug)]
struct Shared {
    journal: Mutex<Journal>,
    /// The first append that failed. A history with a hole must not be judged, so it is kept until asked for.
    broken: Mutex<Option<WriteError>>,
    doing: Mutex<std::collections::BTreeMap<String, String>>,
}

impl Recorder {
    /// Begins the harness's journal at `path`.
    pub fn create(path: &Path, header: &Header) -> Result<Self, WriteError> {
        let journal = Journal::create(path, header, Source::harness())?;
        let shared =
            Shared { journal: Mutex::new(journal), broken: Mutex::default(), doing: Mutex::default() };
        Ok(Self { shared: Arc::new(shared), cell: None, mesh: None })
    }

    /// A recorder whose events name `cell` and `mesh`.
    #[must_use]
    pub fn of_cell(&self, cell: &str, mesh: &str) -> Self {
        Self { shared: self.shared.clone(), cell: Some(cell.to_owned()), mesh: Some(mesh.to_owned()) }
    }

    /// Records that something is about to be done: a short sentence without a subject.
    pub fn step(&self, title: impl Into<String>) {
        self.step_with(title, None);
    }

    /// Records a step with figures or names that belong to it.
    pub fn step_with(&self, title: impl Into<String>, detail: Option<Value>) {
        let title = title.into();
        tracing::debug!(cell = self.cell.as_deref(), "{title}");
        if let Some(cell) = &self.cell {
            lock(&self.shared.doing).insert(cell.clone(), title.clone());
        }
        self.append(Event::Step(Step { cell: self.cell.clone(), mesh: self.mesh.clone(), title, detail }));
    }

    /// Records that `subject` has `value` from now on.
    pub fn state(&self, subject: &str, value: Value) {
        let subject = subject.to_owned();
        self.append(Event::State(State { cell: self.cell.clone(), mesh: self.mesh.clone(), subject, value }));
    }

    /// Records a fault that is about to be injected or healed.
    pub fn fault(&self, action: &str, target: &str, detail: Option<Value>) {
        let (action, target) = (action.to_owned(), target.to_owned());
        let (cell, mesh) = (self.cell.clone(), self.mesh.clone());
        self.append(Event::Fault(Fault { cell, mesh, action, target, detail }));
    }

    /// The step that this recorder's cell began last.
    #[must_use]
    pub fn doing(&self) -> String {
        let doing = lock(&self.shared.doing);
        let last = self.cell.as_ref().and_then(|cell| doing.get(cell));
        last.map_or_else(|| "starting".to_owned(), |title| format!("at step `{title}`"))
    }

    /// The first failure to write, if any: from then on the journal has a hole.
    #[must_use]
    pub fn take_failure(&self) -> Option<WriteError> {
        lock(&self.shared.broken).take()
    }

    fn append(&self, event: Event) {
        if let Err(error) = lock(&self.shared.journal).append(event) {
            tracing::error!(%error, "the harness's journal cannot be written");
            lock(&self.shared.broken).get_or_insert(error);
        }
    }
}

/// A panicking cell must not take the journal of the others with it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onewriter_history::History;

    #[test]
    fn a_cells_steps_carry_its_name_and_mesh() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("harness.jsonl");
        let recorder = Recorder::create(&path, &Header::new("r")).unwrap();
        let cell = recorder.of_cell("bootstrap/writer", "m1");

        cell.step("create GarageCluster on east");

        let history = History::read(&path).unwrap();
        let Event::Step(step) = &history.records[0].event else { panic!("expected a step") };
        assert_eq!((step.cell.as_deref(), step.mesh.as_deref()), (Some("bootstrap/writer"), Some("m1")));
        assert_eq!(cell.doing(), "at step `create GarageCluster on east`");
        assert_eq!(recorder.of_cell("other", "m2").doing(), "starting");
    }
}
