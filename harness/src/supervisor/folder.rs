//! The folder of one pair: what lies where, and whether somebody looks after it.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    address::PairAddresses,
    root::{RootError, StateRoot},
};
use crate::process::{
    Marker, ProcessIdentity, RecordError,
    record::{read_json, write_json},
};

/// What every pair's folder is named after: `pair-X`, X being the second octet of its addresses.
const PREFIX: &str = "pair-";
/// What a folder is renamed to before it is removed.
const REMOVING: &str = "removing-";

/// Who made a pair, and for what. Written once, before anything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Never used twice.
    pub id: String,
    /// By what others find this pair to share it.
    pub key: String,
    /// What it was made for, in words.
    pub purpose: String,
    /// Whether it lives on without clients, until it is taken down.
    pub kept: bool,
    /// How long it lives on without clients otherwise.
    pub linger: Duration,
    /// Where its logs are copied to should the start fail.
    pub keep_logs: Option<PathBuf>,
    /// Whether the state root stays when it is empty.
    pub root_stays: bool,
    /// The process that made it.
    pub creator: ProcessIdentity,
    /// When.
    pub created: Timestamp,
    /// The version that made it.
    pub version: String,
}

/// A pair's folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PairFolder {
    pub(super) path: PathBuf,
    pub(super) addresses: PairAddresses,
}

/// What was found in the state root.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Entry {
    /// A pair's folder.
    Pair(PairFolder),
    /// What is left of a pair whose removal was interrupted, or is under way.
    Remains(PathBuf),
    /// Named like a pair, but not made by us.
    Foreign(PathBuf, &'static str),
}

impl PairFolder {
    pub(super) fn new(root: &StateRoot, addresses: PairAddresses) -> Self {
        Self { path: root.path().join(format!("{PREFIX}{}", addresses.octet())), addresses }
    }

    /// The folder that a path names by its last part.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let octet = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
        let addresses = PairAddresses::new(octet.parse().ok()?)?;
        // No second spelling of a number: "pair-016" is not ours.
        (octet == addresses.octet().to_string()).then(|| Self { path: path.into(), addresses })
    }

    pub(super) fn name(&self) -> String {
        format!("{PREFIX}{}", self.addresses.octet())
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join("supervisor.sock")
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        lock_file(&self.path)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("supervisor.log")
    }

    pub(super) fn processes(&self) -> PathBuf {
        processes(&self.path)
    }

    fn options_file(&self) -> PathBuf {
        self.path.join("options.json")
    }

    pub(super) fn owner(&self) -> Result<Owner, RecordError> {
        read_owner(&self.path)
    }

    pub(super) fn write_owner(&self, owner: &Owner) -> Result<(), RecordError> {
        write_json(&owner_file(&self.path), owner)
    }

    pub(super) fn options(&self) -> Result<serde_json::Value, RecordError> {
        read_json(&self.options_file())
    }

    pub(super) fn write_options(&self, options: &serde_json::Value) -> Result<(), RecordError> {
        write_json(&self.options_file(), options)
    }

    pub(super) fn supervisor(&self) -> Result<ProcessIdentity, RecordError> {
        read_supervisor(&self.path)
    }

    pub(super) fn write_supervisor(&self, identity: &ProcessIdentity) -> Result<(), RecordError> {
        write_json(&supervisor_file(&self.path), identity)
    }

    pub(super) fn marker(&self, owner: &Owner) -> Marker {
        Marker { id: owner.id.clone(), folder: self.path.clone() }
    }

    /// The name under which this folder is removed; never used twice.
    pub(super) fn remains(&self) -> PathBuf {
        let unique = format!("{REMOVING}{}-{:016x}", self.addresses.octet(), rand::random::<u64>());
        self.path.with_file_name(unique)
    }
}

pub(super) fn lock_file(folder: &Path) -> PathBuf {
    folder.join("supervisor.lock")
}

pub(super) fn processes(folder: &Path) -> PathBuf {
    folder.join("processes")
}

fn owner_file(folder: &Path) -> PathBuf {
    folder.join("owner.json")
}

fn supervisor_file(folder: &Path) -> PathBuf {
    folder.join("supervisor.json")
}

pub(super) fn read_owner(folder: &Path) -> Result<Owner, RecordError> {
    read_json(&owner_file(folder))
}

