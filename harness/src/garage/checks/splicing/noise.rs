//! Events that matter to no check.

use onewriter_history::{Audit, Event, Log, Moment, State, Step};
use proptest::prelude::*;
use serde_json::json;

use super::Events;

/// Events to add, each with the place in per mille of the history.
#[derive(Debug, Clone)]
pub(super) struct Noise(Vec<(usize, Event)>);

impl Noise {
    pub(super) fn add_to(&self, mut events: Events) -> Events {
        for (place, event) in &self.0 {
            let index = place * events.len() / 1000;
            let moment: Moment = events[index].0;
            events.insert(index, (moment, event.clone()));
        }
        events
    }
}

pub(super) fn noise() -> impl Strategy<Value = Noise> {
    proptest::collection::vec((0_usize..1000, event()), 1..12).prop_map(Noise)
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        ".{0,20}".prop_map(|line| {
            Event::Log(Log { site: Some("east".to_owned()), program: "operator".to_owned(), line })
        }),
        Just(Event::Audit(audit())),
        "await [a-z]{1,9}".prop_map(|title| {
            Event::Step(Step {
                cell: Some("other".to_owned()),
                mesh: Some("m2".to_owned()),
                title,
                detail: None,
            })
        }),
        Just(Event::State(State {
            cell: None,
            mesh: Some("m2".to_owned()),
            subject: "condition".to_owned(),
            value: json!({"type": "Ready"}),
        })),
    ]
}

fn audit() -> Audit {
    Audit {
        site: "east".to_owned(),
        audit_id: "a".to_owned(),
        stage: "ResponseComplete".to_owned(),
        user: "admin".to_owned(),
        user_agent: None,
        verb: "create".to_owned(),
        uri: "/api/v1/namespaces/other/configmaps".to_owned(),
        resource: Some("configmaps".to_owned()),
        namespace: Some("other".to_owned()),
        name: None,
        status: Some(201),
    }
}
