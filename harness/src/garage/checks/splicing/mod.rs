//! Histories that pass are spliced: events are dropped, added, moved, or said to be somebody else's. No such history may
//! pass; and one with events that matter to nobody must.

mod calls;
mod edit;
mod layouts;
mod made;
mod noise;
mod roles;
mod sealed;
mod splices;
mod watching;

use std::path::Path;

use onewriter_history::{Event, Header, History, Log, Moment, Source, Step};
use proptest::prelude::*;
use rstest::rstest;

use super::all;
use crate::checks::{Finding, judge};
use crate::history::{Stream, merge};

/// The events of a history, with their moments.
type Events = Vec<(Moment, Event)>;

/// Every finding of every check in these events.
fn findings(events: &Events) -> Vec<(String, Finding)> {
    let history = merge(Header::new("spliced"), vec![Stream::of_events(Source::hub(), events.clone())]);
    let judged = judge(&all(), &history);
    let named = |judgement: crate::checks::Judgement| {
        judgement.findings.into_iter().map(move |finding| (judgement.check.clone(), finding))
    };
    judged.into_iter().flat_map(named).collect()
}

fn recorded(name: &str) -> Events {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(format!("{name}.jsonl"));
    let history = History::read(&path).unwrap();
    history.records.into_iter().map(|record| (record.moment(), record.event)).collect()
}

fn passing() -> impl Strategy<Value = Events> {
    prop_oneof![
        3 => made::federation(),
        1 => Just(recorded("federation")),
        1 => Just(recorded("bootstrap_follower")),
    ]
}

#[rstest]
#[case("federation")]
#[case("bootstrap_follower")]
fn a_recorded_run_passes(#[case] name: &str) {
    assert_eq!(findings(&recorded(name)), []);
}

#[test]
fn every_check_has_a_splice_that_it_notices() {
    let noticing: Vec<&str> = splices::all().iter().map(|splice| splice.noticed_by).collect();
    for check in all() {
        assert!(noticing.contains(&check.name()), "no splice is for `{}`", check.name());
    }
}

#[test]
fn every_splice_fits_the_made_history() {
    let events = made::history(&made::Plan::default());
    for splice in splices::all() {
        assert!(splice.apply(&events, 0).is_some(), "`{}` finds nothing to splice", splice.name);
    }
}

/// The history with its cell closed, and so much after it that the cell's mesh is forgotten.
fn long_over(mut events: Events) -> Events {
    let moment = events[events.len() - 1].0;
    let (cell, mesh) = (Some("cell".to_owned()), Some("m1".to_owned()));
    let title = crate::scenario::runner::CELL_CLOSED.to_owned();
    events.push((moment, Event::Step(Step { cell, mesh, title, detail: None })));
    let line = Event::Log(Log { site: None, program: "operator".to_owned(), line: String::new() });
    events.extend(std::iter::repeat_n((moment, line), 20_002));
    events
}

#[test]
fn what_a_cell_lacked_is_told_though_its_mesh_is_forgotten() {
    let events = made::history(&made::Plan::default());
    assert_eq!(findings(&long_over(events.clone())), []);
    for splice in splices::all() {
        let found = splice.apply(&events, 0).map(|spliced| findings(&long_over(spliced))).unwrap_or_default();
        assert!(found.iter().any(|(check, _)| check == splice.noticed_by), "`{}` was forgotten", splice.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_made_history_passes(events in made::federation()) {
        prop_assert_eq!(findings(&events), []);
    }

    #[test]
    fn a_history_with_noise_passes(events in passing(), noise in noise::noise()) {
        prop_assert_eq!(findings(&noise.add_to(events)), []);
    }

    #[test]
    fn no_spliced_history_passes_the_check_that_is_to_notice(events in passing(), pick in any::<usize>()) {
        for splice in splices::all() {
            let Some(spliced) = splice.apply(&events, pick) else { continue };
            let found = findings(&spliced);
            prop_assert!(
                found.iter().any(|(check, _)| check == splice.noticed_by),
                "`{}` was not noticed by `{}`; found: {:?}", splice.name, splice.noticed_by, found
            );
        }
    }

    #[test]
    fn noise_hides_no_splice(events in passing(), noise in noise::noise(), pick in any::<usize>()) {
        for splice in splices::all() {
            let Some(spliced) = splice.apply(&events, pick) else { continue };
            prop_assert!(!findings(&noise.add_to(spliced)).is_empty(), "noise hides `{}`", splice.name);
        }
    }
}
