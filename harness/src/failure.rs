//! Why a cell did not reach its end.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::scenario::{Abort, Blame};
use crate::site::Site;

/// A cause of any kind, with its own sources.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why the body of a cell, its set-up or its teardown ended early.
///
/// [`Failure::NotReached`] and [`Failure::Claim`] speak of the system under test: the scenario failed.
/// [`Failure::Harness`] and [`Failure::Panicked`] speak of the harness: it could not tell.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// What was awaited did not come in time.
    #[error(transparent)]
    NotReached(Box<NotReached>),
    /// Something that the scenario claims is not so.
    #[error("{site}: {claim}: {seen}")]
    Claim {
        /// Where.
        site: Site,
        /// What should be so.
        claim: String,
        /// What is so instead.
        seen: String,
    },
    /// The harness could not do its own part.
    #[error("{site}: could not {step}")]
    Harness {
        /// Where.
        site: Site,
        /// What it was about to do: an infinitive phrase.
        step: String,
        /// Why not.
        source: BoxError,
    },
    /// The cell as a whole took longer than it may.
    #[error("the cell did not end within {}; it was {doing}", humantime::format_duration(*.limit))]
    TimedOut {
        /// How long it may take.
        limit: Duration,
        /// The last step that was begun.
        doing: String,
    },
    /// The run ended early.
    #[error("{}", .0.reason)]
    Aborted(Abort),
    /// The scenario's own code panicked.
    #[error("the scenario panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
}

impl Failure {
    /// A failure of the harness itself while it tried to `step` (an infinitive phrase) at `site`.
    pub fn harness(site: Site, step: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Harness { site, step: step.into(), source: source.into() }
    }

    /// Whether the harness, not the system under test, is what fell short.
    #[must_use]
    pub fn is_inconclusive(&self) -> bool {
        match self {
            Self::Harness { .. } | Self::Panicked { .. } => true,
            Self::Aborted(abort) => abort.blame != Blame::System,
            Self::NotReached(_) | Self::Claim { .. } | Self::TimedOut { .. } => false,
        }
    }

    /// The message with every source behind it, separated by colons.
    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }

    /// What was expected and what was observed instead.
    #[must_use]
    pub fn account(&self) -> Account {
        match self {
            Self::NotReached(missed) => missed.account(),
            Self::Claim { site, claim, seen } => Account::new(
                AccountKind::Claim,
                format!("{site}: {claim}"),
                [Observation::new("observed", seen)],
            ),
            Self::Harness { site, step, source } => {
                let error = Observation::new("error", chain(source.as_ref()));
                Account::new(AccountKind::Harness, format!("{site}: the harness can {step}"), [error])
            }
            Self::TimedOut { limit, doing } => {
                let limit = humantime::format_duration(*limit);
                Account::new(
                    AccountKind::CellDeadline,
                    format!("the cell ends within {limit}"),
                    [Observation::new("observed", doing)],
                )
            }
            Self::Aborted(abort) => {
                let reason = format!("{}{}", abort.reason, abort.detail);
                Account::new(AccountKind::Aborted, "the run goes on", [Observation::new("observed", reason)])
            }
            Self::Panicked { message } => Account::new(
                AccountKind::Harness,
                "the scenario runs to its end",
                [Observation::new("panic", message)],
            ),
        }
    }
}

/// In which way a cell fell short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AccountKind {
    /// Something claimed is not so.
    #[default]
    Claim,
    /// Something awaited did not come in time.
    Deadline,
    /// The cell as a whole took too long.
    CellDeadline,
    /// The run ended early.
    Aborted,
    /// The harness could not do its part.
    Harness,
}

/// What was expected and what was observed instead, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// In which way.
    #[serde(default)]
    pub kind: AccountKind,
    /// What should have come.
    pub expected: String,
    /// What was there instead, newest first.
    pub observed: Vec<Observation>,
}

impl Account {
    fn new(
        kind: AccountKind,
        expected: impl Into<String>,
        observed: impl IntoIterator<Item = Observation>,
    ) -> Self {
        Self { kind, expected: expected.into(), observed: observed.into_iter().collect() }
    }
}

/// Something that was observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// What kind of thing: `last seen`, `last error`, …
    pub what: String,
    /// It, in words.
    pub text: String,
    /// How old it was when the cell gave up, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

