//! Who is told how a run goes.

use crate::scenario::CellReport;

/// Is told how a run goes. Every method may be called from several tasks at once.
pub trait Observer: Send + Sync {
    /// A cell begins.
    fn cell_started(&self, cell: &str);
    /// A cell has ended, its teardown included.
    fn cell_ended(&self, report: &CellReport);
    /// Something else that is worth a line.
    fn note(&self, text: &str);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn cell_started(&self, _cell: &str) {}
    fn cell_ended(&self, _report: &CellReport) {}
    fn note(&self, _text: &str) {}
}
