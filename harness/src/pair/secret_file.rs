//! Files that only their owner may read.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A file or folder for secrets could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot create {}", .path.display())]
pub struct SecretFileError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Makes a folder of mode 0700, with the folders above it.
pub fn create_folder(path: &Path) -> Result<(), SecretFileError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| SecretFileError { path: path.to_owned(), source })
}

/// Writes a new file of mode 0600.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), SecretFileError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(contents));
    written.map_err(|source| SecretFileError { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn nobody_but_the_owner_may_read_them() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        create_folder(&folder).unwrap();
        write(&folder.join("token"), b"secret").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("token"))), (0o700, 0o600));
    }
}
