//! How a run goes, on stderr: live on a terminal, in lines elsewhere.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use harness::run::Observer;
use harness::scenario::{CellReport, Outcome};
use harness::supervisor::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::args::Global;
use super::output;

/// Shows how things go.
pub(super) struct Display {
    mode: Mode,
}

enum Mode {
    Silent,
    Lines,
    Live { all: MultiProgress, running: Mutex<BTreeMap<String, ProgressBar>> },
}

impl Display {
    /// The display that fits the flags and what stderr is.
    pub(super) fn new(global: &Global) -> Self {
        let mode = if global.quiet {
            Mode::Silent
        } else if output::is_interactive() {
            Mode::Live { all: MultiProgress::new(), running: Mutex::default() }
        } else {
            Mode::Lines
        };
        Self { mode }
    }

    /// A step of the pair's start.
    pub(super) fn starting(&self, step: &Progress) {
        match &self.mode {
            Mode::Live { .. } => self.spin("pair", &format!("{}: {}", step.part, step.message)),
            _ => self.say(&format!("{}: {}", step.part, step.message)),
        }
    }

    /// The pair is there, or will not be.
    pub(super) fn started(&self, text: &str) {
        self.clear("pair");
        self.say(text);
    }

    /// A line of its own.
    pub(super) fn say(&self, text: &str) {
        match &self.mode {
            Mode::Silent => {}
            // Nobody is left to tell where stderr cannot be written.
            Mode::Lines => drop(writeln!(io::stderr(), "{text}")),
            Mode::Live { all, .. } => drop(all.println(text)),
        }
    }

    /// A line that even the quiet must get: something of theirs is left running.
    pub(super) fn must_say(&self, text: &str) {
        match &self.mode {
            Mode::Live { .. } => self.say(text),
            // Nobody is left to tell where stderr cannot be written.
            Mode::Silent | Mode::Lines => drop(writeln!(io::stderr(), "{text}")),
        }
    }

    fn spin(&self, what: &str, message: &str) {
        let Mode::Live { all, running } = &self.mode else { return };
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = running.entry(what.to_owned()).or_insert_with(|| {
            let bar = all.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg:.dim}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar.with_prefix(what.to_owned())
        });
        bar.set_message(message.to_owned());
    }

    fn clear(&self, what: &str) {
        let Mode::Live { all, running } = &self.mode else { return };
        if let Some(bar) = running.lock().unwrap_or_else(PoisonError::into_inner).remove(what) {
            bar.finish_and_clear();
            all.remove(&bar);
        }
    }
}

impl Observer for Display {
    fn cell_started(&self, cell: &str) {
        match &self.mode {
            Mode::Live { .. } => self.spin(cell, "running"),
            _ => self.say(&format!("{cell}: running")),
        }
    }

    fn cell_ended(&self, report: &CellReport) {
        self.clear(&report.cell);
        let word = match &report.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed(_) => "FAILED",
            Outcome::Unknown(_) => "unknown",
            Outcome::Skipped(_) => "skipped",
        };
        let took = Duration::from_millis(report.duration_ms + report.teardown_ms);
        self.say(&format!("{}: {word} after {}", report.cell, humantime::format_duration(took)));
    }

    fn note(&self, text: &str) {
        self.say(text);
    }
}
