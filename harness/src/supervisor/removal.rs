//! Removing a pair's folder, so that an interrupted removal is known as one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::folder::PairFolder;
use crate::kind::belongings;

/// Why a folder is still there.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The pair has containers, and they could not be removed.
    #[error("cannot remove the containers of the pair in {}", path.display())]
    Containers {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: crate::failure::BoxError,
    },
    /// It could not be renamed.
    #[error("cannot set {} aside for its removal", path.display())]
    Rename {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in it could not be removed.
    #[error("cannot remove all of {}", path.display())]
    Remove {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Removes a pair's folder. In one step it stops being a pair's, then its contents go.
pub(super) async fn remove(folder: &PairFolder) -> Result<(), RemoveError> {
    let remains = folder.remains();
    let path = folder.path.clone();
    // As long as there are any, the folder stays: nobody else knows of them.
    let containers = belongings::remove(&path).await;
    containers.map_err(|source| RemoveError::Containers { path: path.clone(), source })?;
    match fs::rename(&path, &remains) {
        // Somebody else has removed it: as it should be.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed.map_err(|source| RemoveError::Rename { path, source })?,
    }
    remove_remains(&remains).await
}

/// Removes what is left of a pair.
pub(super) async fn remove_remains(remains: &Path) -> Result<(), RemoveError> {
    let path = remains.to_owned();
    let removed = tokio::task::spawn_blocking(move || remove_tree(&path)).await;
    let removed = removed.unwrap_or_else(|error| Err(io::Error::other(error)));
    removed.map_err(|source| RemoveError::Remove { path: remains.into(), source })
}

/// The standard library opens each folder relative to its parent and follows no symbolic link, so this never
/// leaves the tree, not even if somebody swaps a folder for a link meanwhile.
fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::{PairAddresses, root::StateRoot};

    #[tokio::test]
    async fn what_links_lead_to_survives() {
        let (state, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("precious"), "x").unwrap();
        let root = StateRoot::at(state.path()).unwrap();
        let folder = PairFolder::new(&root, PairAddresses::new(17).unwrap());
        fs::create_dir_all(folder.path.join("a/b")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path.join("a/link")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("precious"), folder.path.join("file")).unwrap();
        remove(&folder).await.unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        assert!(elsewhere.path().join("precious").exists());
    }

    #[tokio::test]
    async fn removing_what_is_gone_is_no_error() {
        let state = tempfile::tempdir().unwrap();
        let root = StateRoot::at(state.path()).unwrap();
        remove(&PairFolder::new(&root, PairAddresses::new(17).unwrap())).await.unwrap();
        remove_remains(&root.path().join("removing-17-0")).await.unwrap();
    }
}
