//! What a pair has outside of its folder and its processes, on record before it is made, and how that is removed.
//!
//! Containers do not die with the process that started them. The record lies in the pair's folder, so that whoever
//! removes the folder, even long after a `kill -9`, knows what to look for; labels and networks say whether what is found
//! is the pair's.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::docker::Docker;
use super::error::KindError;
use super::names::{CLUSTER_LABEL, Names};
use crate::process::record::{read_json, write_json};
use crate::site::Site;

/// The record's file in a pair's folder.
const FILE: &str = "containers.json";

/// How often containers are looked for.
const ATTEMPTS: u32 = 5;

/// What a pair has in a Docker daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Belongings {
    /// The daemon.
    pub docker: Docker,
    /// The names of everything.
    pub names: Names,
}

/// The record of a pair's containers cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the record of the pair's containers cannot be used")]
pub struct BelongingsError {
    #[from]
    source: crate::process::RecordError,
}

impl Belongings {
    /// Writes the record.
    pub fn write(&self, folder: &Path) -> Result<(), BelongingsError> {
        Ok(write_json(&folder.join(FILE), self)?)
    }

    /// The record in `folder`; none for a pair without containers.
    pub fn read(folder: &Path) -> Result<Option<Self>, BelongingsError> {
        let path = folder.join(FILE);
        if path.exists() { Ok(Some(read_json(&path)?)) } else { Ok(None) }
    }

    /// Removes everything of the pair that is there: containers with their volumes, images, and at last the network, which
    /// is what shows that a node is the pair's.
    pub async fn remove(&self) -> Result<(), KindError> {
        // A client that was killed may have asked for one more container a moment ago.
        for _ in 0..ATTEMPTS {
            let containers = self.containers().await?;
            if containers.is_empty() {
                break;
            }
            let names = containers.iter().map(String::as_str);
            let args: Vec<&str> = ["rm", "--force", "--volumes"].into_iter().chain(names).collect();
            ignore_absent(self.docker.run(&args).await)?;
        }
        let images = self.docker.run(&["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"]).await?;
        let suffix = format!(":{}", self.names.id());
        for image in
            images.lines().filter(|image| image.starts_with(&Names::image("")) && image.ends_with(&suffix))
        {
            ignore_absent(self.docker.run(&["image", "rm", "--force", image]).await)?;
        }
        for network in self.docker.networks(&[&format!("label={}", self.names.label())]).await? {
            ignore_absent(self.docker.run(&["network", "rm", &network]).await)?;
        }
        Ok(())
    }

    /// Containers with the pair's label, and nodes of clusters with the pair's names on a network with the pair's label.
    ///
    /// The kind CLI cannot label nodes, so that a name alone would be all there is: it proves nothing.
    async fn containers(&self) -> Result<BTreeSet<String>, KindError> {
        let label = format!("label={}", self.names.label());
        let mut found: BTreeSet<String> = self.docker.containers(&[&label]).await?.into_iter().collect();
        for network in self.docker.networks(&[&label]).await? {
            for site in Site::ALL {
                let cluster = format!("label={CLUSTER_LABEL}={}", self.names.cluster(site));
                found.extend(self.docker.containers(&[&cluster, &format!("network={network}")]).await?);
            }
        }
        Ok(found)
    }
}

/// Removes what the pair in `folder` has in containers; nothing for one that has none.
pub async fn remove(folder: &Path) -> Result<(), crate::failure::BoxError> {
    if let Some(belongings) = Belongings::read(folder)? {
        belongings.remove().await?;
    }
    Ok(())
}

/// Somebody else may have removed it in the same moment.
fn ignore_absent(removed: Result<String, KindError>) -> Result<(), KindError> {
    match removed {
        Err(KindError::Docker { said, .. })
            if said.to_ascii_lowercase().contains("no such") || said.contains("not found") =>
        {
            Ok(())
        }
        removed => removed.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_comes_back_and_a_folder_without_one_has_no_containers() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Belongings::read(folder.path()).unwrap(), None);
        let belongings = Belongings { docker: Docker::default(), names: Names::new() };
        belongings.write(folder.path()).unwrap();
        assert_eq!(Belongings::read(folder.path()).unwrap(), Some(belongings));
    }

    #[test]
    fn what_is_gone_already_needs_no_removal_and_anything_else_is_told() {
        let failed = |said: &str| Err(KindError::of_docker("rm", said));
        ignore_absent(failed("Error response from daemon: No such container: x")).unwrap();
        ignore_absent(failed("Error: network onewriter-1 not found")).unwrap();
        ignore_absent(failed("device or resource busy")).unwrap_err();
    }
}
