//! What test binaries with a `main` of their own share: their children are the same executable again.

use harness::entry::{Helpers, intercept};
use libtest_mimic::{Arguments, Failed, Trial};

/// Runs the helper that the first argument names, if it names one, else the tests that the arguments ask for.
pub(crate) fn run(helpers: &Helpers, tests: &[fn() -> Vec<Trial>]) -> ! {
    intercept(helpers);
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, tests.iter().flat_map(|trials| trials()).collect()).exit()
}

/// One test: an asynchronous body in a runtime of its own.
pub(crate) fn trial<F>(name: &str, body: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = Result<(), Failed>>,
{
    Trial::test(name, move || tokio::runtime::Runtime::new()?.block_on(body()))
}
