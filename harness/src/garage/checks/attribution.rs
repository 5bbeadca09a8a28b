//! Every call was made by somebody known.

use onewriter_history::History;

use super::calls::{needs_no_token, requests};
use super::roles::Roles;
use crate::checks::{Check, Finding, Witness};

/// Every call that needs a token was made with one whose owner is known. One that was not leaves open who made it.
#[derive(Debug)]
pub struct EveryCallAttributed;

impl Check for EveryCallAttributed {
    fn name(&self) -> &'static str {
        "every-call-attributed"
    }

    fn claim(&self) -> &'static str {
        "every call was made by somebody known"
    }

    fn judge(&self, history: &History) -> Vec<Finding> {
        let (roles, _) = Roles::of(history);
        let anonymous = requests(history)
            .filter(|(_, call)| call.caller.is_none() && (call.layout_write || !needs_no_token(call)));
        anonymous
            .map(|(record, call)| {
                let message =
                    format!("nobody known made {} {} at node {}", call.method, call.path, call.node);
                let cell = roles.cell(&call.mesh, record.seq);
                Finding::unknown(cell, message, Some(Witness::around(history, record)))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, anonymous, call};
    use super::*;
    use crate::checks::Severity;

    #[test]
    fn an_unattributed_call_leaves_the_verdict_open() {
        let example = Example::new().call(anonymous().get("/v2/GetClusterLayout"));
        let findings = EveryCallAttributed.judge(&example.history());
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unknown);
    }

    #[test]
    fn health_needs_no_token_and_known_callers_are_fine() {
        let example =
            Example::new().call(anonymous().get("/health")).call(call("east").get("/v2/GetClusterStatus"));
        assert_eq!(EveryCallAttributed.judge(&example.history()), []);
    }
}
