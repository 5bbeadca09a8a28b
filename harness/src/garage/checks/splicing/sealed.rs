//! Splices of what all checks stand on: that the history is there to its end, and that a cell produced what it declared.

use std::collections::BTreeSet;

use onewriter_history::{Event, Header, Source, State};
use proptest::prelude::*;
use serde_json::json;

use super::super::of_run;
use super::edit::insert;
use super::{Events, findings, passing, splices};
use crate::checks::expected::{EXPECTED, ExpectedFinding};
use crate::checks::judge;
use crate::checks::whole::{END, seal};
use crate::history::{Stream, merge};

/// Name of the check for the end.
const WHOLE: &str = "history-is-whole";

/// The history with its end.
fn sealed(mut events: Events) -> Events {
    events.retain(|(_, event)| !matches!(event, Event::State(state) if state.subject == END));
    let moment = events[events.len() - 1].0;
    events.push((moment, seal(events.len() as u64)));
    events
}

/// The checks of a whole run that found something.
fn noticing(events: &Events) -> BTreeSet<String> {
    let history = merge(Header::new("sealed"), vec![Stream::of_events(Source::hub(), events.clone())]);
    let judged = judge(&of_run(), &history);
    judged.into_iter().filter(|judgement| !judgement.holds()).map(|judgement| judgement.check).collect()
}

/// The history in which `cell` declares findings at its beginning.
fn declaring(events: &Events, cell: &str, declared: &BTreeSet<ExpectedFinding>) -> Events {
    let state = State {
        cell: Some(cell.to_owned()),
        mesh: None,
        subject: EXPECTED.to_owned(),
        value: json!(declared),
    };
    sealed(insert(events, 0, vec![Event::State(state)]))
}

/// What a splice makes the checks find, if all of it is of one cell.
fn declarable(events: &Events) -> Option<(String, BTreeSet<ExpectedFinding>)> {
    let found = findings(events);
    let cells: BTreeSet<_> = found.iter().map(|(_, finding)| finding.cell.clone()).collect();
    let cell = cells.first().cloned().flatten().filter(|_| cells.len() == 1)?;
    let declared =
        found.into_iter().map(|(check, finding)| ExpectedFinding { check, severity: finding.severity });
    Some((cell, declared.collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_sealed_history_passes(events in passing()) {
        prop_assert_eq!(noticing(&sealed(events)), BTreeSet::new());
    }

    #[test]
    fn a_history_that_lost_its_end_is_not_whole(events in passing(), pick in any::<usize>()) {
        let mut cut = sealed(events);
        cut.truncate(pick % cut.len());
        prop_assert!(noticing(&cut).contains(WHOLE));
    }

    #[test]
    fn a_history_with_an_event_less_or_more_is_not_whole(
        events in passing(), pick in any::<usize>(), more in any::<bool>()
    ) {
        let mut other = sealed(events);
        let index = pick % (other.len() - 1);
        if more {
            other.insert(index, other[index].clone());
        } else {
            other.remove(index);
        }
        prop_assert!(noticing(&other).contains(WHOLE));
    }

    #[test]
    fn a_history_with_something_after_its_end_is_not_whole(events in passing(), pick in any::<usize>()) {
        let mut other = sealed(events);
        let late = other.remove(pick % (other.len() - 1));
        other.push(late);
        prop_assert!(noticing(&other).contains(WHOLE));
    }

    #[test]
    fn exactly_the_declared_findings_pass(events in passing(), pick in any::<usize>()) {
        for splice in splices::all() {
            let Some(spliced) = splice.apply(&events, pick) else { continue };
            let Some((cell, declared)) = declarable(&spliced) else { continue };
            prop_assert_eq!(noticing(&declaring(&spliced, &cell, &declared)), BTreeSet::new());
            let of_another = declaring(&spliced, "another/cell", &declared);
            prop_assert!(noticing(&of_another).contains(EXPECTED), "`{}`", splice.name);
            let clean = declaring(&events, &cell, &declared);
            prop_assert!(noticing(&clean).contains(EXPECTED), "`{}`", splice.name);
        }
    }

    #[test]
    fn a_finding_beyond_the_declared_ones_counts(events in passing(), pick in any::<usize>()) {
        for splice in splices::all() {
            let Some(spliced) = splice.apply(&events, pick) else { continue };
            let Some((cell, mut declared)) = declarable(&spliced) else { continue };
            let Some(withheld) = declared.pop_first() else { continue };
            let noticing = noticing(&declaring(&spliced, &cell, &declared));
            prop_assert!(noticing.contains(&withheld.check), "`{}`: {noticing:?}", splice.name);
        }
    }
}
