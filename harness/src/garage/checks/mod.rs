//! What every history of a Garage federation must satisfy.
//!
//! | check | property | unknown when |
//! |---|---|---|
//! | [`follower`] | a site declared Follower makes no layout write; after a demotion from the status that confirms it on, and the race window before it is noted with its length | roles were not declared or cannot be read; a demotion with writes after it was never confirmed |
//! | [`one_writer`] | between two role changes at most one site writes the layout | (calls of nobody known are [`attribution`]'s matter) |
//! | [`declared_role`] | every role of a follower's node was staged by the writer and equals its declaration | a node holds a version of which no event tells, or a node's site is unknown |
//! | [`content`] | no two nodes ever hold different contents for one layout version | a layout was applied and no layout event tells what nodes held |
//! | [`version`] | layout versions only move forward within one incarnation of a node's layout | – |
//! | [`staging`] | a staged change vanishes only by an apply or revert of a writer that had seen it | that writer read another node only |
//! | [`toggle`] | no role goes back and forth within one writer's term unless somebody asks | the history does not record who changes objects |
//! | [`retirement`] | at final retirement a pod or finalizer goes only after the node's role is gone | – |
//! | [`drain`] | at final retirement a storage node goes only after every layout version with its role is retired | – |
//! | [`annotation`] | a consumed annotation has no later effect | – |
//! | [`quiescence`] | no layout write and no API churn once nothing changes | nobody called in a quiet time |
//! | [`blocked_metric`] | the counter of blocked layout writes equals the refusals that the operator logged | its log cannot be read, or its metrics were not read after a refusal |
//! | [`role_gauge`] | the gauge of the site role names the role in force | – |
//! | [`unknown_route`] | a Follower sends nothing to a route that the checks do not know | it did |
//! | [`control`] | who was to write did, and who was to watch was there: a silent run proves nothing | they did not |
//! | [`attribution`] | every call was made by somebody known | one was not |
//! | [`completeness`] | every call that began has ended | one has not |
//! | [`accounting`] | every event follows from those before it | one does not |
//!
//! What they share: [`calls`] (what a call is), [`roles`] and [`standing`] (who may write), [`layouts`] (the layout that
//! recorded writes make), [`homes`] (who runs which node), [`leaving`] (who goes for good), [`recorded`] and [`deferred`] (facts that a history has, and
//! that come late), [`mod@slot`] (maps that hardly grow).

pub mod accounting;
pub mod annotation;
pub mod attribution;
pub mod blocked_metric;
pub mod calls;
pub mod completeness;
pub mod content;
pub mod control;
pub mod declared_role;
pub mod deferred;
pub mod drain;
pub mod follower;
pub mod homes;
pub mod layouts;
pub mod leaving;
pub mod one_writer;
pub mod quiescence;
pub mod recorded;
pub mod retirement;
pub mod role_gauge;
pub mod roles;
pub mod slot;
pub mod staging;
pub mod standing;
pub mod toggle;
pub mod unknown_route;
pub mod version;

use crate::checks::Check;

/// What the history of a whole run must satisfy: it is there to its end, and everything in [`all`].
#[must_use]
pub fn of_run() -> Vec<Box<dyn Check>> {
    let mut checks = all();
    checks.push(Box::new(crate::checks::whole::HistoryIsWhole));
    checks
}

/// All of them, in the order in which verdicts list them.
#[must_use]
pub fn all() -> Vec<Box<dyn Check>> {
    vec![
        Box::new(follower::FollowerNeverWrites),
        Box::new(one_writer::OneWriterPerTerm),
        Box::new(declared_role::FollowersRolesDeclared),
        Box::new(content::OneContentPerVersion),
        Box::new(version::VersionsMoveForward),
        Box::new(staging::StagedChangesKept),
        Box::new(toggle::NoRoleToggles),
        Box::new(retirement::RoleGoesFirst),
        Box::new(drain::DrainedBeforeRemoval),
        Box::new(annotation::AnnotationsFireOnce),
        Box::new(quiescence::Quiescence),
        Box::new(blocked_metric::RefusalsCounted),
        Box::new(role_gauge::GaugeIsTheRole),
        Box::new(unknown_route::FollowerRoutesKnown),
        Box::new(control::ControlWrote),
        Box::new(attribution::EveryCallAttributed),
        Box::new(completeness::EveryCallEnded),
        Box::new(accounting::EveryEventAccounted),
    ]
}

#[cfg(test)]
pub(crate) mod example;
#[cfg(test)]
mod splicing;
