//! Telling whoever waits what is being done, how long it has taken so far, and what comes next.
//!
//! The engine reports [`Event`]s to a [`Progress`]; who shows them is the program's choice.

use std::time::Duration;

pub mod lines;

pub use lines::Lines;

/// How often a step that takes long is reported with [`Event::Running`].
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// What happened to the work that somebody waits for.
///
/// Steps are named by short sentences without a subject: `build kube-apiserver`. Several may be under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A step began.
    Begun {
        /// The step.
        what: &'a str,
        /// What comes after it.
        next: Option<&'a str>,
    },
    /// A step is still under way. Sent every [`HEARTBEAT`].
    Running {
        /// The step.
        what: &'a str,
        /// How long it has taken so far.
        elapsed: Duration,
    },
    /// A step came to its end.
    Ended {
        /// The step.
        what: &'a str,
        /// How long it took.
        elapsed: Duration,
    },
    /// A step failed; the error itself is returned to the caller.
    Failed {
        /// The step.
        what: &'a str,
        /// How long it took.
        elapsed: Duration,
    },
    /// Something that is worth saying and is no step.
    Note {
        /// What to say.
        text: &'a str,
    },
}

/// Shows progress, or keeps it to itself.
pub trait Progress: Send + Sync {
    /// Takes note of an event. Must not block.
    fn report(&self, event: Event<'_>);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _: Event<'_>) {}
}

/// Runs `work` as a step: reports its beginning, its heartbeat and its end.
pub async fn step<T, E>(
    progress: &dyn Progress,
    what: &str,
    next: Option<&str>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let begun = tokio::time::Instant::now();
    progress.report(Event::Begun { what, next });
    let mut heartbeat = tokio::time::interval_at(begun + HEARTBEAT, HEARTBEAT);
    tokio::pin!(work);
    let result = loop {
        tokio::select! {
            result = &mut work => break result,
            _ = heartbeat.tick() => progress.report(Event::Running { what, elapsed: begun.elapsed() }),
        }
    };
    let elapsed = begun.elapsed();
    progress.report(match result {
        Ok(_) => Event::Ended { what, elapsed },
        Err(_) => Event::Failed { what, elapsed },
    });
    result
}

/// A duration as people read it: `0.4s`, `12.3s`, `4m 30s`.
fn readable(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds >= 60 {
        return format!("{}m {:02}s", seconds / 60, seconds % 60);
    }
    format!("{:.1}s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(400, "0.4s")]
    #[case(12_340, "12.3s")]
    #[case(270_900, "4m 30s")]
    fn durations_are_readable(#[case] millis: u64, #[case] text: &str) {
        assert_eq!(readable(Duration::from_millis(millis)), text);
    }

    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    impl Progress for Kept {
        fn report(&self, event: Event<'_>) {
            self.0.lock().unwrap().push(format!("{event:?}"));
        }
    }

    #[tokio::test]
    async fn a_step_that_fails_is_reported_as_failed_and_its_error_handed_on() {
        let kept = Kept::default();
        let result = step(&kept, "fall", Some("rise"), async { Err::<(), _>("hurt") }).await;
        assert_eq!(result, Err("hurt"));
        let events = kept.0.into_inner().unwrap();
        assert_eq!(events[0], r#"Begun { what: "fall", next: Some("rise") }"#);
        assert!(events[1].starts_with(r#"Failed { what: "fall""#), "{events:?}");
    }
}
