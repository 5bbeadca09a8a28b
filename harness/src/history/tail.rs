//! Following a journal that another process appends to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use onewriter_history::{Header, Record};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use tokio::sync::Notify;

/// No line of a journal is longer, in bytes; one that were would only make opening slower.
const LONGEST_LINE: u64 = 1 << 20;

/// Reads records as they are appended; waits for the kernel's word (inotify), never by polling the file.
#[derive(Debug)]
pub struct JournalTail {
    file: File,
    changed: Arc<Notify>,
    /// Bytes of a line whose end was not written yet.
    partial: Vec<u8>,
    ready: VecDeque<Record>,
    /// Whether the header is still to be read.
    in_header: bool,
    /// Closing it ends the watching thread.
    _watching: OwnedFd,
}

impl JournalTail {
    /// Opens the journal at `path`; its records so far come first.
    pub fn open(path: &Path) -> io::Result<Self> {
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, path, inotify::WatchFlags::MODIFY)?;
        let (closed, watching) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let changed = Arc::new(Notify::new());
        let notify = changed.clone();
        thread::Builder::new()
            .name("journal-tail".to_owned())
            .spawn(move || forward(&watch, &closed, &notify))?;
        Ok(Self {
            file: File::open(path)?,
            changed,
            partial: Vec::new(),
            ready: VecDeque::new(),
            in_header: true,
            _watching: watching,
        })
    }

    /// Opens the journal at `path` for what is appended from now on. However long the journal is, this takes no longer.
    pub fn open_at_end(path: &Path) -> io::Result<Self> {
        let mut tail = Self::open(path)?;
        let end = tail.file.seek(SeekFrom::End(0))?;
        let from = end.saturating_sub(LONGEST_LINE);
        tail.file.seek(SeekFrom::Start(from))?;
        let mut last = Vec::new();
        tail.file.read_to_end(&mut last)?;
        // What follows the last line end is a line that is being written.
        if let Some(line_end) = last.iter().rposition(|byte| *byte == b'\n') {
            tail.file.seek(SeekFrom::Start(from + line_end as u64 + 1))?;
            tail.in_header = false;
        } else {
            tail.file.seek(SeekFrom::Start(0))?;
        }
        Ok(tail)
    }

    /// The next record; waits until there is one. Cancel safe.
    ///
    /// # Errors
    /// When the file cannot be read, or a whole line in it is no record.
    pub async fn next(&mut self) -> io::Result<Record> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(record);
            }
            self.read_more()?;
            if self.ready.is_empty() {
                self.changed.notified().await;
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        self.file.read_to_end(&mut self.partial)?;
        let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let whole: Vec<u8> = self.partial.drain(..=end).collect();
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if self.in_header {
                let _header: Header = serde_json::from_slice(line)?;
                self.in_header = false;
            } else {
                self.ready.push_back(serde_json::from_slice(line)?);
            }
        }
        Ok(())
    }
}

/// Passes the kernel's notices on until the other end of `closed` is gone.
///
/// A thread of its own, because registering a foreign descriptor with the runtime needs `unsafe`.
fn forward(watch: &OwnedFd, closed: &OwnedFd, changed: &Notify) {
    loop {
        let mut waiting = [PollFd::new(watch, PollFlags::IN), PollFd::new(closed, PollFlags::IN)];
        let polled = poll(&mut waiting, None);
        let ended = !waiting[1].revents().is_empty();
        match polled {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) if !ended => {
                drain(watch);
                changed.notify_one();
            }
            _ => return,
        }
    }
}

fn drain(watch: &OwnedFd) {
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut notices = inotify::Reader::new(watch, &mut buffer);
    while notices.next().is_ok() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use onewriter_history::{Event, Journal, Source, Step};

    #[tokio::test]
    async fn records_come_as_they_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut journal = Journal::create(&path, &Header::new("r"), Source::hub()).unwrap();
        let step =
            |title: &str| Event::Step(Step { cell: None, mesh: None, title: title.to_owned(), detail: None });
        journal.append(step("before")).unwrap();
        let mut tail = JournalTail::open(&path).unwrap();
        assert_eq!(tail.next().await.unwrap().event, step("before"));

        let waiting = tokio::spawn(async move { tail.next().await });
        journal.append(step("after")).unwrap();

        assert_eq!(waiting.await.unwrap().unwrap().event, step("after"));
    }

    #[tokio::test]
    async fn opened_at_its_end_a_journal_tells_only_what_comes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut journal = Journal::create(&path, &Header::new("r"), Source::hub()).unwrap();
        let step =
            |title: &str| Event::Step(Step { cell: None, mesh: None, title: title.to_owned(), detail: None });
        journal.append(step("before")).unwrap();

        let mut tail = JournalTail::open_at_end(&path).unwrap();

        journal.append(step("after")).unwrap();
        assert_eq!(tail.next().await.unwrap().event, step("after"));
    }
}
