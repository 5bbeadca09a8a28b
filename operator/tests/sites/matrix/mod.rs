//! Every row of the behaviour matrix (design record, "Behavior matrix"), for each role.
//!
//! | module | rows |
//! |---|---|
//! | [`running`] | connect, workloads, rollouts |
//! | [`assigning`] | first layout, new nodes, federation import, declared nodes |
//! | [`removing`] | scale-down, drain, deletion of nodes and clusters, orphans |
//! | [`gateways`] | stale gateway roles, `autoApply`, gateways of another owner |
//! | [`annotations`] | `revert-layout`, `skip-dead-nodes`, `purge-cluster-layout` |
//! | [`migrating`] | replication factor, second writer |
//! | [`replication`] | zone redundancy |
//! | [`credentials`] | the dynamic admin token |
//! | [`handover`] | one writer, then the other, and nobody tells of a foreign one |
//! | [`transitions`] | promotion, demotion |

mod annotations;
mod assigning;
mod credentials;
mod gateways;
mod handover;
mod migrating;
mod removing;
mod replication;
mod running;
mod transitions;

use libtest_mimic::Trial;

use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    [
        running::trials(),
        assigning::trials(),
        credentials::trials(),
        removing::trials(),
        gateways::trials(),
        annotations::trials(),
        replication::trials(),
        migrating::trials(),
        handover::trials(),
        transitions::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One row of the matrix as a test for each of `roles`.
fn row<F>(name: &str, roles: &[Role], body: fn(Scene, Role) -> F) -> Vec<Trial>
where
    F: Future<Output = ()> + 'static,
{
    let case = |role: &Role| {
        let role = *role;
        trial(format!("matrix/{name}/{}", role.name()), move |scene| body(scene, role))
    };
    roles.iter().map(case).collect()
}
