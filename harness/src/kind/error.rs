//! What can go wrong with clusters in containers.

use std::io;
use std::path::PathBuf;

use crate::failure::BoxError;
use crate::site::Site;

/// Why there is no pair of kind clusters.
#[derive(Debug, thiserror::Error)]
pub enum KindError {
    /// There is no Docker client.
    #[error("there is no `docker` on PATH; install Docker, or take --provider local, which needs none")]
    NoClient,
    /// No daemon answers.
    #[error(
        "no Docker daemon answers: {said}; start it (`kind-configs/docker.sh start` starts one of its own), \
         or take --provider local"
    )]
    NoDaemon {
        /// The client's words.
        said: String,
    },
    /// The daemon does not let this user in.
    #[error(
        "this user may not use the Docker daemon: {said}; join the group `docker`, or take --provider local"
    )]
    NoPermission {
        /// The client's words.
        said: String,
    },
    /// The daemon is too old.
    #[error(
        "the Docker daemon is version {version}, {needed} or newer is needed; update it, or take --provider local"
    )]
    TooOld {
        /// Its version.
        version: String,
        /// What is needed.
        needed: &'static str,
    },
    /// A Docker command failed.
    #[error("`docker {command}` failed: {said}")]
    Docker {
        /// The command.
        command: String,
        /// The client's words.
        said: String,
    },
    /// A Docker command could not be run.
    #[error("`docker {command}` cannot be run")]
    Run {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The disk is full.
    #[error("the disk is full: `docker {command}` failed: {said}; `docker system df` shows what takes room")]
    DiskFull {
        /// The command.
        command: String,
        /// The client's words.
        said: String,
    },
    /// No network is left, or it overlaps.
    #[error(
        "no network for the pair: {said}; remove networks that are not used (`docker network prune`), \
         or give Docker more address pools"
    )]
    Network {
        /// The client's words.
        said: String,
    },
    /// Something of that name is there and not ours.
    #[error("{what} {name} exists and is not of this pair; it is left alone")]
    Foreign {
        /// What it is.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The image is not there.
    #[error("the node image {image} is not in the Docker daemon; `onewriter image node` builds it")]
    NoImage {
        /// The image.
        image: String,
    },
    /// The image is of another machine.
    #[error("the node image {image} is for {found}, this machine is {wanted}")]
    Architecture {
        /// The image.
        image: String,
        /// Its architecture.
        found: String,
        /// This machine's.
        wanted: String,
    },
    /// The kind CLI cannot be had.
    #[error("there is no kind CLI: {problem}")]
    NoTool {
        /// Why.
        problem: String,
    },
    /// A cluster did not start.
    #[error("the cluster of {site} did not start; the end of {}:\n{tail}", .log.display())]
    Create {
        /// The site.
        site: Site,
        /// The log of the kind CLI.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// An image is not on a node as it was made.
    #[error("{node} has the image {image} as {found}, not as {wanted}")]
    ImageDiffers {
        /// The node.
        node: String,
        /// The image.
        image: String,
        /// Its digest there.
        found: String,
        /// Its digest here.
        wanted: String,
    },
    /// A program cannot be made an image of.
    #[error("cannot make an image of {}", .program.display())]
    Image {
        /// The program.
        program: PathBuf,
        /// Why.
        source: BoxError,
    },
    /// Something of a site's cluster.
    #[error("cannot {what} on {site}")]
    Site {
        /// The site.
        site: Site,
        /// What was tried.
        what: String,
        /// Why.
        source: BoxError,
    },
    /// The hub.
    #[error("the hub did not start")]
    Hub(#[source] BoxError),
    /// A file of the pair.
    #[error("cannot write {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl KindError {
    /// What a failed Docker command means.
    pub(super) fn of_docker(command: &str, said: &str) -> Self {
        let (command, said) = (command.to_owned(), said.trim().to_owned());
        let has = |needle: &str| said.to_ascii_lowercase().contains(needle);
        if has("permission denied") && has("docker.sock") || has("permission denied while trying to connect")
        {
            Self::NoPermission { said }
        } else if has("cannot connect to the docker daemon") || has("is the docker daemon running") {
            Self::NoDaemon { said }
        } else if has("no space left on device") {
            Self::DiskFull { command, said }
        } else if has("non-overlapping")
            || has("pool overlaps")
            || has("address pools have been fully subnetted")
        {
            Self::Network { said }
        } else {
            Self::Docker { command, said }
        }
    }

    /// Something that failed at a site.
    pub(super) fn at(site: Site, what: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Site { site, what: what.into(), source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
        "no Docker daemon"
    )]
    #[case(
        "permission denied while trying to connect to the Docker daemon socket at unix:///x/docker.sock",
        "join the group"
    )]
    #[case("write /x: no space left on device", "the disk is full")]
    #[case(
        "Error response from daemon: could not find an available, non-overlapping IPv4 address pool",
        "docker network prune"
    )]
    #[case("Error: no such image", "`docker run` failed: Error: no such image")]
    fn what_docker_says_becomes_what_to_do(#[case] said: &str, #[case] expected: &str) {
        let error = KindError::of_docker("run", said).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
