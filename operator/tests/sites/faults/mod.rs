//! Bad input and faults: the operator says what it waits for, converges once the cause is gone, never writes twice
//! what was written, and never writes as a follower.
//!
//! | module | faults |
//! |---|---|
//! | [`admin_api`] | an admin API that is down, slow, or answers nonsense |
//! | [`lost_answers`] | writes whose answer is lost, refused, or overtaken |
//! | [`secrets`] | tokens that are missing or unusable |
//! | [`declarations`] | nodes that do not exist or are there twice, sites of another mesh, specs of which nothing can be made |
//! | [`layout`] | foreign staged entries, nodes that change their identity |
//! | [`kubernetes`] | conflicts, API servers that restart, missing permissions |

mod admin_api;
mod declarations;
mod kubernetes;
mod layout;
mod lost_answers;
mod secrets;

use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    [
        admin_api::trials(),
        declarations::trials(),
        lost_answers::trials(),
        secrets::trials(),
        layout::trials(),
        kubernetes::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
