//! What the API server admits and how it converts, on both versions.
//!
//! | module | what it tests |
//! |---|---|
//! | [`schema`] | enum and rules of the definition |
//! | [`webhooks`] | transitions that only the webhook can judge |
//! | [`conversion`] | round trips between the versions |
//! | [`requests`] | requests whose warnings can be read |

mod conversion;
mod requests;
mod schema;
mod webhooks;

use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    [schema::trials(), webhooks::trials(), conversion::trials()].into_iter().flatten().collect()
}
