//! The decision log of a hub.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The decision log of a hub, which grows. It is a file: there is nothing to wait for but its length.
#[derive(Clone, Debug)]
pub struct Decisions(PathBuf);

impl Decisions {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// All decisions so far.
    pub fn all(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Those that are called `name`.
    pub fn named(&self, name: &str) -> Vec<Value> {
        self.all().into_iter().filter(|entry| entry["decision"] == name).collect()
    }

    /// Waits for a decision that `holds` accepts, and answers it.
    pub async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until_from(0, what, holds).await
    }

    /// Waits for a decision after the first `from` ones that `holds` accepts, and answers it.
    pub async fn until_from(&self, from: usize, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + super::LIMIT;
        loop {
            let all = self.all();
            if let Some(found) = all.iter().skip(from).find(|entry| holds(entry)) {
                return found.clone();
            }
            let last = all.last().map(ToString::to_string).unwrap_or_default();
            assert!(Instant::now() < deadline, "no decision: {what}; the last of {}: {last}", all.len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the hub has been promoted.
    pub async fn until_promoted(&self) -> Value {
        self.until("promoted", |entry| entry["decision"] == "promoted").await
    }

    /// How many decisions there are.
    pub fn count(&self) -> usize {
        self.all().len()
    }

    /// The steps that were taken, as `step outcome`.
    pub fn steps(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.named("step")
            .iter()
            .map(|it| format!("{} {}", text(&it["step"]), text(&it["outcome"])))
            .collect()
    }
}
