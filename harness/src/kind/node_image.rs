//! Which image the nodes have.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::docker::Docker;
use super::error::KindError;
use crate::failure::BoxError;
use crate::process::{Launch, Launcher};
use crate::supervisor::ProgressSink;

/// The published image that the pinned kind CLI takes by itself (kind 0.33.0, `pkg/apis/config/defaults`).
pub const PUBLISHED: &str =
    "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5";

/// Name of the image that is built here.
pub const BUILT: &str = "onewriter-node";

/// The script that builds it, below the workspace.
const SCRIPT: &str = "kind-configs/node-image/build.sh";

/// How many lines of a failed build are shown.
const TAIL: usize = 30;

/// What kind of node image: they need different configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Built here from pinned modules and packages.
    Built,
    /// Published by kind.
    Published,
}

/// A node image that the daemon has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeImage {
    /// Its name.
    pub name: String,
    /// What kind it is.
    pub flavour: Flavour,
}

impl NodeImage {
    /// The image called `name`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let flavour = if name.rsplit('/').next().unwrap_or_default().starts_with(BUILT) {
            Flavour::Built
        } else {
            Flavour::Published
        };
        Self { name: name.to_owned(), flavour }
    }

    /// Checks that the daemon has it, for this machine.
    pub async fn check(&self, docker: &Docker) -> Result<(), KindError> {
        if !docker.has_image(&self.name).await? {
            return Err(KindError::NoImage { image: self.name.clone() });
        }
        let found = docker.run(&["image", "inspect", "--format", "{{.Architecture}}", &self.name]).await?;
        let wanted = architecture();
        if found == wanted {
            Ok(())
        } else {
            Err(KindError::Architecture { image: self.name.clone(), found, wanted: wanted.to_owned() })
        }
    }
}

/// This machine's architecture as images have it.
#[must_use]
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The name that the image of `workspace` has: it holds a digest of everything that decides what the image is.
pub async fn tag(workspace: &Path) -> Result<String, KindError> {
    let output =
        tokio::process::Command::new(workspace.join(SCRIPT)).arg("--tag").kill_on_drop(true).output().await;
    let failed = |source: BoxError| KindError::Image { program: workspace.join(SCRIPT), source };
    let output = output.map_err(|error| failed(error.into()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().into()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A node image that is at hand without building anything: the one built from `workspace`, else one that was pulled.
pub async fn at_hand(docker: &Docker, workspace: Option<&Path>) -> Result<Option<NodeImage>, KindError> {
    if let Some(workspace) = workspace {
        let built = NodeImage::named(&tag(workspace).await?);
        if docker.has_image(&built.name).await? {
            return Ok(Some(built));
        }
    }
    Ok(docker.has_image(PUBLISHED).await?.then(|| NodeImage::named(PUBLISHED)))
}

/// Finds a node image: the one that is wanted, else one that is at hand, else the published one if a registry can be
/// reached, else the one that is built from `workspace`.
pub async fn prepare(
    docker: &Docker,
    workspace: Option<&Path>,
    wanted: Option<&str>,
    launcher: &Launcher,
    folder: &Path,
    progress: &ProgressSink,
) -> Result<NodeImage, KindError> {
    let image = match (wanted, at_hand(docker, workspace).await?) {
        (Some(name), _) => NodeImage::named(name),
        (None, Some(image)) => image,
        (None, None) => match (pull(docker, progress).await, workspace) {
            (Ok(image), _) => image,
            (Err(_), Some(workspace)) => build(docker, workspace, launcher, folder, progress).await?,
            (Err(error), None) => return Err(error),
        },
    };
    image.check(docker).await?;
    Ok(image)
}

async fn pull(docker: &Docker, progress: &ProgressSink) -> Result<NodeImage, KindError> {
    progress.report("node image", format!("pulling {PUBLISHED}"));
    let pulled = docker.run(&["pull", "--quiet", PUBLISHED]).await;
    if let Err(error) = &pulled {
        progress.report("node image", format!("no registry has it: {error}"));
    }
    pulled.map(|_| NodeImage::named(PUBLISHED))
}

/// Builds the image of `workspace`, as a child that cannot outlive this process.
async fn build(
    docker: &Docker,
    workspace: &Path,
    launcher: &Launcher,
    folder: &Path,
    progress: &ProgressSink,
) -> Result<NodeImage, KindError> {
    progress.report("node image", "building it, once: up to 25 minutes on two cores");
    let script = workspace.join(SCRIPT);
    let log = folder.join("node-image.log");
    let failed = |source: BoxError| KindError::Image { program: workspace.join(SCRIPT), source };
    let launch = Launch {
        name: "node-image".to_owned(),
        program: script.clone(),
        args: Vec::new(),
        env: docker.environment().chain(build_environment()).collect(),
        log,
    };
    let child = launcher.launch(launch).await.map_err(|error| failed(error.into()))?;
    let status = child.exited().await;
    if !status.success() {
        return Err(failed(format!("it ended with {status}:\n{}", child.log_tail(TAIL)).into()));
    }
    Ok(NodeImage::named(&tag(workspace).await?))
}

/// Variables that Go and the script read.
fn build_environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        name.starts_with("GO")
            || name.to_ascii_lowercase().ends_with("_proxy")
            || CACHES.contains(&name.as_ref())
    })
}

/// Where caches are.
const CACHES: [&str; 2] = ["ONEWRITER_CACHE_DIR", "XDG_CACHE_HOME"];

/// The script that builds the image of `workspace`.
#[must_use]
pub fn script(workspace: &Path) -> PathBuf {
    workspace.join(SCRIPT)
}

/// The workspace that this program was built in, if it is still there.
#[must_use]
pub fn workspace() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    workspace.join(SCRIPT).is_file().then(|| workspace.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("onewriter-node:v1.36.3-0123456789ab", Flavour::Built)]
    #[case("registry.example/ci/onewriter-node:v1", Flavour::Built)]
    #[case("kindest/node:v1.36.3", Flavour::Published)]
    fn the_name_tells_which_configuration_an_image_needs(#[case] name: &str, #[case] flavour: Flavour) {
        assert_eq!(NodeImage::named(name).flavour, flavour);
    }

    #[tokio::test]
    async fn the_built_image_is_named_after_its_version_and_a_digest() {
        let tag = tag(&workspace().unwrap()).await.unwrap();
        assert!(tag.starts_with("onewriter-node:v1.36.3-"), "{tag}");
    }
}
