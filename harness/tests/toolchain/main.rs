//! Building what is missing, with a Go that only pretends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; this target has a main of its own"
)]

mod building;
mod failing;
#[path = "../own_main/mod.rs"]
mod own_main;
mod pretence;

use harness::entry::Helpers;
use libtest_mimic::Trial;
use pretence::Pretence;

fn main() {
    own_main::run(&Helpers::new(), &[building::trials, failing::trials]);
}

/// One test, with a Go whose `build` is the shell script `build`; `$out` is the file that it is to make.
fn trial<F>(name: &str, build: &'static str, body: fn(Pretence) -> F) -> Trial
where
    F: Future<Output = ()> + Send + 'static,
{
    own_main::trial(name, move || async move {
        body(Pretence::new("go1.26.0", build)).await;
        Ok(())
    })
}
