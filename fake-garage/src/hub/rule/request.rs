//! What a rule is asked to do, and to which calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
        if let Some(path) = self.paths().find(|path| !path.starts_with('/')) {
            return Err(format!(
                "`path` {path:?} is that of no call: paths begin with a slash, as /v2/{path}"
            ));
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

    /// The paths that it names.
    fn paths(&self) -> impl Iterator<Item = &str> {
        let until = match &self.effect {
            Effect::Hold { until } => until.as_ref(),
            _ => None,
        };
        [Some(&self.pattern), until].into_iter().flatten().filter_map(|pattern| pattern.path.as_deref())
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
}