impl Observation {
    fn new(what: &str, text: impl Into<String>) -> Self {
        Self { what: what.to_owned(), text: text.into(), age_ms: None }
    }

    fn aged(what: &str, (text, age): &(String, Duration)) -> Self {
        Self { age_ms: u64::try_from(age.as_millis()).ok(), ..Self::new(what, text) }
    }
}

impl std::fmt::Display for Observation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        match self.age_ms {
            Some(ms) => {
                write!(f, " ({} before the end)", humantime::format_duration(Duration::from_millis(ms)))
            }
            None => Ok(()),
        }
    }
}

/// A wait that ended at its deadline: what was awaited, what was seen last, and how old that is.
#[derive(Debug, thiserror::Error)]
#[error("{site}: no {awaited} within {}{}", humantime::format_duration(*.limit), self.evidence())]
pub struct NotReached {
    /// Where.
    pub site: Site,
    /// What was awaited: a noun phrase.
    pub awaited: String,
    /// How long.
    pub limit: Duration,
    /// The last state seen, in a line, with its age; none if nothing was ever seen.
    pub last_state: Option<(String, Duration)>,
    /// The last error met while watching, with its age.
    pub last_error: Option<(String, Duration)>,
}

impl NotReached {
    fn account(&self) -> Account {
        let limit = humantime::format_duration(self.limit);
        let state = match &self.last_state {
            Some(state) => Observation::aged("last seen", state),
            None => Observation::new("last seen", "nothing"),
        };
        let error = self.last_error.as_ref().map(|error| Observation::aged("last error", error));
        let expected = format!("{}: {} within {limit}", self.site, self.awaited);
        Account::new(AccountKind::Deadline, expected, std::iter::once(state).chain(error))
    }

    fn evidence(&self) -> String {
        let mut text = String::new();
        match &self.last_state {
            Some((state, age)) => push(&mut text, "last seen", state, *age),
            None => text.push_str("\n  last seen: nothing"),
        }
        if let Some((error, age)) = &self.last_error {
            push(&mut text, "last error", error, *age);
        }
        text
    }
}

fn push(text: &mut String, what: &str, value: &str, age: Duration) {
    let age = humantime::format_duration(Duration::from_millis(u64::try_from(age.as_millis()).unwrap_or(0)));
    // Writing to a String cannot fail.
    let _infallible = write!(text, "\n  {what} ({age} ago): {value}");
}

impl From<NotReached> for Failure {
    fn from(not_reached: NotReached) -> Self {
        Self::NotReached(Box::new(not_reached))
    }
}

/// The message of `error` with every source behind it, separated by colons.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_wait_says_what_was_seen_and_how_old_it_is() {
        let missed = NotReached {
            site: Site::West,
            awaited: "GarageCluster ns/garage with condition AwaitingLayoutWriter=True".into(),
            limit: Duration::from_secs(30),
            last_state: Some(("no conditions".into(), Duration::from_millis(1500))),
            last_error: Some(("connection refused".into(), Duration::from_secs(2))),
        };
        assert_eq!(
            missed.to_string(),
            "west: no GarageCluster ns/garage with condition AwaitingLayoutWriter=True within 30s\n  \
             last seen (1s 500ms ago): no conditions\n  last error (2s ago): connection refused"
        );
    }

    #[test]
    fn the_account_of_a_missed_wait_tells_expectation_and_last_states_apart() {
        let missed = NotReached {
            site: Site::West,
            awaited: "Pod garage-0 that is Ready".into(),
            limit: Duration::from_secs(30),
            last_state: Some(("phase Pending".into(), Duration::from_millis(1500))),
            last_error: None,
        };
        let account = Failure::from(missed).account();
        assert_eq!(account.expected, "west: Pod garage-0 that is Ready within 30s");
        assert_eq!(account.observed.len(), 1);
        assert_eq!(account.observed[0].to_string(), "phase Pending (1s 500ms before the end)");
    }

    #[test]
    fn the_chain_names_each_cause_once() {
        let cause = std::io::Error::other("disk on fire");
        let failure = Failure::harness(Site::East, "create the namespace", cause);
        assert_eq!(failure.chain(), "east: could not create the namespace: disk on fire");
    }
}
