//! The pair that the suites run on: which operator, which manifests, and how this executable helps itself.

pub mod manifests;
pub mod operator;

use std::sync::Arc;

use harness::entry::{self, Helpers};
use harness::pair::federation::Federation;
use harness::pair::hub;
use harness::supervisor::Pair;

/// Runs the hidden helper that the first argument names, if it names one, and does not return then.
///
/// Must come first in every `main` of this package: supervisors, hubs and launchers are the same executable again.
pub fn intercept() {
    entry::intercept(&Helpers::new().supervising(make).with(hub::COMMAND, hub::host));
}

fn make() -> Arc<dyn Pair> {
    Arc::new(Federation {
        manifests: manifests::reference(),
        webhook_manifests: manifests::with_webhooks(),
        workload: manifests::workload(),
        webhook_workload: manifests::workload_with_webhooks(),
        resolve_operator: operator::resolve,
        resolve_garage: operator::resolve_garage,
    })
}
