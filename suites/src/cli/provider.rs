//! Where the sites come from.

use harness::failure::chain;
use harness::kind::{Docker, KindError, node_image};
use harness::pair::federation::Provider;

use super::args::{PairArgs, Provider as Asked};
use super::progress::Display;

/// Checks what was given for clusters only, and makes its paths absolute: the supervisor works in another folder.
///
/// # Errors
/// A word on what does not go together or is not there.
pub(super) fn resolve(args: &mut PairArgs) -> Result<(), String> {
    let for_clusters = args.operator_image.is_some() || args.operator_manifests.is_some();
    if for_clusters && args.provider == Asked::Local {
        return Err("an operator's image and manifests are for clusters: take --provider kind, \
                    or give a program with --operator-bin"
            .to_owned());
    }
    if for_clusters {
        args.provider = Asked::Kind;
    }
    if let Some(manifests) = &mut args.operator_manifests {
        let problem =
            |error: std::io::Error| format!("--operator-manifests {}: {error}", manifests.display());
        *manifests = std::fs::canonicalize(&*manifests).map_err(problem)?;
    }
    if let Some(image) = &mut args.operator_image
        && let Ok(file) = std::fs::canonicalize(&*image)
    {
        *image = file.display().to_string();
    }
    Ok(())
}

/// The provider that was asked for; where the choice was left open, the best one, with a word on why.
pub(super) async fn choose(args: &PairArgs, display: &Display) -> Provider {
    match args.provider {
        Asked::Kind => Provider::Kind,
        Asked::Local => Provider::Local,
        Asked::Auto => {
            let (provider, why) = best(args).await;
            display.say(&format!("provider: {} ({why})", provider.name()));
            provider
        }
    }
}

/// Kind where it can start now. A node image that would have to be built first is no choice to make for somebody.
async fn best(args: &PairArgs) -> (Provider, String) {
    match at_hand(args).await {
        Ok(Some(image)) => {
            (Provider::Kind, format!("Docker answers and has {image}; --provider local needs neither"))
        }
        Ok(None) => (
            Provider::Local,
            "Docker answers, but has no node image; --provider kind builds it, or `onewriter image node`"
                .to_owned(),
        ),
        Err(KindError::NoClient) => (Provider::Local, "there is no Docker".to_owned()),
        Err(KindError::NoDaemon { .. }) => (Provider::Local, "no Docker daemon answers".to_owned()),
        Err(error) => (Provider::Local, chain(&error)),
    }
}

async fn at_hand(args: &PairArgs) -> Result<Option<String>, KindError> {
    let docker = Docker::of_process();
    docker.daemon().await?;
    if let Some(image) = &args.node_image {
        return Ok(docker.has_image(image).await?.then(|| image.clone()));
    }
    let image = node_image::at_hand(&docker, node_image::workspace().as_deref()).await?;
    Ok(image.map(|image| image.name))
}
