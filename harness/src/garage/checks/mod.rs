//! What every history of a Garage federation must satisfy.
//!
//! | check | property |
//! |---|---|
//! | [`follower`] | a site declared Follower makes no layout write |
//! | [`attribution`] | every call was made by somebody known |
//! | [`version`] | layout versions only move forward within one incarnation of a node's layout |
//! | [`control`] | who was to write did, and who was to watch was there: a silent run proves nothing |
//! | [`completeness`] | every call that began has ended |

pub mod attribution;
pub mod calls;
pub mod completeness;
pub mod control;
pub mod follower;
pub mod roles;
pub mod version;

use crate::checks::Check;

/// All of them, in the order in which verdicts list them.
#[must_use]
pub fn all() -> Vec<Box<dyn Check>> {
    vec![
        Box::new(follower::FollowerNeverWrites),
        Box::new(attribution::EveryCallAttributed),
        Box::new(version::VersionsMoveForward),
        Box::new(control::ControlWrote),
        Box::new(completeness::EveryCallEnded),
    ]
}

#[cfg(test)]
pub(crate) mod example;
