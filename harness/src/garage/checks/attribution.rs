//! Every call was made by somebody known.

use super::calls::{needs_no_token, request};
use super::roles::Roles;
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};

/// Every call that needs a token was made with one whose owner is known. One that was not leaves open who made it.
#[derive(Debug, Clone, Copy)]
pub struct EveryCallAttributed;

impl Check for EveryCallAttributed {
    fn name(&self) -> &'static str {
        "every-call-attributed"
    }

    fn claim(&self) -> &'static str {
        "every call was made by somebody known"
    }

    fn needs(&self) -> &'static str {
        "calls with the label of their token"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Attribution::default())
    }
}

#[derive(Default)]
struct Attribution {
    roles: Roles,
}

impl Judge for Attribution {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        let Some(call) = request(seen.record) else { return };
        if call.caller.is_some() || (!call.layout_write && needs_no_token(call)) {
            return;
        }
        let message = format!("nobody known made {} {} at node {}", call.method, call.path, call.node);
        found.add(Finding::unknown(self.roles.cell(&call.mesh), message, seen.witness()));
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.roles.forget(mesh);
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, anonymous, call, judged};
    use super::*;
    use crate::checks::Severity;

    #[test]
    fn an_unattributed_call_leaves_the_verdict_open() {
        let example = Example::new().call(anonymous().get("/v2/GetClusterLayout"));
        let findings = judged(&EveryCallAttributed, &example);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unknown);
    }

    #[test]
    fn health_needs_no_token_and_known_callers_are_fine() {
        let example =
            Example::new().call(anonymous().get("/health")).call(call("east").get("/v2/GetClusterStatus"));
        assert_eq!(judged(&EveryCallAttributed, &example), []);
    }
}
