//! Running one cell: open, run, save evidence, close.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use serde_json::json;

use super::{Cell, CellReport, Disturbance, Outcome, Scenario, Scope, System, namespace};
use crate::checks::expected::EXPECTED;
use crate::failure::Failure;
use crate::site::Site;
use crate::wait;

/// The step with which the closing of a cell begins; what comes before it is the cell itself.
pub const CLOSE: &str = "close the cell";
/// Title of the step that tells that a cell went its whole way, every claim reached.
pub const WENT_THROUGH: &str = "the cell went its whole way";
/// Title of the step with which a cell is over.
pub const CELL_CLOSED: &str = "the cell is closed";

/// Runs `cell` of `scenario` in `scope`, from its namespaces to their end.
///
/// The body runs under [`super::Limits::scenario`]; a panic in it is caught. Evidence is saved first, then the stage
/// is closed, whatever happened before. A body that passed and a teardown that did not is not a pass.
pub async fn run_cell<S: System>(
    system: &S,
    scenario: &Scenario<S>,
    cell: &Cell,
    scope: &Scope,
) -> CellReport {
    let started = Instant::now();
    scope.recorder.step("open the cell");
    if !cell.expects.is_empty() {
        scope.recorder.state(EXPECTED, json!(cell.expects));
    }
    let (stage, opened) = open(system, cell, scope).await;
    let body = match (&stage, opened) {
        (Some(stage), Ok(())) => run_body(scenario, cell, scope, stage).await,
        (_, opened) => opened,
    };
    let duration = started.elapsed();
    if body.is_ok() {
        scope.recorder.step(WENT_THROUGH);
    }
    let body = mended(cell, scope, body).await;
    system.save_evidence(scope, body.is_ok()).await;
    let closed = if body.is_err() && scope.keep_failed {
        scope.recorder.step("leave the failed cell as it is");
        Ok(())
    } else {
        scope.recorder.step(CLOSE);
        let closed = close(system, scope, stage.as_ref()).await;
        scope.recorder.step(CELL_CLOSED);
        closed
    };
    let teardown = started.elapsed().saturating_sub(duration);
    let account = body.as_ref().err().or(closed.as_ref().err()).map(Failure::account);
    CellReport { account, ..CellReport::new(cell, outcome(body, closed), duration, teardown) }
}

/// Mends what a cell may have broken beyond its namespaces, so that it can be closed and the next one finds the pair
/// whole.
async fn mended(cell: &Cell, scope: &Scope, body: Result<(), Failure>) -> Result<(), Failure> {
    if !cell.disturbs.is_alone() || scope.abort.current().is_some() {
        return body;
    }
    body.and(scope.disturb(Site::East, Disturbance::ReviveAll).await)
}

async fn open<S: System>(system: &S, cell: &Cell, scope: &Scope) -> (Option<S::Stage>, Result<(), Failure>) {
    if let Err(failure) = namespace::create(scope).await {
        return (None, Err(failure));
    }
    match system.open(scope, cell).await {
        Ok(stage) => (Some(stage), Ok(())),
        Err(failure) => (None, Err(failure)),
    }
}

async fn run_body<S: System>(
    scenario: &Scenario<S>,
    cell: &Cell,
    scope: &Scope,
    stage: &S::Stage,
) -> Result<(), Failure> {
    let limit = scope.limits.scenario;
    let body = wait::recorded(scope.recorder.clone(), (scenario.run)(scope, stage, cell));
    let body = AssertUnwindSafe(body).catch_unwind();
    let ended = tokio::select! {
        ended = tokio::time::timeout(limit, body) => ended,
        abort = scope.abort.aborted() => return Err(Failure::Aborted(abort)),
    };
    match ended {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(Failure::Panicked { message: panic_message(panic.as_ref()) }),
        Err(_elapsed) => Err(Failure::TimedOut { limit, doing: scope.recorder.doing() }),
    }
}

async fn close<S: System>(system: &S, scope: &Scope, stage: Option<&S::Stage>) -> Result<(), Failure> {
    let closing = async {
        system.close(scope, stage).await?;
        if scope.shared { namespace::remove(scope, scope.limits.teardown).await } else { Ok(()) }
    };
    // The waits inside have this limit each; the sum is bounded as well, so that a teardown always ends.
    let limit = scope.limits.teardown.saturating_mul(2).saturating_add(Duration::from_secs(5));
    tokio::select! {
        closed = tokio::time::timeout(limit, closing) => closed.unwrap_or_else(|_elapsed| {
            Err(Failure::TimedOut { limit, doing: scope.recorder.doing() })
        }),
        // Whoever would let go of the objects is gone, or nobody wants to wait for it.
        abort = scope.abort.aborted() => Err(Failure::Aborted(abort)),
    }
}

fn outcome(body: Result<(), Failure>, closed: Result<(), Failure>) -> Outcome {
    match (body, closed) {
        (Ok(()), Ok(())) => Outcome::Passed,
        (Err(failure), _) => Outcome::of_failure(&failure),
        (Ok(()), Err(failure)) => match Outcome::of_failure(&failure) {
            Outcome::Failed(message) => Outcome::Failed(format!("teardown: {message}")),
            Outcome::Unknown(message) => Outcome::Unknown(format!("teardown: {message}")),
            other => other,
        },
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::NotReached;

    fn missed() -> Failure {
        NotReached {
            site: Site::East,
            awaited: "x".into(),
            limit: Duration::from_secs(1),
            last_state: None,
            last_error: None,
        }
        .into()
    }

    #[test]
    fn a_missed_claim_fails_and_a_harness_fault_leaves_the_outcome_open() {
        assert!(matches!(outcome(Err(missed()), Ok(())), Outcome::Failed(_)));
        let fault = Failure::harness(Site::East, "connect", std::io::Error::other("no"));
        assert!(matches!(outcome(Err(fault), Ok(())), Outcome::Unknown(_)));
    }

    #[test]
    fn a_teardown_that_does_not_end_is_not_a_pass() {
        let Outcome::Failed(message) = outcome(Ok(()), Err(missed())) else { panic!("expected a failure") };
        assert!(message.starts_with("teardown: "), "{message}");
    }

    #[test]
    fn the_bodys_failure_is_reported_before_the_teardowns() {
        let Outcome::Failed(message) = outcome(Err(missed()), Err(missed())) else {
            panic!("expected a failure")
        };
        assert!(!message.starts_with("teardown"), "{message}");
    }
}
