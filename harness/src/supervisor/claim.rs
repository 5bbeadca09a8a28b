//! Claiming a folder and addresses for a new pair.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{OpenOptionsExt as _, PermissionsExt as _},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use super::{
    address::PairAddresses,
    folder::{Owner, PairFolder},
    root::{RootError, RootLock, StateRoot},
};
use crate::process::RecordError;

/// `sun_path` of unix(7) holds 108 bytes; a few are left for systems that hold less.
const SOCKET_PATH_LIMIT: usize = 104;

/// Why no pair could be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Every pair of addresses is taken.
    #[error("all address ranges 127.16.0.0/16 to 127.250.0.0/16 are in use; `down` frees those of dead runs")]
    Full,
    /// The socket's path would not fit into a socket address.
    #[error(
        "the path {} is too long for a socket ({SOCKET_PATH_LIMIT} bytes at most); \
         name a shorter state folder with ONEWRITER_STATE_DIR",
        path.display()
    )]
    SocketPath {
        /// The path.
        path: PathBuf,
    },
    /// The loopback addresses could not be tried.
    #[error("cannot find out whether {addresses} is free")]
    Addresses {
        /// Which.
        addresses: PairAddresses,
        /// Why.
        source: io::Error,
    },
    /// A file or folder could not be made.
    #[error("cannot make {}", path.display())]
    Make {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A state file could not be written.
    #[error("cannot describe the new pair")]
    Describe(#[from] RecordError),
    /// The state root cannot be used.
    #[error("cannot use the state folder")]
    Root(#[from] RootError),
}

/// A claimed pair: its folder is made and locked, its addresses are reserved, and its socket takes connections,
/// all before there is a supervisor. The supervisor inherits the three, so that at no moment the pair is nobody's.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) folder: PairFolder,
    pub(super) lock: File,
    pub(super) beacon: UnixListener,
    pub(super) listener: UnixListener,
}

/// Claims the first free pair. A claim that fails leaves no folder.
pub(super) fn claim(
    root: &StateRoot,
    _lock: &RootLock,
    owner: &Owner,
    options: &serde_json::Value,
) -> Result<Claim, ClaimError> {
    check_socket_path(root)?;
    for addresses in PairAddresses::all() {
        let folder = PairFolder::new(root, addresses);
        if fs::symlink_metadata(&folder.path).is_ok() {
            continue;
        }
        let Some(beacon) = reserve(addresses)? else { continue };
        let guard = make_folder(root, &folder)?;
        let (lock, listener) = furnish(&folder, owner, options)?;
        // From here on the folder belongs to the pair, not to this function.
        let _path = guard.keep();
        return Ok(Claim { folder, lock, beacon, listener });
    }
    Err(ClaimError::Full)
}

fn reserve(addresses: PairAddresses) -> Result<Option<UnixListener>, ClaimError> {
    let failed = |source| ClaimError::Addresses { addresses, source };
    match addresses.reserve().map_err(failed)? {
        Some(beacon) if addresses.are_free().map_err(failed)? => Ok(Some(beacon)),
        _ => Ok(None),
    }
}

/// No random part in the name: the folder's name is the claim.
fn make_folder(root: &StateRoot, folder: &PairFolder) -> Result<tempfile::TempDir, ClaimError> {
    tempfile::Builder::new()
        .prefix(&folder.name())
        .rand_bytes(0)
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(root.path())
        .map_err(|source| ClaimError::Make { path: folder.path.clone(), source })
}

fn furnish(
    folder: &PairFolder,
    owner: &Owner,
    options: &serde_json::Value,
) -> Result<(File, UnixListener), ClaimError> {
    folder.write_owner(owner)?;
    folder.write_options(options)?;
    let make = |path: PathBuf, source| ClaimError::Make { path, source };
    let lock = create_private(&folder.lock_file()).map_err(|error| make(folder.lock_file(), error))?;
    lock.lock().map_err(|error| make(folder.lock_file(), error))?;
    let listener = UnixListener::bind(folder.socket()).map_err(|error| make(folder.socket(), error))?;
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.socket(), private).map_err(|error| make(folder.socket(), error))?;
    Ok((lock, listener))
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

fn check_socket_path(root: &StateRoot) -> Result<(), ClaimError> {
    let longest = PairAddresses::all().last().map(|addresses| PairFolder::new(root, addresses).socket());
    match longest {
        Some(path) if path.as_os_str().as_bytes().len() >= SOCKET_PATH_LIMIT => {
            Err(ClaimError::SocketPath { path })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::{process::ProcessIdentity, supervisor::folder};

    fn owner() -> Owner {
        Owner {
            id: "test".into(),
            key: "test".into(),
            purpose: "a test".into(),
            kept: false,
            linger: Duration::ZERO,
            keep_logs: None,
            root_stays: true,
            creator: ProcessIdentity::current().unwrap(),
            created: Timestamp::now(),
            version: "0".into(),
        }
    }

    #[tokio::test]
    async fn two_claims_differ_even_across_state_roots() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut taken = Vec::new();
        let mut kept = Vec::new();
        for folder in [&one, &one, &two] {
            let root = StateRoot::at(folder.path()).unwrap();
            let lock = root.lock_or_create().await.unwrap();
            let claim = claim(&root, &lock, &owner(), &serde_json::Value::Null).unwrap();
            assert!(folder::is_held(&claim.folder.path).unwrap());
            taken.push(claim.folder.addresses.octet());
            kept.push(claim);
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 3);
    }

    #[tokio::test]
    async fn a_root_whose_sockets_would_not_fit_is_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let root = StateRoot::at(folder.path().join("x".repeat(90))).unwrap();
        let lock = root.lock_or_create().await.unwrap();
        let error = claim(&root, &lock, &owner(), &serde_json::Value::Null).unwrap_err();
        assert!(error.to_string().contains("too long for a socket"), "{error}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
