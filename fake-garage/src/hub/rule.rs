//! Faults on single calls: which calls a rule is about, and what it does to them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

/// Body of `POST /rules`: a fault on single calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleRequest {
    /// Which calls it is about.
    #[serde(rename = "match")]
    pub pattern: CallPattern,
    /// From which matching call on it acts, counted from 1.
    #[serde(default = "one")]
    pub nth: u64,
    /// On how many matching calls it acts; 0 for all.
    #[serde(default = "one")]
    pub count: u64,
    /// What it does.
    pub effect: Effect,
    /// When it ends by itself, in milliseconds from now.
    #[serde(default)]
    pub expires_ms: Option<u64>,
}

const fn one() -> u64 {
    1
}

impl RuleRequest {
    /// Says what in it no call can meet or no caller can be answered.
    pub fn check(&self) -> Result<(), String> {
        if self.nth == 0 {
            return Err("`nth` counts from 1".to_owned());
        }
        if self.expires_ms == Some(0) {
            return Err("`expiresMs` is 0: the rule would be over before it acts".to_owned());
        }
        let until = match &self.effect {
            Effect::Hold { until } => until.as_ref(),
            _ => None,
        };
        for path in
            [Some(&self.pattern), until].into_iter().flatten().filter_map(|pattern| pattern.path.as_ref())
        {
            if !path.starts_with('/') {
                return Err(format!(
                    "`path` {path:?} is that of no call: paths begin with a slash, as /v2/{path}"
                ));
            }
        }
        match &self.effect {
            Effect::LoseRace if !self.pattern.path.as_deref().is_some_and(is_apply) => Err(
                "only an apply can lose a race: the effect `lose-race` needs the `path` of one in `match`, \
                 /v2/ApplyClusterLayout"
                    .to_owned(),
            ),
            Effect::Answer { status, .. } if !(200..=599).contains(status) => {
                Err(format!("`status` {status} is none that ends a call: it is from 200 to 599"))
            }
            Effect::Answer { status: status @ (204 | 304), body, .. } if !body.is_null() => {
                Err(format!("an answer with `status` {status} has no `body`"))
            }
            Effect::Delay { ms } if *ms > LONGEST_DELAY_MS => {
                Err(format!("`ms` {ms} is more than a day; use the effect `hold`"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether calls of this path apply a layout.
fn is_apply(path: &str) -> bool {
    ["/v2/ApplyClusterLayout", "/v1/layout/apply", "/v0/layout/apply"].contains(&path)
}

/// A day.
const LONGEST_DELAY_MS: u64 = 86_400_000;

/// Which calls: all that are given must be equal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallPattern {
    /// The mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    /// Who calls: a site, or `harness`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The called node, `site/namespace/pod`, or only its site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What a rule does to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Answers something else. With `perform` the call has its effect all the same: its answer was lost.
    Answer {
        /// HTTP status.
        status: u16,
        /// JSON body.
        #[serde(default)]
        body: Value,
        /// Whether the call is performed.
        #[serde(default)]
        perform: bool,
    },
    /// Performs the call later.
    Delay {
        /// How much later, in milliseconds.
        ms: u64,
    },
    /// Closes the connection without an answer.
    Drop {
        /// Whether the call is performed.
        #[serde(default)]
        perform: bool,
    },
    /// Performs the call once the rule is released or removed, or once another call begins.
    Hold {
        /// The other call.
        #[serde(default)]
        until: Option<CallPattern>,
    },
    /// For an apply: it is answered 200, and another version of its number came first.
    LoseRace,
}

/// A call, as far as rules look at it.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The mesh.
    pub mesh: &'a str,
    /// Who calls.
    pub caller: Option<&'a str>,
    /// The called node.
    pub node: &'a str,
    /// HTTP method.
    pub method: &'a str,
    /// Path without the query.
    pub path: &'a str,
}

impl CallPattern {
    /// Whether a call is meant.
    #[must_use]
    pub fn matches(&self, call: CallFacts<'_>) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let node = self.node.as_deref().is_none_or(|wanted| {
            call.node.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        node && is(&self.mesh, Some(call.mesh))
            && is(&self.caller, call.caller)
            && is(&self.method, Some(call.method))
            && is(&self.path, Some(call.path))
    }
}

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
    use rstest::rstest;
    use serde_json::json;

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

    #[rstest]
    #[case::nth(json!({"match": {}, "nth": 0, "effect": {"kind": "drop"}}), "`nth`")]
    #[case::expired(json!({"match": {}, "expiresMs": 0, "effect": {"kind": "drop"}}), "`expiresMs`")]
    #[case::no_status(json!({"match": {}, "effect": {"kind": "answer", "status": 99}}), "`status` 99")]
    #[case::informational(json!({"match": {}, "effect": {"kind": "answer", "status": 101}}), "`status` 101")]
    #[case::too_large(json!({"match": {}, "effect": {"kind": "answer", "status": 1000}}), "`status` 1000")]
    #[case::body(json!({"match": {}, "effect": {"kind": "answer", "status": 204, "body": {}}}), "no `body`")]
    #[case::for_ever(json!({"match": {}, "effect": {"kind": "delay", "ms": u64::MAX}}), "`hold`")]
    #[case::no_path(json!({"match": {"path": "GetClusterLayout"}, "effect": {"kind": "drop"}}), "begin with a slash")]
    #[case::until(json!({"match": {}, "effect": {"kind": "hold", "until": {"path": "x"}}}), "\"x\"")]
    #[case::no_apply(json!({"match": {"path": "/v2/GetClusterStatus"}, "effect": {"kind": "lose-race"}}), "`lose-race`")]
    #[case::any_call(json!({"match": {}, "effect": {"kind": "lose-race"}}), "`lose-race`")]
    fn a_rule_that_cannot_be_kept_is_refused(#[case] request: Value, #[case] word: &str) {
        let error = rule(request).check().unwrap_err();
        assert!(error.contains(word), "{error}");
    }

    #[rstest]
    #[case(json!({"match": {}, "effect": {"kind": "answer", "status": 503, "body": {"code": "x"}}}))]
    #[case(json!({"match": {"path": "/v2/ApplyClusterLayout"}, "effect": {"kind": "lose-race"}}))]
    fn a_rule_that_can_be_kept_is_not_refused(#[case] request: Value) {
        assert_eq!(rule(request).check(), Ok(()));
    }

    #[test]
    fn a_pattern_means_calls_that_agree_in_everything_given() {
        let matches = |pattern: Value| serde_json::from_value::<CallPattern>(pattern).unwrap().matches(CALL);
        assert!(matches(json!({})));
        assert!(matches(json!({"node": "west", "caller": "east"})));
        assert!(matches(json!({"node": "west/ns/garage-0"})));
        assert!(!matches(json!({"node": "west/ns/garage"})));
        assert!(!matches(json!({"caller": "west"})));
        assert!(!matches(json!({"path": "/v2/UpdateClusterLayout"})));
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
