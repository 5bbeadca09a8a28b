//! The folder of built programs, and the lock under which it is filled.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    thread,
};

use tempfile::TempDir;
use tokio::sync::oneshot;

use super::{error::ToolchainError, pins, program::Program};
use crate::progress::{self, Progress};

/// Beginning of the names of work folders. One that nobody holds the lock for is left from a run that was killed.
const WORK: &str = ".work-";

/// The exclusive right to fill a cache. The kernel takes it back when its holder ends, however that happens.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The folder for the present pins below the folder of all caches.
pub fn folder_in(caches: &Path) -> PathBuf {
    caches.join("onewriter").join("control-plane").join(pins::digest())
}

/// Waits for the lock of the cache `folder` (made if it is not there), and says for whom it waits.
pub async fn lock(folder: &Path, progress: &dyn Progress) -> Result<Lock, ToolchainError> {
    fs::create_dir_all(folder).map_err(ToolchainError::cache("make the cache folder", folder))?;
    let path = folder.join("lock");
    let failed = || ToolchainError::cache("lock the cache with", path.clone());
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path);
    let mut file = file.map_err(failed())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(failed()(error)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(failed())?;
            let what = format!("wait for {}, which builds the control plane", name_of(holder.trim()));
            file = progress::step(progress, &what, None, wait(file)).await.map_err(failed())?;
        }
    }
    write_holder(&mut file).map_err(failed())?;
    Ok(Lock { _file: file })
}

/// An empty work folder in the cache `folder`, on the same disk, so that its files can be renamed into it.
pub(super) fn work_folder(folder: &Path, _lock: &Lock) -> Result<TempDir, ToolchainError> {
    remove_abandoned(folder).map_err(ToolchainError::cache("clean the cache folder", folder))?;
    let made = tempfile::Builder::new().prefix(WORK).tempdir_in(folder);
    made.map_err(ToolchainError::cache("make a work folder in", folder))
}

/// Gives a whole program its final name. Whoever sees the name sees a whole file, even after a power failure.
pub(super) fn install(built: &Path, folder: &Path, program: Program) -> Result<PathBuf, ToolchainError> {
    let path = folder.join(program.name());
    let installed = (|| {
        if !fs::symlink_metadata(built)?.is_file() {
            return Err(io::Error::other("what was built is no file"));
        }
        fs::set_permissions(built, fs::Permissions::from_mode(0o755))?;
        File::open(built)?.sync_all()?;
        fs::rename(built, &path)?;
        File::open(folder)?.sync_all()
    })();
    installed.map_err(ToolchainError::cache("install", path.clone()))?;
    Ok(path)
}

/// On a thread of its own: a wait for a file lock cannot be called off, and must not hold up a runtime's end.
async fn wait(file: File) -> io::Result<File> {
    let (locked, waiting) = oneshot::channel();
    thread::Builder::new().name("cache-lock".to_owned()).spawn(move || {
        // When nobody waits any more, the file is closed and with it the lock given back.
        drop(locked.send(file.lock().map(|()| file)));
    })?;
    waiting.await.map_err(io::Error::other)?
}

fn write_holder(file: &mut File) -> io::Result<()> {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_name).unwrap_or_default();
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{} (process {})", program.display(), std::process::id())
}

fn name_of(holder: &str) -> &str {
    if holder.is_empty() { "another process" } else { holder }
}

fn remove_abandoned(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(WORK.as_bytes()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use tokio::sync::Notify;

    use super::*;
    use crate::progress::{Event, Silent};

    /// Notes what is waited for.
    #[derive(Default)]
    struct Waits {
        begun: Notify,
        named_holder: AtomicBool,
    }

    impl Progress for Waits {
        fn report(&self, event: Event<'_>) {
            if let Event::Begun { what, .. } = event {
                let own = format!("(process {})", std::process::id());
                self.named_holder.store(what.contains(&own), Ordering::SeqCst);
                self.begun.notify_one();
            }
        }
    }

    #[tokio::test]
    async fn the_second_waits_for_the_first_and_says_for_whom() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path(), &Silent).await.unwrap();
        let waits = Arc::new(Waits::default());
        let (path, seen) = (folder.path().to_owned(), Arc::clone(&waits));

        let second = tokio::spawn(async move { lock(&path, &*seen).await.map(drop) });
        waits.begun.notified().await;
        assert!(!second.is_finished(), "the lock is held");
        drop(first);

        second.await.unwrap().unwrap();
        assert!(waits.named_holder.load(Ordering::SeqCst), "the holder is named");
    }

    #[tokio::test]
    async fn work_that_a_killed_run_left_is_removed_and_programs_stay() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".work-killed")).unwrap();
        fs::write(folder.path().join("etcd"), "whole").unwrap();

        let lock = lock(folder.path(), &Silent).await.unwrap();
        let work = work_folder(folder.path(), &lock).unwrap();

        assert!(work.path().is_dir());
        assert!(!folder.path().join(".work-killed").exists());
        assert!(folder.path().join("etcd").exists());
    }
}
