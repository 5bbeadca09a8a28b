//! Progress as a live display.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::{Event, Progress, readable};

/// Shows each step that is under way with a clock of its own, on standard error, and a line for each that ended.
/// Draws nothing where standard error is no terminal; use [`super::Lines`] there.
#[derive(Debug, Default)]
pub struct Bars {
    all: MultiProgress,
    running: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Bars {
    /// A display without steps.
    pub fn new() -> Self {
        Self::default()
    }

    fn begin(&self, what: &str, next: Option<&str>) {
        let bar = self.all.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {msg:.dim}") {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        bar.set_message(next.map(|next| format!("next: {next}")).unwrap_or_default());
        bar.enable_steady_tick(Duration::from_millis(120));
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned(), bar);
    }

    fn end(&self, what: &str, sentence: &str) {
        let bar = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(what);
        self.say(sentence);
        if let Some(bar) = bar {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
    }

    fn say(&self, text: &str) {
        if let Err(error) = self.all.println(text) {
            tracing::debug!(%error, "progress cannot be shown");
        }
    }
}

impl Progress for Bars {
    fn report(&self, event: Event<'_>) {
        match event {
            Event::Begun { what, next } => self.begin(what, next),
            // Each step's clock runs by itself.
            Event::Running { .. } => {}
            Event::Ended { what, elapsed } => self.end(what, &format!("✓ {what} {}", readable(elapsed))),
            Event::Failed { what, elapsed } => self.end(what, &format!("✗ {what} {}", readable(elapsed))),
            Event::Note { text } => self.say(text),
        }
    }
}
