//! A Follower makes zero layout writes.

use onewriter_history::History;

use super::calls::{layout_writes, requests};
use super::roles::Roles;
use crate::checks::{Check, Finding, Witness};

/// No site makes a layout write while it is declared Follower. Attempts count, whatever the answer
/// (design record, "Decision" and D3: zero layout writes).
#[derive(Debug)]
pub struct FollowerNeverWrites;

impl Check for FollowerNeverWrites {
    fn name(&self) -> &'static str {
        "follower-never-writes"
    }

    fn claim(&self) -> &'static str {
        "a site declared Follower makes no layout write"
    }

    fn judge(&self, history: &History) -> Vec<Finding> {
        let (roles, unreadable) = Roles::of(history);
        let unreadable = unreadable.into_iter().map(|seq| {
            Finding::unknown(None, format!("the declaration of roles at #{seq} cannot be read"), None)
        });
        let writes = layout_writes(history).filter_map(|(record, call)| {
            let cell = roles.cell(&call.mesh, record.seq);
            let site = call.caller.as_deref()?;
            let witness = || Some(Witness::around(history, record));
            match roles.at(&call.mesh, site, record.seq) {
                Some(role) if role.may_write() => None,
                Some(role) => {
                    let message = format!(
                        "{site} is declared {role} and wrote the layout: {} {}",
                        call.method, call.path
                    );
                    Some(Finding::violation(cell, message, witness()))
                }
                None if site == "harness" => None,
                None => {
                    let message =
                        format!("{site} wrote the layout of a mesh in which it has no declared role");
                    Some(Finding::unknown(cell, message, witness()))
                }
            }
        });
        unreadable.chain(writes).chain(unknown_posts(history, &roles)).collect()
    }
}

/// A POST to a route that Garage does not know might be a layout write of a later version.
fn unknown_posts(history: &History, roles: &Roles) -> Vec<Finding> {
    let errors = super::completeness::errors_by_call(history);
    let suspicious = requests(history).filter(|(record, call)| {
        let follows = |site| roles.at(&call.mesh, site, record.seq).is_some_and(|role| !role.may_write());
        call.method == "POST"
            && !call.layout_write
            && call.caller.as_deref().is_some_and(follows)
            && errors.get(&call.call).is_some_and(|text| text.contains("Unknown API endpoint"))
    });
    suspicious
        .map(|(record, call)| {
            let message = format!("a Follower sent POST {}, a route that Garage does not know", call.path);
            let cell = roles.cell(&call.mesh, record.seq);
            Finding::unknown(cell, message, Some(Witness::around(history, record)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call};
    use super::*;
    use crate::checks::Severity;
    use crate::garage::role::Role::{Absent, Follower, Writer};
    use rstest::rstest;

    fn judged(example: &Example) -> Vec<Finding> {
        FollowerNeverWrites.judge(&example.history())
    }

    #[rstest]
    #[case::update("/v2/UpdateClusterLayout", 200)]
    #[case::apply("/v2/ApplyClusterLayout", 200)]
    #[case::a_refused_apply_counts_too("/v2/ApplyClusterLayout", 500)]
    #[case::revert("/v2/RevertClusterLayout", 200)]
    #[case::skip("/v2/ClusterLayoutSkipDeadNodes", 400)]
    fn a_followers_write_is_a_violation_with_its_call_as_witness(#[case] path: &str, #[case] status: u16) {
        let example = Example::new()
            .roles(Writer, Follower)
            .step("wait")
            .call(call("west").get("/v2/GetClusterLayout"))
            .call(call("west").write(path).status(status));
        let findings = judged(&example);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Violation);
        let witness = findings[0].witness.as_ref().unwrap();
        assert!(witness.event.text.contains(path), "{}", witness.event.text);
        assert_eq!(witness.before.len(), 1);
        assert_eq!(witness.step.as_ref().unwrap().text, "wait");
        assert!(witness.answer.as_ref().unwrap().text.contains(&status.to_string()));
    }

    #[rstest]
    #[case::writer(Writer)]
    #[case::absent(Absent)]
    fn whoever_is_no_follower_may_write(#[case] role: crate::garage::role::Role) {
        let example =
            Example::new().roles(role, Follower).call(call("east").write("/v2/UpdateClusterLayout"));
        assert_eq!(judged(&example), []);
    }

    #[test]
    fn a_follower_may_connect_nodes() {
        let connect = call("west").post("/v2/ConnectClusterNodes");
        assert_eq!(judged(&Example::new().roles(Writer, Follower).call(connect)), []);
    }

    #[test]
    fn the_role_at_the_time_of_the_call_counts() {
        let write = || call("west").write("/v2/ApplyClusterLayout");
        let promoted = Example::new().roles(Writer, Follower).roles(Follower, Writer).call(write());
        assert_eq!(judged(&promoted), []);
        let demoted =
            Example::new().roles(Follower, Writer).call(write()).roles(Writer, Follower).call(write());
        assert_eq!(judged(&demoted).len(), 1);
    }

    #[test]
    fn a_followers_post_to_an_unknown_route_leaves_the_verdict_open() {
        let post = call("west")
            .post("/v2/FutureLayoutWrite")
            .refused(400, "Bad request: Unknown API endpoint: POST /v2/FutureLayoutWrite");
        let findings = judged(&Example::new().roles(Writer, Follower).call(post));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unknown);
    }

    #[test]
    fn a_write_in_a_mesh_without_declared_roles_leaves_the_verdict_open() {
        let findings = judged(&Example::new().call(call("west").write("/v2/ApplyClusterLayout")));
        assert_eq!(findings[0].severity, Severity::Unknown);
    }
}
