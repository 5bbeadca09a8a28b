//! One order out of several sources.

use std::collections::VecDeque;

use onewriter_history::{Event, Header, History, Moment, Record, Source};

/// What one source saw, in its own order.
#[derive(Debug, Clone)]
pub struct Stream {
    source: Source,
    events: VecDeque<(u64, Moment, Event)>,
}

impl Stream {
    /// Events that their source did not number: they are numbered here, from 1.
    pub fn of_events(source: Source, events: impl IntoIterator<Item = (Moment, Event)>) -> Self {
        let events = (1..).zip(events).map(|(seq, (moment, event))| (seq, moment, event)).collect();
        Self { source, events }
    }

    /// A source's own history. Its numbers are kept, so that a gap in them stays visible after the merge.
    #[must_use]
    pub fn of_history(source: Source, history: History) -> Self {
        let events = history.records.into_iter().map(|r| (r.source_seq, r.moment(), r.event)).collect();
        Self { source, events }
    }

    fn head(&self) -> Option<u64> {
        self.events.front().map(|(_, moment, _)| moment.mono_ns)
    }
}

/// Merges `streams` by the machine's monotonic clock.
///
/// A source's own order is never changed, even where its clock reads disagree with it; of two sources at the same
/// nanosecond the one named first comes first. Linear in the number of events.
#[must_use]
pub fn merge(header: Header, mut streams: Vec<Stream>) -> History {
    let total = streams.iter().map(|stream| stream.events.len()).sum();
    let mut records: Vec<Record> = Vec::with_capacity(total);
    while let Some(next) = earliest(&streams) {
        let stream = &mut streams[next];
        let Some((source_seq, moment, event)) = stream.events.pop_front() else { break };
        records.push(Record {
            seq: records.len() as u64 + 1,
            at: moment.at,
            mono_ns: moment.mono_ns,
            source: stream.source.clone(),
            source_seq,
            event,
        });
    }
    History { header, records }
}

fn earliest(streams: &[Stream]) -> Option<usize> {
    let heads = streams.iter().enumerate().filter_map(|(index, stream)| Some((stream.head()?, index)));
    heads.min().map(|(_, index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onewriter_history::Step;
    use proptest::prelude::*;

    fn at(mono_ns: u64, title: &str) -> (Moment, Event) {
        let step = Step { cell: None, mesh: None, title: title.to_owned(), detail: None };
        (Moment { mono_ns, ..Moment::now() }, Event::Step(step))
    }

    fn titles(history: &History) -> Vec<String> {
        let title = |record: &Record| match &record.event {
            Event::Step(step) => step.title.clone(),
            _ => String::new(),
        };
        history.records.iter().map(title).collect()
    }

    #[test]
    fn events_of_two_sources_are_ordered_by_time() {
        let hub = Stream::of_events(Source::hub(), [at(10, "a"), at(30, "c")]);
        let harness = Stream::of_events(Source::harness(), [at(20, "b")]);
        let history = merge(Header::new("r"), vec![hub, harness]);
        assert_eq!(titles(&history), ["a", "b", "c"]);
    }

    #[test]
    fn a_source_keeps_its_own_order_where_its_clock_jumps_back() {
        let hub = Stream::of_events(Source::hub(), [at(30, "first"), at(10, "second")]);
        let history = merge(Header::new("r"), vec![hub]);
        assert_eq!(titles(&history), ["first", "second"]);
    }

    proptest! {
        #[test]
        fn a_merged_history_is_whole_and_loses_nothing(
            a in proptest::collection::vec(0_u64..100, 0..20),
            b in proptest::collection::vec(0_u64..100, 0..20),
        ) {
            let total = a.len() + b.len();
            let hub = Stream::of_events(Source::hub(), a.into_iter().map(|t| at(t, "a")));
            let harness = Stream::of_events(Source::harness(), b.into_iter().map(|t| at(t, "b")));
            let merged = merge(Header::new("r"), vec![hub, harness]);
            let mut text = serde_json::to_string(&merged.header).unwrap() + "\n";
            for record in &merged.records {
                text += &(serde_json::to_string(record).unwrap() + "\n");
            }
            let read = History::parse(&text).unwrap();
            prop_assert_eq!(read.records.len(), total);
            prop_assert_eq!(read, merged);
        }
    }
}
