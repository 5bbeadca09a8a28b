//! Faults on single calls: which calls a rule is about, and what it does to them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`request`] | what a rule is asked to do, and to which calls |
//! | [`mod@self`] | the rules of a hub, and how they meet calls |

pub mod request;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

pub use request::{CallFacts, CallPattern, Effect, RuleRequest};

/// The rules of a hub.
#[derive(Debug, Default)]
pub struct Rules {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    rules: BTreeMap<u64, Rule>,
}

#[derive(Debug)]
struct Rule {
    request: RuleRequest,
    /// Matching calls so far.
    seen: u64,
    /// Calls that it acted on.
    acted: u64,
    ends: Option<Instant>,
    released: watch::Sender<bool>,
}

impl Rule {
    const fn is_used_up(&self) -> bool {
        self.request.count > 0 && self.acted >= self.request.count
    }
}

/// A rule as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleState {
    id: u64,
    rule: RuleRequest,
    seen: u64,
    acted: u64,
    /// Whether it has acted as often as it may: it does nothing any more, but what it holds waits for its release.
    used_up: bool,
}

/// What a rule does to one call.
#[derive(Debug)]
pub struct Intervention {
    /// The rule.
    pub rule: u64,
    /// What it does.
    pub effect: Effect,
    /// For a hold: true once the call may go on, closed once the rule is gone.
    pub released: watch::Receiver<bool>,
}

impl Intervention {
    /// Waits until a held or delayed call may go on.
    pub async fn wait(&mut self) {
        match self.effect {
            Effect::Delay { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
            // An error means that the rule is gone: the call goes on.
            Effect::Hold { .. } => drop(self.released.wait_for(|released| *released).await),
            Effect::Answer { .. } | Effect::Drop { .. } | Effect::LoseRace => {}
        }
    }
}

impl Rules {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule and gives its number.
    pub fn add(&self, request: RuleRequest) -> u64 {
        let mut inner = self.lock();
        inner.last += 1;
        let id = inner.last;
        let ends = request.expires_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let rule = Rule { request, seen: 0, acted: 0, ends, released: watch::Sender::new(false) };
        inner.rules.insert(id, rule);
        id
    }

    /// Removes a rule; calls that it holds go on. Returns what it was.
    pub fn remove(&self, id: u64) -> Option<RuleRequest> {
        self.lock().rules.remove(&id).map(|rule| rule.request)
    }

    /// Lets the calls go on that a rule holds, and those that it would. Returns whether there was such a rule.
    pub fn release(&self, id: u64) -> bool {
        self.lock().rules.get(&id).is_some_and(|rule| {
            rule.released.send_replace(true);
            true
        })
    }

    /// What the rule is, if there is one.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<RuleRequest> {
        self.lock().rules.get(&id).map(|rule| rule.request.clone())
    }

    /// All rules.
    #[must_use]
    pub fn list(&self) -> Vec<RuleState> {
        let state = |(id, rule): (&u64, &Rule)| RuleState {
            id: *id,
            rule: rule.request.clone(),
            seen: rule.seen,
            acted: rule.acted,
            used_up: rule.is_used_up(),
        };
        self.lock().rules.iter().map(state).collect()
    }

    /// A call begins: what the first rule that acts on it does. It also releases holds that waited for such a call.
    #[must_use]
    pub fn meet(&self, call: CallFacts<'_>) -> Option<Intervention> {
        let mut inner = self.lock();
        let now = Instant::now();
        let mut intervention = None;
        for (id, rule) in &mut inner.rules {
            // Who made the rule removes it, but perhaps only a moment later.
            if rule.ends.is_some_and(|ends| ends <= now) {
                continue;
            }
            if let Effect::Hold { until: Some(until) } = &rule.request.effect
                && until.matches(call)
            {
                rule.released.send_replace(true);
            }
            if !rule.request.pattern.matches(call) {
                continue;
            }
            rule.seen += 1;
            let begun = rule.seen >= rule.request.nth;
            if begun && !rule.is_used_up() && intervention.is_none() {
                rule.acted += 1;
                let released = rule.released.subscribe();
                intervention =
                    Some(Intervention { rule: *id, effect: rule.request.effect.clone(), released });
            }
        }
        intervention
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const CALL: CallFacts<'_> = CallFacts {
        mesh: "mesh",
        caller: Some("east"),
        node: "west/ns/garage-0",
        method: "POST",
        path: "/v2/ApplyClusterLayout",
    };

    fn rule(value: Value) -> RuleRequest {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_rule_acts_on_the_nth_matching_call_and_as_many_as_it_says() {
        let rules = Rules::default();
        rules.add(rule(json!({"match": {}, "nth": 2, "count": 2, "effect": {"kind": "drop"}})));
        let acts: Vec<_> = (0..5).map(|_| rules.meet(CALL).is_some()).collect();
        assert_eq!(acts, [false, true, true, false, false]);
        assert_eq!(rules.list().iter().map(|rule| rule.used_up).collect::<Vec<_>>(), [true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_ends_by_itself() {
        let rules = Rules::default();
        rules.add(rule(json!({"match": {}, "count": 0, "effect": {"kind": "drop"}, "expiresMs": 100})));
        assert!(rules.meet(CALL).is_some());
        tokio::time::advance(Duration::from_millis(101)).await;
        assert!(rules.meet(CALL).is_none());
    }

    #[tokio::test]
    async fn a_held_call_goes_on_when_the_other_call_begins() {
        let rules = Rules::default();
        let until = json!({"path": "/v2/GetClusterHealth"});
        rules.add(rule(json!({"match": {"path": CALL.path}, "effect": {"kind": "hold", "until": until}})));
        let mut held = rules.meet(CALL).unwrap();
        assert!(!*held.released.borrow());
        assert!(rules.meet(CallFacts { path: "/v2/GetClusterHealth", ..CALL }).is_none());
        held.wait().await;
    }

    #[tokio::test]
    async fn a_held_call_goes_on_when_the_rule_is_removed() {
        let rules = Rules::default();
        let id = rules.add(rule(json!({"match": {}, "effect": {"kind": "hold"}})));
        let mut held = rules.meet(CALL).unwrap();
        assert!(rules.remove(id).is_some());
        held.wait().await;
    }
}