pub(super) fn read_supervisor(folder: &Path) -> Result<ProcessIdentity, RecordError> {
    read_json(&supervisor_file(folder))
}

/// Whether a supervisor, or whoever is about to become one, holds the folder's lock.
pub(super) fn is_held(folder: &Path) -> io::Result<bool> {
    let file = match File::open(lock_file(folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    // Shared, so that two who ask at once do not take each other for the supervisor.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Everything in the root that is named like a pair, in the order of names.
pub(super) fn entries(root: &StateRoot) -> Result<Vec<Entry>, RootError> {
    if !root.check()? {
        return Ok(Vec::new());
    }
    let failed = |source| RootError::Io { action: "list", path: root.path().into(), source };
    let mut entries = Vec::new();
    for entry in fs::read_dir(root.path()).map_err(failed)? {
        entries.extend(classify(&entry.map_err(failed)?.path()));
    }
    entries.sort();
    Ok(entries)
}

fn classify(path: &Path) -> Option<Entry> {
    let name = path.file_name()?.to_str()?;
    let pair = PairFolder::at(path);
    if pair.is_none() && !name.starts_with(PREFIX) && !name.starts_with(REMOVING) {
        return None;
    }
    let foreign = |why| Some(Entry::Foreign(path.into(), why));
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => foreign("it is not a folder"),
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            foreign("it belongs to another user")
        }
        Ok(_) if name.starts_with(REMOVING) => Some(Entry::Remains(path.into())),
        Ok(_) if pair.is_some() && holds_what_is_not_ours(path) => {
            foreign("it has no owner.json, and holds what no pair would")
        }
        Ok(_) => pair.map_or_else(|| foreign("its name is no pair's"), |pair| Some(Entry::Pair(pair))),
        // Removed meanwhile.
        Err(_) => None,
    }
}

/// Whether a folder without an owner holds anything that a claim does not make before it writes down the owner.
fn holds_what_is_not_ours(path: &Path) -> bool {
    if owner_file(path).exists() {
        return false;
    }
    let ours = |name: &str| {
        name.starts_with("supervisor.")
            || name.starts_with("owner.json")
            || name.starts_with('.')
            || name == "processes"
    };
    let Ok(entries) = fs::read_dir(path) else { return false };
    entries.filter_map(Result::ok).any(|entry| !ours(&entry.file_name().to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("pair-16", Some(16))]
    #[case("pair-250", Some(250))]
    #[case("pair-016", None)]
    #[case("pair-1", None)]
    #[case("pair-", None)]
    #[case("pair-999", None)]
    #[case("other", None)]
    fn only_exact_names_are_pairs(#[case] name: &str, #[case] octet: Option<u8>) {
        let found = PairFolder::at(&Path::new("/root").join(name));
        assert_eq!(found.map(|folder| folder.addresses.octet()), octet);
    }

    #[test]
    fn the_root_is_listed_with_what_is_not_ours_set_apart() {
        let folder = tempfile::tempdir().unwrap();
        let root = StateRoot::at(folder.path()).unwrap();
        for name in ["pair-17", "pair-x", "removing-16-0", "unrelated"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink("/", root.path().join("pair-18")).unwrap();
        fs::create_dir_all(root.path().join("pair-19/somebody's")).unwrap();
        let named = |name: &str| root.path().join(name);
        let expected = [
            Entry::Pair(PairFolder::new(&root, PairAddresses::new(17).unwrap())),
            Entry::Remains(named("removing-16-0")),
            Entry::Foreign(named("pair-18"), "it is not a folder"),
            Entry::Foreign(named("pair-19"), "it has no owner.json, and holds what no pair would"),
            Entry::Foreign(named("pair-x"), "its name is no pair's"),
        ];
        assert_eq!(entries(&root).unwrap(), expected);
    }

    #[test]
    fn a_folder_is_held_exactly_while_its_lock_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_held(folder.path()).unwrap());
        let lock = File::create(lock_file(folder.path())).unwrap();
        assert!(!is_held(folder.path()).unwrap());
        lock.lock().unwrap();
        assert!(is_held(folder.path()).unwrap());
        drop(lock);
        assert!(!is_held(folder.path()).unwrap());
    }
}
