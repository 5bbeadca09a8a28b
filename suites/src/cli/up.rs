//! `onewriter up`.

use harness::failure::chain;
use harness::pair::PairDescription;
use harness::report::Exit;
use harness::run::stamp;
use harness::supervisor::StateRoot;

use super::args::{Global, UpArgs};
use super::interrupt::Interrupts;
use super::progress::Display;
use super::{output, provider, start};
use crate::pair;

/// Starts a pair that lives until `down`, and says how to use it.
pub(super) async fn up(global: &Global, mut args: UpArgs) -> Exit {
    if let Err(problem) = provider::resolve(&mut args.pair) {
        return output::fail(Exit::Usage, &problem);
    }
    if let Err(error) = pair::operator::resolve_argument(&mut args.pair.operator_bin) {
        return output::fail(Exit::Usage, &error.to_string());
    }
    let root = match StateRoot::from_env() {
        Ok(root) => root,
        Err(error) => return output::fail(Exit::SetupFailed, &chain(&error)),
    };
    let display = Display::new(global);
    let kept = args.artifacts.artifacts_dir.join(format!("up-{}-{}", stamp(), std::process::id()));
    let interrupts = Interrupts::listen();
    let client = match start::start(&root, &args.pair, "up", true, Some(&kept), &display, &interrupts).await {
        Ok(client) => client,
        Err(start::Ended::Interrupted(exit)) => return exit,
        Err(start::Ended::Failed(error)) => {
            return output::fail(Exit::SetupFailed, &start::in_words(&error, &kept));
        }
    };
    let description: PairDescription = match serde_json::from_value(client.description().clone()) {
        Ok(description) => description,
        Err(error) => return output::fail(Exit::Internal, &chain(&error)),
    };
    if let Err(error) = client.release(true).await {
        return output::fail(Exit::Internal, &chain(&error));
    }
    output::show(global, &description, || in_words(&description))
}

fn in_words(pair: &PairDescription) -> String {
    let mut text = format!("{} runs until `onewriter down`.\n\n", pair.name);
    for (site, description) in pair.sites.iter() {
        text += &format!("  {site}  {}\n", description.api_server);
        text += &format!("        export KUBECONFIG={}\n", output::quoted(&description.kubeconfig));
        text += &format!("        operator metrics {}\n", description.operator.metrics);
    }
    text += &format!("\n  hub   {}\n", pair.hub.control);
    text += &format!("        journal {}\n", pair.hub.journal.display());
    text
}
