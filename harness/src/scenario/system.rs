//! What the engine asks of a system under test.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use onewriter_history::{Audit, State};
use serde_json::Value;

use super::{Cell, Scope};
use crate::checks::Check;
use crate::failure::Failure;

/// A system under test: it lends each cell a stage, and judges the history of all.
pub trait System: Send + Sync + 'static {
    /// What a cell gets beside its scope: for Garage, a mesh of its own.
    type Stage: Send + Sync + Debug;

    /// Sets the stage of `cell`. What it created must be removed by [`System::close`], also after a failure here.
    fn open<'a>(&'a self, scope: &'a Scope, cell: &'a Cell) -> BoxFuture<'a, Result<Self::Stage, Failure>>;

    /// Saves what is to be seen of the cell into [`Scope::evidence`], before it is taken down. What cannot be saved
    /// is told there; it never fails the cell.
    fn save_evidence<'a>(&'a self, scope: &'a Scope, passed: bool) -> BoxFuture<'a, ()>;

    /// Asks for the end of everything that the cell made, and waits until it is gone. Evidence is already saved.
    fn close<'a>(
        &'a self,
        scope: &'a Scope,
        stage: Option<&'a Self::Stage>,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// What every history of this system must satisfy.
    fn checks(&self) -> Vec<Box<dyn Check>>;

    /// What the checks want to know of an entry of an API server's audit log, and of the object that the server
    /// answered with.
    fn facts(&self, _audit: &Audit, _object: &Value) -> Vec<State> {
        Vec::new()
    }

    /// The subjects of [`System::facts`] and of all other states that every run of this system records.
    fn records(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The body of a scenario: from its stimulus to its last claim.
pub type Body<S> =
    for<'a> fn(&'a Scope, &'a <S as System>::Stage, &'a Cell) -> BoxFuture<'a, Result<(), Failure>>;

/// One stimulus, with the cells in which it is applied.
#[derive(Debug)]
pub struct Scenario<S: System> {
    /// Name, as its file is called.
    pub name: &'static str,
    /// The row of the matrix that it belongs to.
    pub row: u8,
    /// The stimulus and what it ends on, in a sentence.
    pub about: &'static str,
    /// The cells.
    pub cells: fn() -> Vec<Cell>,
    /// The body that all of them share.
    pub run: Body<S>,
}

impl<S: System> Clone for Scenario<S> {
    fn clone(&self) -> Self {
        Self { name: self.name, row: self.row, about: self.about, cells: self.cells, run: self.run }
    }
}

/// A cell with the body that runs it.
pub type Planned<S> = (Arc<Scenario<S>>, Cell);

/// Every cell of `scenarios`, in order.
#[must_use]
pub fn plan<S: System>(scenarios: Vec<Scenario<S>>) -> Vec<Planned<S>> {
    let cells = |scenario: Scenario<S>| {
        let scenario = Arc::new(scenario);
        let cells = (scenario.cells)();
        cells.into_iter().map(move |cell| (scenario.clone(), cell))
    };
    scenarios.into_iter().flat_map(cells).collect()
}
