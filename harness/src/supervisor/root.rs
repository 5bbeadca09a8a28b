//! The folder that all pairs of a user lie in.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use super::locking::lock_within;

/// The variable that names another state root.
pub const STATE_DIR: &str = "ONEWRITER_STATE_DIR";

/// The lock is held for milliseconds; who waits longer waits for a process that hangs.
const LOCK_DEADLINE: Duration = Duration::from_secs(30);

/// Where pairs live: a folder that belongs to this user and that nobody else can write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRoot {
    path: PathBuf,
    /// Whether the user named it: such a folder stays, even when it is empty.
    named: bool,
}

/// Why the state root cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// It could not be made or read.
    #[error("cannot {action} the state folder {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not a folder, or not this user's alone.
    #[error(
        "the state folder {} {problem}; remove it, or name another one with {STATE_DIR}",
        path.display()
    )]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Somebody else holds its lock.
    #[error("another process has held the lock of {} for {LOCK_DEADLINE:?}; is one stopped?", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
}

/// While this lives, nobody else adds pairs to the root or judges half-made ones.
#[derive(Debug)]
pub(super) struct RootLock {
    folder: File,
}

impl StateRoot {
    /// The root of this user: `$ONEWRITER_STATE_DIR`, else `$XDG_RUNTIME_DIR/onewriter`, else
    /// `/tmp/onewriter-UID`.
    pub fn from_env() -> Result<Self, RootError> {
        let uid = rustix::process::geteuid().as_raw();
        let root = Self::choose(env::var_os(STATE_DIR), env::var_os("XDG_RUNTIME_DIR"), uid);
        root.check().map(|_| root)
    }

    /// A root at a given folder, which is made when the first pair is.
    pub fn at(path: impl AsRef<Path>) -> Result<Self, RootError> {
        let path = path.as_ref();
        let absolute = std::path::absolute(path);
        let path = absolute.map_err(|source| RootError::Io { action: "find", path: path.into(), source })?;
        // The user's own links may be followed; those of a folder that everybody can write to may not.
        let root = Self { path: fs::canonicalize(&path).unwrap_or(path), named: true };
        root.check().map(|_| root)
    }

    fn choose(named: Option<OsString>, runtime: Option<OsString>, uid: u32) -> Self {
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let path = PathBuf::from(named);
            let path = std::path::absolute(&path).unwrap_or(path);
            return Self { path: fs::canonicalize(&path).unwrap_or(path), named: true };
        }
        let runtime = runtime.map(PathBuf::from).filter(|runtime| runtime.is_absolute() && runtime.is_dir());
        let path = match runtime {
            Some(runtime) => runtime.join("onewriter"),
            None => PathBuf::from(format!("/tmp/onewriter-{uid}")),
        };
        Self { path, named: false }
    }

    /// The root that a pair's folder lies in.
    pub(super) fn of(folder: &Path, stays: bool) -> Option<Self> {
        folder.parent().map(|path| Self { path: path.into(), named: stays })
    }

    /// Whether the folder stays when it is empty.
    pub(super) fn stays(&self) -> bool {
        self.named
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder is there, and safe to use if it is.
    pub(super) fn check(&self) -> Result<bool, RootError> {
        let found = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found.map_err(|source| self.failed("examine", source))?,
        };
        let uid = rustix::process::geteuid().as_raw();
        let problem = if !found.is_dir() {
            "is not a folder".to_owned()
        } else if found.uid() != uid {
            format!("belongs to user {} while this is user {uid}", found.uid())
        } else if found.mode() & 0o022 != 0 {
            format!("can be written to by others (mode {:03o})", found.mode() & 0o777)
        } else {
            return Ok(true);
        };
        Err(RootError::Unsafe { path: self.path.clone(), problem })
    }

    /// Takes the root's lock, making the folder if need be.
    pub(super) async fn lock_or_create(&self) -> Result<RootLock, RootError> {
        loop {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
            made.map_err(|source| self.failed("make", source))?;
            if let Some(lock) = self.lock().await? {
                return Ok(lock);
            }
        }
    }

    /// Takes the root's lock; `None` if there is no such folder.
    pub(super) async fn lock(&self) -> Result<Option<RootLock>, RootError> {
        while self.check()? {
            let folder = match File::open(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                folder => folder.map_err(|source| self.failed("open", source))?,
            };
            let folder = self.locked(folder).await?;
            if same_file(&folder, &self.path) {
                return Ok(Some(RootLock { folder }));
            }
        }
        Ok(None)
    }

    /// Removes the root if no pair is left in it and the user has not named it.
    pub(super) fn remove_if_empty(&self, lock: &RootLock) {
        if !self.named && same_file(&lock.folder, &self.path) {
            // Not empty is the usual case, and a folder that stays does no harm.
            drop(fs::remove_dir(&self.path));
        }
    }

    async fn locked(&self, folder: File) -> Result<File, RootError> {
        let locked =
            lock_within(folder, LOCK_DEADLINE).await.map_err(|source| self.failed("lock", source))?;
        locked.ok_or_else(|| RootError::Locked { path: self.path.clone() })
    }

    fn failed(&self, action: &'static str, source: io::Error) -> RootError {
        RootError::Io { action, path: self.path.clone(), source }
    }
}

/// Whether an open file is what lies at `path` now.
pub(super) fn same_file(file: &File, path: &Path) -> bool {
    let key = |found: fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => key(open) == key(named),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_named_root_wins_over_the_runtime_folder_and_that_over_tmp() {
        let runtime = tempfile::tempdir().unwrap();
        let choose = |named: Option<&str>, runtime: Option<&Path>| {
            StateRoot::choose(named.map(Into::into), runtime.map(Into::into), 7).path
        };
        assert_eq!(choose(Some("/state"), Some(runtime.path())), Path::new("/state"));
        assert_eq!(choose(Some(""), Some(runtime.path())), runtime.path().join("onewriter"));
        assert_eq!(choose(None, Some(Path::new("/nonexistent"))), Path::new("/tmp/onewriter-7"));
        assert_eq!(choose(None, None), Path::new("/tmp/onewriter-7"));
    }

    #[test]
    fn a_root_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o770)).unwrap();
        let error = StateRoot::at(folder.path()).unwrap_err().to_string();
        assert!(error.contains("can be written to by others (mode 770)"), "{error}");
        assert!(error.contains(STATE_DIR), "{error}");
    }

    #[test]
    fn a_default_root_that_is_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        let error = StateRoot { path: link, named: false }.check().unwrap_err().to_string();
        assert!(error.contains("is not a folder"), "{error}");
    }

    #[tokio::test]
    async fn the_lock_makes_a_private_folder_and_an_empty_default_root_goes_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = StateRoot { path: folder.path().join("root"), named: false };
        assert!(root.lock().await.unwrap().is_none());
        let lock = root.lock_or_create().await.unwrap();
        assert_eq!(fs::metadata(root.path()).unwrap().mode() & 0o777, 0o700);
        root.remove_if_empty(&lock);
        assert!(!root.check().unwrap());
    }

    #[tokio::test]
    async fn a_waiter_for_a_removed_root_does_not_lock_the_removed_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = StateRoot { path: folder.path().join("root"), named: false };
        let first = root.lock_or_create().await.unwrap();
        let waiter = tokio::spawn({
            let root = root.clone();
            async move { root.lock_or_create().await.map(|lock| (same_file(&lock.folder, root.path()), lock)) }
        });
        root.remove_if_empty(&first);
        drop(first);
        assert!(waiter.await.unwrap().unwrap().0);
    }
}
