//! What the tests start from.
//!
//! | module | what it holds |
//! |---|---|
//! | [`pair`] | what all tests share: two control planes, the hub, the pod agent, the webhook server |
//! | [`trial`] | one test: joins the pair, runs, shows what there is to see when it fails |
//! | [`scene`] | the namespace and the mesh of one test |
//! | [`operator`] | an operator process |
//! | [`manifest`] | what tests apply |
//! | [`objects`] | reading and changing objects of a scene |
//! | [`await_objects`] | waiting for objects |
//! | [`cases`] | situations that many tests begin with |
//! | [`calls`] | recorded calls of the admin API |
//! | [`hub`] | faults and rules |
//! | [`garage`] | another actor at the admin API |
//! | [`relay`] | faults between an operator and its API server |

pub mod await_objects;
pub mod calls;
pub mod cases;
pub mod garage;
pub mod hub;
pub mod manifest;
pub mod objects;
pub mod operator;
pub mod pair;
pub mod relay;
pub mod scene;
pub mod trial;

use std::sync::Arc;

use harness::entry::{self, Helpers};

pub use manifest::Role;
pub use scene::Scene;
pub use trial::Pair;

/// Nothing that a test waits for takes longer than this, also on a busy machine.
pub const LIMIT: std::time::Duration = std::time::Duration::from_mins(2);

/// Runs the hidden helper that the first argument names, if it names one, and does not return then.
pub fn intercept() {
    let helpers = Helpers::new().supervising(|| Arc::new(pair::Stage));
    entry::intercept(&helpers.with(harness::pair::hub::COMMAND, harness::pair::hub::host));
}
