//! `onewriter image`.

use harness::failure::chain;
use harness::kind::{Docker, node_image};
use harness::report::Exit;

use super::args::{ImageArgs, ImageName};
use super::output;

/// Builds an image; its progress goes to stderr, its name to stdout.
pub(super) async fn image(args: &ImageArgs) -> Exit {
    let ImageName::Node = args.name;
    if let Err(error) = Docker::of_process().daemon().await {
        return output::fail(Exit::SetupFailed, &chain(&error));
    }
    let Some(workspace) = node_image::workspace() else {
        return output::fail(
            Exit::SetupFailed,
            "the node image is built from a checkout; this program's is gone",
        );
    };
    let mut command = tokio::process::Command::new(node_image::script(&workspace));
    command.args(args.force.then_some("--force")).kill_on_drop(true);
    match command.status().await {
        Ok(status) if status.success() => Exit::Pass,
        Ok(status) => output::fail(Exit::SetupFailed, &format!("the build ended with {status}")),
        Err(error) => output::fail(Exit::SetupFailed, &format!("the build cannot be started: {error}")),
    }
}
