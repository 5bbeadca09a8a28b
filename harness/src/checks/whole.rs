//! The history is there to its end.

use std::sync::Arc;

use onewriter_history::{Event, Record};

use super::{Check, Finding, Found, Judge, Recent, Seen};

pub use onewriter_history::event::END;

/// The event with which a history of so many `events` ends, see [`Event::end`].
#[must_use]
pub fn seal(events: u64) -> Event {
    Event::end(events)
}

/// The last event of a history says how many there are. One that was cut short must not pass for a clean one.
#[derive(Debug, Clone, Copy)]
pub struct HistoryIsWhole;

impl Check for HistoryIsWhole {
    fn name(&self) -> &'static str {
        "history-is-whole"
    }

    fn claim(&self) -> &'static str {
        "the history is there to its end"
    }

    fn needs(&self) -> &'static str {
        "the event with which the harness ends every history"
    }

    fn reads_audit(&self) -> bool {
        true
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Whole::default())
    }
}

#[derive(Default)]
struct Whole {
    last: Option<Arc<Record>>,
    events: u64,
}

impl Judge for Whole {
    fn take(&mut self, seen: &Seen<'_>, _found: &mut Found) {
        self.last = Some(seen.record.clone());
        self.events += 1;
    }

    fn end(&mut self, _recent: &Recent, found: &mut Found) {
        let said = self.last.as_ref().and_then(|record| match &record.event {
            Event::State(state) if state.subject == END => state.value.get("events")?.as_u64(),
            _ => None,
        });
        // The end itself is not among the events that it counts.
        match said {
            Some(events) if events + 1 == self.events => {}
            Some(events) => {
                let message =
                    format!("the history says that it has {events} events, it has {}", self.events - 1);
                found.add(Finding::unknown(None, message, None));
            }
            None => {
                let message =
                    format!("the history breaks off after {} events: its end is missing", self.events);
                found.add(Finding::unknown(None, message, None));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use onewriter_history::{Header, Moment, Source, Step};
    use rstest::rstest;

    use super::*;
    use crate::checks::judge;
    use crate::history::{Stream, merge};

    fn findings(events: Vec<Event>) -> usize {
        let timed = events.into_iter().map(|event| (Moment::now(), event));
        let history = merge(Header::new("r"), vec![Stream::of_events(Source::harness(), timed)]);
        judge(&[Box::new(HistoryIsWhole)], &history)[0].findings.len()
    }

    fn step() -> Event {
        Event::Step(Step { cell: None, mesh: None, title: "s".to_owned(), detail: None })
    }

    #[rstest]
    #[case::whole(vec![step(), step(), seal(2)], 0)]
    #[case::cut_before_its_end(vec![step(), step()], 1)]
    #[case::nothing_left(vec![], 1)]
    #[case::something_after_its_end(vec![step(), seal(1), step()], 1)]
    #[case::another_number(vec![step(), seal(5)], 1)]
    fn a_history_must_end_with_its_own_number_of_events(#[case] events: Vec<Event>, #[case] expected: usize) {
        assert_eq!(findings(events), expected);
    }
}
