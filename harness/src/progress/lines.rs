//! Progress as plain lines.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
};

use super::{Event, Progress, readable};

/// Writes one line for each event: for logs and CI, where nothing can be redrawn.
#[derive(Debug)]
pub struct Lines<W> {
    out: Mutex<W>,
}

impl<W: Write + Send> Lines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out: Mutex::new(out) }
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn report(&self, event: Event<'_>) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = writeln!(out, "{}", line(event)).and_then(|()| out.flush());
        if let Err(error) = written {
            tracing::debug!(%error, "progress cannot be shown");
        }
    }
}

/// An event as a line.
#[must_use]
pub fn line(event: Event<'_>) -> String {
    match event {
        Event::Begun { what, next: Some(next) } => format!("{what} (next: {next})"),
        Event::Begun { what, next: None } => what.to_owned(),
        Event::Running { what, elapsed } => format!("{what}: {} so far", readable(elapsed)),
        Event::Ended { what, elapsed } => format!("{what}: done in {}", readable(elapsed)),
        Event::Failed { what, elapsed } => format!("{what}: failed after {}", readable(elapsed)),
        Event::Note { text } => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_event_is_one_line() {
        let lines = Lines::new(Vec::new());
        let elapsed = Duration::from_secs(90);
        let what = "build kube-apiserver";
        lines.report(Event::Begun { what, next: Some("build kubectl") });
        lines.report(Event::Running { what, elapsed });
        lines.report(Event::Ended { what, elapsed });
        let text = String::from_utf8(lines.out.into_inner().unwrap()).unwrap();
        assert_eq!(
            text,
            "build kube-apiserver (next: build kubectl)\n\
             build kube-apiserver: 1m 30s so far\n\
             build kube-apiserver: done in 1m 30s\n"
        );
    }
}
