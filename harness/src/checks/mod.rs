//! Judging a recorded history.
//!
//! A [`Check`] is a pure function over a history, so the same checks judge a run as it ends and a file of last year's.
//! It is written as a fold: [`Check::begin`] gives a [`Judge`] that sees one event after the other and keeps what it
//! needs, never the history. All checks share one pass ([`Judging`]), whatever the history's size. This module knows
//! nothing of any system under test; the checks themselves live with their system.
//!
//! | file | what it holds |
//! |---|---|
//! | [`judging`] | one pass of all checks over a history; start here |
//! | [`finding`] | what a check finds |
//! | [`found`] | where its findings go, bounded |
//! | [`witness`] | the smallest part of a history that shows a finding |
//! | [`recent`] | the last events of each mesh, from which witnesses are made |
//! | [`open_calls`] | calls that have begun and not ended, bounded |
//! | [`expected`] | findings that a cell must produce |
//! | [`coverage`] | what a history shows was exercised |
//! | [`whole`] | the history is there to its end |

pub mod coverage;
pub mod expected;
pub mod finding;
pub mod found;
pub mod judging;
pub mod open_calls;
pub mod recent;
pub mod whole;
pub mod witness;

pub use coverage::Coverage;
pub use finding::{Finding, Severity};
pub use found::Found;
pub use judging::{Judgement, Judging, judge};
pub use open_calls::OpenCalls;
pub use recent::{Recent, Seen};
pub use witness::Witness;

/// A property that every history of a system must have.
pub trait Check: Send + Sync {
    /// Short name, as in verdicts: `follower-never-writes`.
    fn name(&self) -> &'static str;

    /// The property in a sentence.
    fn claim(&self) -> &'static str;

    /// What the check must have seen to tell. Where it applies and was not seen, the check says unknown.
    fn needs(&self) -> &'static str;

    /// Whether it wants audit entries themselves; the facts that follow from them are states, which every check sees.
    fn reads_audit(&self) -> bool {
        false
    }

    /// Begins to judge a history.
    fn begin(&self) -> Box<dyn Judge>;
}

/// A check at work on one history. Its memory must not grow with the number of events.
pub trait Judge: Send {
    /// Takes the next event.
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found);

    /// The cell of `mesh` is over, and nothing of it will come any more: what is remembered of it can go, once what there
    /// is to say of it is said.
    fn mesh_ends(&mut self, _mesh: &str, _recent: &Recent, _found: &mut Found) {}

    /// The history has ended.
    fn end(&mut self, _recent: &Recent, _found: &mut Found) {}
}
