//! Following a journal that another process appends to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use onewriter_history::{Header, Record};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use tokio::sync::Notify;

/// Reads records as they are appended; waits for the kernel's word (inotify), never by polling the file.
#[derive(Debug)]
pub struct JournalTail {
    file: File,
    changed: Arc<Notify>,
    /// Bytes of a line whose end was not written yet.
    partial: Vec<u8>,
    ready: VecDeque<Record>,
    header: Option<Header>,
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
            header: None,
            _watching: watching,
        })
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
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            if self.header.is_none() {
                self.header = Some(serde_json::from_slice(&line)?);
            } else {
                self.ready.push_back(serde_json::from_slice(&line)?);
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
}
