//! What is written down about a started process.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::identity::ProcessIdentity;

/// One started process, as a file `NAME.json` in the folder of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessRecord {
    /// Name of the part, unique within its folder.
    pub name: String,
    /// The program it became.
    pub program: PathBuf,
    /// Which process it is.
    #[serde(flatten)]
    pub identity: ProcessIdentity,
}

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file or folder could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is torn or was written by something else.
    #[error("{} is torn or of an unknown form", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl ProcessRecord {
    /// Where the record of `name` lies in `folder`.
    pub fn path(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{name}.json"))
    }

    /// Writes the record; readers see either none of it or all of it.
    pub fn write(&self, folder: &Path) -> Result<(), RecordError> {
        write_json(&Self::path(folder, &self.name), self)
    }

    /// Every record of a folder, in the order of names; a folder that is not there holds none.
    ///
    /// A record that cannot be read stands in its place as an error: it must not hide the others.
    pub fn read_all(folder: &Path) -> Result<Vec<Result<Self, RecordError>>, RecordError> {
        let unreadable = |source| RecordError::Read { path: folder.into(), source };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(unreadable)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths.iter().map(|path| read_json(path)).collect())
    }
}

/// Writes a JSON file of mode 0600 by way of a temporary file and a rename.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RecordError> {
    let failed = |source| RecordError::Write { path: path.into(), source };
    let folder = path.parent().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(failed)?;
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    file.write_all(&text).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Reads a JSON file.
pub(crate) fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, RecordError> {
    let text = fs::read(path).map_err(|source| RecordError::Read { path: path.into(), source })?;
    serde_json::from_slice(&text).map_err(|source| RecordError::Form { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_torn_record_does_not_hide_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let identity = ProcessIdentity::current().unwrap();
        let record = ProcessRecord { name: "etcd-east".into(), program: "/bin/etcd".into(), identity };
        record.write(folder.path()).unwrap();
        fs::write(folder.path().join("aaa.json"), "{\"name\":\"aaa\",\"pid").unwrap();
        let read = ProcessRecord::read_all(folder.path()).unwrap();
        assert!(matches!(read[0], Err(RecordError::Form { .. })));
        assert_eq!(read[1].as_ref().unwrap(), &record);
    }

    #[test]
    fn a_record_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let identity = ProcessIdentity::current().unwrap();
        ProcessRecord { name: "hub".into(), program: "hub".into(), identity }.write(folder.path()).unwrap();
        let mode = fs::metadata(folder.path().join("hub.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_folder_that_is_not_there_holds_no_records() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ProcessRecord::read_all(&folder.path().join("none")).unwrap().is_empty());
    }
}
