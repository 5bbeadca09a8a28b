//! One order out of several sources.

use std::convert::Infallible;

use onewriter_history::{Event, Header, History, Moment, Record, Source};

/// An event with its number in its source.
type Numbered = (u64, Moment, Event);

/// What one source saw, in its own order, one event at a time. Reading it may fail with `E`.
pub struct Stream<'a, E = Infallible> {
    source: Source,
    events: Box<dyn Iterator<Item = Result<Numbered, E>> + 'a>,
    /// The next event, once it is known.
    head: Option<Numbered>,
}

impl<E> std::fmt::Debug for Stream<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("source", &self.source).finish_non_exhaustive()
    }
}

impl<'a> Stream<'a> {
    /// Events that their source did not number: they are numbered here, from 1.
    pub fn of_events(
        source: Source,
        events: impl IntoIterator<Item = (Moment, Event), IntoIter: 'a>,
    ) -> Self {
        Self::numbering(source, events.into_iter().map(Ok))
    }
}

impl<'a, E> Stream<'a, E> {
    /// Events as they are read from a source that did not number them: they are numbered here, from 1.
    pub fn numbering(source: Source, events: impl Iterator<Item = Result<(Moment, Event), E>> + 'a) -> Self {
        let events = (1..).zip(events).map(|(seq, read)| read.map(|(moment, event)| (seq, moment, event)));
        Self { source, events: Box::new(events), head: None }
    }

    /// The records of a source's own history. Their numbers are kept, so that a gap in them stays visible after the
    /// merge.
    pub fn of_records(source: Source, records: impl Iterator<Item = Result<Record, E>> + 'a) -> Self {
        let events =
            records.map(|read| read.map(|record| (record.source_seq, record.moment(), record.event)));
        Self { source, events: Box::new(events), head: None }
    }

    fn fill(&mut self) -> Result<(), E> {
        if self.head.is_none() {
            self.head = self.events.next().transpose()?;
        }
        Ok(())
    }
}

/// The events of several streams in the order of the machine's monotonic clock, one at a time.
///
/// A source's own order is never changed, even where its clock reads disagree with it; of two sources at the same
/// nanosecond the one named first comes first. Linear in the number of events; it holds one event of each stream. After
/// an error nothing more comes.
#[derive(Debug)]
pub struct Merged<'a, E = Infallible> {
    streams: Vec<Stream<'a, E>>,
    seq: u64,
}

impl<'a, E> Merged<'a, E> {
    /// Merges `streams`.
    #[must_use]
    pub fn new(streams: Vec<Stream<'a, E>>) -> Self {
        Self { streams, seq: 0 }
    }

    fn advance(&mut self) -> Result<Option<Record>, E> {
        for stream in &mut self.streams {
            stream.fill()?;
        }
        let at = |stream: &Stream<'a, E>| stream.head.as_ref().map(|(_, moment, _)| moment.mono_ns);
        let heads = self.streams.iter().enumerate().filter_map(|(index, stream)| Some((at(stream)?, index)));
        let Some((_, next)) = heads.min() else { return Ok(None) };
        let stream = &mut self.streams[next];
        let Some((source_seq, moment, event)) = stream.head.take() else { return Ok(None) };
        self.seq += 1;
        let (source, seq) = (stream.source.clone(), self.seq);
        Ok(Some(Record { seq, at: moment.at, mono_ns: moment.mono_ns, source, source_seq, event }))
    }
}

impl<E> Iterator for Merged<'_, E> {
    type Item = Result<Record, E>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.streams.clear();
        }
        next
    }
}

/// The history of `streams` that are in memory anyway.
#[must_use]
pub fn merge(header: Header, streams: Vec<Stream<'_>>) -> History {
    let records = Merged::new(streams).map(|read| match read {
        Ok(record) => record,
        Err(never) => match never {},
    });
    History { header, records: records.collect() }
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

    #[test]
    fn after_an_error_nothing_more_comes() {
        let events = [Ok(at(1, "a")), Err("torn"), Ok(at(3, "c"))].into_iter();
        let other = std::iter::once(Ok(at(2, "b")));
        let streams =
            vec![Stream::numbering(Source::hub(), events), Stream::numbering(Source::harness(), other)];
        let read: Vec<bool> = Merged::new(streams).map(|read| read.is_ok()).collect();
        assert_eq!(read, [true, false]);
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
