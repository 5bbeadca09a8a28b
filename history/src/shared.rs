//! Appending to a history from several threads.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::encode;
use crate::writer::{Journal, Lines, WriteError};
use crate::{Entry, Event, Moment};

/// A history that several threads append to.
///
/// Appending is two steps. [`SharedJournal::enqueue`] gives an event its place in the order; [`SharedJournal::flush`]
/// returns once every event up to that place has been handed to the kernel, whoever handed it over. So one write
/// carries what several threads have to say, and whoever tells others of an event flushes it first: then killing the
/// process loses no event that anybody has heard of, and tears at most one line.
#[derive(Debug)]
pub struct SharedJournal {
    path: PathBuf,
    queue: Mutex<Queue>,
    file: Mutex<Writing>,
    /// The last event that has a place.
    last: AtomicU64,
    /// The last event that the kernel has.
    written: AtomicU64,
}

#[derive(Debug)]
struct Queue {
    lines: Lines,
    text: Vec<u8>,
    /// Nothing comes after the end.
    ended: bool,
}

#[derive(Debug)]
struct Writing {
    file: File,
    /// What was written last; its room is used again.
    text: Vec<u8>,
}

/// A queue that grew beyond this many bytes gives its memory back.
const ROOM: usize = 1 << 20;

thread_local! {
    /// The event that this thread puts into words; its room is used again.
    static TAIL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<Journal> for SharedJournal {
    /// Goes on where `journal` is.
    fn from(journal: Journal) -> Self {
        let (path, file, lines) = journal.into_parts();
        Self {
            path,
            last: AtomicU64::new(lines.last()),
            written: AtomicU64::new(lines.last()),
            queue: Mutex::new(Queue { lines, text: Vec::new(), ended: false }),
            file: Mutex::new(Writing { file, text: Vec::new() }),
        }
    }
}

impl SharedJournal {
    /// Gives an event its place in the order, and returns its sequence number. The clock is read when its place is
    /// certain, so that times follow the order.
    ///
    /// All but the place is put into words before others have to wait.
    pub fn enqueue<'a>(
        &self,
        clock: impl FnOnce() -> Moment,
        entry: impl Into<Entry<'a>>,
    ) -> Result<u64, WriteError> {
        TAIL.with_borrow_mut(|tail| {
            tail.clear();
            tail.shrink_to(ROOM);
            encode::tail(tail, &entry.into())?;
            self.add(&mut lock(&self.queue), clock, tail)
        })
    }

    fn add(&self, queue: &mut Queue, clock: impl FnOnce() -> Moment, tail: &[u8]) -> Result<u64, WriteError> {
        let Queue { lines, text, ended } = queue;
        if *ended {
            return Err(WriteError::Ended);
        }
        let last = lines.add(clock(), tail, text);
        self.last.store(last, Ordering::Release);
        Ok(last)
    }

    /// Ends the history with an event that tells how many came before it, so that what is missing at the end can be
    /// told from what never was. Nothing can be appended any more.
    pub fn end(&self, clock: impl FnOnce() -> Moment) -> Result<(), WriteError> {
        let mut queue = lock(&self.queue);
        let mut tail = Vec::new();
        encode::tail(&mut tail, &Entry::Event(Event::end(queue.lines.last())))?;
        self.add(&mut queue, clock, &tail)?;
        queue.ended = true;
        drop(queue);
        self.flush()
    }

    /// Returns once every event that has a place now has been handed to the kernel.
    pub fn flush(&self) -> Result<(), WriteError> {
        let last = self.last.load(Ordering::Acquire);
        let has_last = || self.written.load(Ordering::Acquire) >= last;
        if has_last() {
            return Ok(());
        }
        let mut writing = lock(&self.file);
        // Another thread may have written them meanwhile.
        if has_last() {
            return Ok(());
        }
        self.write(&mut writing)
    }

    /// As [`SharedJournal::flush`] for the event that has the place `seq` and those before it, without waiting for
    /// another thread that writes: false where there is one, and the event may not be written yet.
    pub fn try_flush(&self, seq: u64) -> Result<bool, WriteError> {
        let is_written = || self.written.load(Ordering::Acquire) >= seq;
        if is_written() {
            return Ok(true);
        }
        let mut writing = match self.file.try_lock() {
            Ok(writing) => writing,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(is_written()),
        };
        if !is_written() {
            self.write(&mut writing)?;
        }
        Ok(true)
    }

    /// Hands everything that has a place now to the kernel.
    fn write(&self, writing: &mut Writing) -> Result<(), WriteError> {
        let Writing { file, text } = writing;
        text.clear();
        text.shrink_to(ROOM);
        let last = {
            let mut queue = lock(&self.queue);
            std::mem::swap(&mut queue.text, text);
            queue.lines.last()
        };
        file.write_all(text).map_err(|source| WriteError::Append { path: self.path.clone(), source })?;
        self.written.store(last, Ordering::Release);
        Ok(())
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, History, Log, Source};

    fn event(line: &str) -> Event {
        Event::Log(Log { site: None, program: "test".to_owned(), line: line.to_owned() })
    }

    fn shared(folder: &tempfile::TempDir) -> SharedJournal {
        let path = folder.path().join("journal.jsonl");
        Journal::create(path, &Header::new("run"), Source::hub()).unwrap().into()
    }

    #[test]
    fn what_is_flushed_is_in_the_file_and_what_is_not_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let journal = shared(&folder);
        journal.enqueue(Moment::now, event("first")).unwrap();
        journal.flush().unwrap();
        journal.enqueue(Moment::now, event("second")).unwrap();
        assert_eq!(History::read(journal.path()).unwrap().records.len(), 1);
        journal.flush().unwrap();
        assert_eq!(History::read(journal.path()).unwrap().records.len(), 2);
    }

    #[test]
    fn who_does_not_wait_for_another_writer_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let journal = shared(&folder);
        let seq = journal.enqueue(Moment::now, event("first")).unwrap();
        let writing = lock(&journal.file);
        assert!(!journal.try_flush(seq).unwrap());
        drop(writing);
        assert!(journal.try_flush(seq).unwrap());
        assert_eq!(History::read(journal.path()).unwrap().records.len(), 1);
        let later = journal.enqueue(Moment::now, event("second")).unwrap();
        let _writing = lock(&journal.file);
        assert!(journal.try_flush(seq).unwrap(), "what is written is written");
        assert!(!journal.try_flush(later).unwrap());
    }

    #[test]
    fn nothing_comes_after_the_end_which_tells_how_many_came_before() {
        let folder = tempfile::tempdir().unwrap();
        let journal = shared(&folder);
        journal.enqueue(Moment::now, event("first")).unwrap();
        journal.enqueue(Moment::now, event("second")).unwrap();
        journal.end(Moment::now).unwrap();
        assert!(matches!(journal.enqueue(Moment::now, event("late")), Err(WriteError::Ended)));
        assert!(matches!(journal.end(Moment::now), Err(WriteError::Ended)));
        let records = History::read(journal.path()).unwrap().records;
        assert_eq!(records.len(), 3);
        assert_eq!(records[2].event, Event::end(2));
    }

    #[test]
    fn many_threads_append_in_one_order_and_find_their_own_events_after_a_flush() {
        let folder = tempfile::tempdir().unwrap();
        let journal = shared(&folder);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let journal = &journal;
                scope.spawn(move || {
                    for turn in 0..50 {
                        let seq = journal.enqueue(Moment::now, event(&format!("{thread} {turn}"))).unwrap();
                        journal.flush().unwrap();
                        let text = std::fs::read_to_string(journal.path()).unwrap();
                        assert!(text.contains(&format!("\n{{\"seq\":{seq},")), "{seq} is not in the file");
                    }
                });
            }
        });
        // Reading checks that the numbers have no gap.
        assert_eq!(History::read(journal.path()).unwrap().records.len(), 200);
    }
}
