//! Private files and folders.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::error::LocalError;

/// Makes a folder that only this user can enter, and nothing above it.
pub(super) fn make(path: PathBuf) -> Result<PathBuf, LocalError> {
    match DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(LocalError::File { action: "make the folder", path, source }),
    }
}

/// Writes a new file that only this user can read.
pub(super) fn write(path: PathBuf, text: &str) -> Result<PathBuf, LocalError> {
    let write = || -> io::Result<()> {
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?.write_all(text.as_bytes())
    };
    match write() {
        Ok(()) => Ok(path),
        Err(source) => Err(LocalError::File { action: "write", path, source }),
    }
}

/// Removes a folder with all that is in it, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), LocalError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(LocalError::File { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
