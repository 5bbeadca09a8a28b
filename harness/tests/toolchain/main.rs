//! Building what is missing, with a Go that only pretends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; this target has a main of its own"
)]

mod building;
mod failing;
mod pretence;

use harness::entry::{Helpers, intercept};
use libtest_mimic::{Arguments, Failed, Trial};
use pretence::Pretence;

fn main() {
    intercept(&Helpers::new());
    let args = Arguments::from_args();
    let trials = [building::trials(), failing::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&args, trials).exit();
}

/// One test, with a Go whose `build` is the shell script `build`; `$out` is the file that it is to make.
fn trial<F>(name: &str, build: &'static str, body: fn(Pretence) -> F) -> Trial
where
    F: Future<Output = ()> + Send + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Runtime::new().map_err(Failed::from)?;
        runtime.block_on(async move { body(Pretence::new("go1.26.0", build)).await });
        Ok(())
    })
}
