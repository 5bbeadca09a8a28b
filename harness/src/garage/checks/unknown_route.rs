//! A Follower calls nothing that the checks do not know.

use fake_garage::admin::query::Query;
use fake_garage::admin::route::route;
use onewriter_history::{CallBegin, Event};

use super::calls::{Open, of_site, request};
use super::standing::{Standing, Standings};
use crate::checks::{Check, Finding, Found, Judge, OpenCalls, Recent, Seen};

/// A Follower's request that could change something goes to a known route. One to a route that Garage or the checks do
/// not know might be a layout write of a later version: then nobody can tell.
#[derive(Debug, Clone, Copy)]
pub struct FollowerRoutesKnown;

impl Check for FollowerRoutesKnown {
    fn name(&self) -> &'static str {
        "follower-routes-known"
    }

    fn claim(&self) -> &'static str {
        "a Follower sends nothing to a route that the checks do not know"
    }

    fn needs(&self) -> &'static str {
        "the declared roles, and the paths and answers of calls"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Routes::default())
    }
}

#[derive(Default)]
struct Routes {
    standings: Standings,
    open: OpenCalls<Open>,
}

impl Judge for Routes {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.standings.follow(seen);
        match &seen.record.event {
            Event::CallBegin(call) if self.is_suspicious(call) => {
                if is_known(call) {
                    self.open.begin(call.call, seen.record.clone());
                } else {
                    found.add(self.finding(call, "the checks do not know", seen.witness()));
                }
            }
            Event::CallEnd(end) => {
                let Some(open) = self.open.end(end.call) else { return };
                let refused = end.error.as_deref().is_some_and(|text| text.contains("Unknown API endpoint"));
                if let Some(call) = request(&open).filter(|_| refused) {
                    found.add(self.finding(call, "Garage does not know", seen.witness_of(&open)));
                }
            }
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.standings.forget(mesh);
    }
}

impl Routes {
    fn is_suspicious(&self, call: &CallBegin) -> bool {
        let may_change = !matches!(call.method.as_str(), "GET" | "HEAD" | "OPTIONS");
        let follows = |site| {
            matches!(self.standings.of(&call.mesh, site), Standing::Follows | Standing::Demoting { .. })
        };
        may_change && !call.layout_write && of_site(call).is_some_and(follows)
    }

    fn finding(&self, call: &CallBegin, why: &str, witness: Option<crate::checks::Witness>) -> Finding {
        let message = format!("a Follower sent {} {}, a route that {why}", call.method, call.path);
        Finding::unknown(self.standings.cell(&call.mesh), message, witness)
    }
}

fn is_known(call: &CallBegin) -> bool {
    let Ok(query) = Query::parse(call.query.as_deref()) else { return false };
    match route(&call.method, &call.path, &query, true) {
        Ok(_) => true,
        Err(error) => error.message().contains("no longer supported"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, ExampleCall, call, judged};
    use super::*;
    use crate::checks::Severity;
    use crate::garage::role::Role::{Follower, Writer};
    use rstest::rstest;

    fn findings(call: ExampleCall) -> Vec<Finding> {
        judged(&FollowerRoutesKnown, &Example::new().roles(Writer, Follower).call(call))
    }

    #[rstest]
    #[case::answered_that_it_is_unknown(call("west").post("/v2/FutureLayoutWrite")
        .refused(400, "Bad request: Unknown API endpoint: POST /v2/FutureLayoutWrite"))]
    #[case::answered_as_if_it_was_known(call("west").post("/v2/FutureLayoutWrite"))]
    #[case::known_here_and_not_to_that_garage(call("west").post("/v2/CleanupIncompleteUploads")
        .refused(400, "Bad request: Unknown API endpoint: POST /v2/CleanupIncompleteUploads"))]
    fn a_followers_post_to_an_unknown_route_leaves_the_verdict_open(#[case] call: ExampleCall) {
        let findings = findings(call);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unknown);
    }

    #[rstest]
    #[case::connecting(call("west").post("/v2/ConnectClusterNodes"))]
    #[case::an_older_path(call("west").post("/v1/connect"))]
    #[case::reading(call("west").get("/v2/FutureRead"))]
    #[case::by_the_writer(call("east").post("/v2/FutureLayoutWrite"))]
    fn everything_else_is_fine(#[case] call: ExampleCall) {
        assert_eq!(findings(call), []);
    }
}
