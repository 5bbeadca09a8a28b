//! The folder with everything that a run leaves behind.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

/// A file or folder of a run could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", .path.display())]
pub struct ArtifactError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// The folder of one run: `<artifacts>/<run>`, with `<artifacts>/latest` pointing at the newest.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    path: PathBuf,
    run: String,
}

/// Now, as folders are named after it: `20260102-030405`, in UTC.
#[must_use]
pub fn stamp() -> String {
    Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}

impl RunDirectory {
    /// Makes a new folder below `artifacts` (made if it does not exist). Its name, the run's name, is unique there.
    pub fn create(artifacts: &Path) -> Result<Self, ArtifactError> {
        let failed = |source| ArtifactError { path: artifacts.to_owned(), source };
        fs::create_dir_all(artifacts).map_err(failed)?;
        let prefix = format!("{}-", stamp());
        let made =
            tempfile::Builder::new().prefix(&prefix).rand_bytes(4).tempdir_in(artifacts).map_err(failed)?;
        let path = made.keep();
        let run = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        point_latest_at(artifacts, &run)?;
        Ok(Self { path, run })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// A short form of the run's name that is fit for Kubernetes names: its random part, in lower case.
    #[must_use]
    pub fn suffix(&self) -> String {
        self.run.rsplit('-').next().unwrap_or_default().to_lowercase()
    }

    /// The run's own journal of steps, states and faults.
    #[must_use]
    pub fn steps(&self) -> PathBuf {
        self.path.join("steps.jsonl")
    }

    /// The merged history.
    #[must_use]
    pub fn history(&self) -> PathBuf {
        self.path.join("history.jsonl")
    }

    /// The folder of a cell.
    #[must_use]
    pub fn cell(&self, cell: &str) -> PathBuf {
        self.path.join(cell_folder(cell))
    }

    /// Writes a file below the folder, with the folders above it.
    pub fn write(&self, relative: &str, contents: &[u8]) -> Result<(), ArtifactError> {
        write(&self.path.join(relative), contents)
    }

    /// Writes a value as indented JSON.
    pub fn write_json(&self, relative: &str, value: &impl Serialize) -> Result<(), ArtifactError> {
        let path = self.path.join(relative);
        let mut text = serde_json::to_vec_pretty(value)
            .map_err(|error| ArtifactError { path: path.clone(), source: error.into() })?;
        text.push(b'\n');
        write(&path, &text)
    }
}

/// The folder of a cell, relative to that of its run.
#[must_use]
pub fn cell_folder(cell: &str) -> String {
    format!("scenarios/{}", cell.replace('/', "__"))
}

/// Writes a file with the folders above it, whole or not at all.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), ArtifactError> {
    let failed = |source| ArtifactError { path: path.to_owned(), source };
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed)?;
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(parent)
        .map_err(failed)?;
    file.write_all(contents).map_err(failed)?;
    file.persist(path).map(drop).map_err(|error| failed(error.error))
}

/// Replaces the link in one step, so that two runs that start at once both succeed.
fn point_latest_at(artifacts: &Path, run: &str) -> Result<(), ArtifactError> {
    let link = artifacts.join("latest");
    let fresh = artifacts.join(format!(".latest-{run}"));
    let failed = |source| ArtifactError { path: link.clone(), source };
    symlink(run, &fresh).map_err(failed)?;
    fs::rename(&fresh, &link).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_points_at_the_newest_run() {
        let artifacts = tempfile::tempdir().unwrap();
        let first = RunDirectory::create(artifacts.path()).unwrap();
        let second = RunDirectory::create(artifacts.path()).unwrap();
        assert_ne!(first.run(), second.run());
        let latest = fs::canonicalize(artifacts.path().join("latest")).unwrap();
        assert_eq!(latest, fs::canonicalize(second.path()).unwrap());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = RunDirectory::create(Path::new("/proc/no-artifacts-here")).unwrap_err();
        assert!(error.to_string().contains("/proc/no-artifacts-here"), "{error}");
    }
}
