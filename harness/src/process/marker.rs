//! The environment variable by which descendants are known as ours.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use super::identity::{self, IdentityError, ProcessIdentity};

/// The variable that every started process and all its descendants carry.
pub const VARIABLE: &str = "ONEWRITER_OWNER";

/// Who a started process belongs to: an identifier that is never used twice, and the folder of its owner.
///
/// The records name each process that was started; the marker also finds what those started in turn, and a
/// trampoline that was killed before it wrote its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// An identifier that is never used twice.
    pub id: String,
    /// The folder of the owner.
    pub folder: PathBuf,
}

impl Marker {
    /// The variable's value.
    pub fn value(&self) -> OsString {
        let mut value = self.id.clone().into_bytes();
        value.push(b':');
        value.extend_from_slice(self.folder.as_os_str().as_bytes());
        OsString::from_vec(value)
    }

    /// Every running process that carries exactly this marker.
    pub fn carriers(&self) -> Result<Vec<ProcessIdentity>, IdentityError> {
        let wanted = self.value();
        carriers(|value| value == wanted)
    }

    /// Every running process whose owner has this identifier, wherever the owner's folder is by now.
    pub fn carriers_with_id(id: &str) -> Result<Vec<ProcessIdentity>, IdentityError> {
        let beginning = format!("{id}:");
        carriers(|value| value.as_bytes().starts_with(beginning.as_bytes()))
    }

    /// Every running process whose marker names this folder, for an owner whose identifier is lost.
    pub fn carriers_of(folder: &Path) -> Result<Vec<ProcessIdentity>, IdentityError> {
        let mut ending = vec![b':'];
        ending.extend_from_slice(folder.as_os_str().as_bytes());
        carriers(|value| value.as_bytes().ends_with(&ending))
    }
}

/// Identity first, environment second: whoever takes over a number in between fails the check before a signal.
fn carriers(wanted: impl Fn(&OsStr) -> bool) -> Result<Vec<ProcessIdentity>, IdentityError> {
    let mut found = identity::all()?;
    found.retain(|identity| carried(identity.pid).is_some_and(|value| wanted(&value)) && identity.is_alive());
    Ok(found)
}

/// Environments of other users' processes are unreadable; those are not ours either.
fn carried(pid: i32) -> Option<OsString> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entry =
        |line: &&[u8]| line.starts_with(VARIABLE.as_bytes()) && line.get(VARIABLE.len()) == Some(&b'=');
    let line = environment.split(|byte| *byte == 0).find(entry)?;
    Some(OsString::from_vec(line[VARIABLE.len() + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_carriers_of_the_very_marker_are_found() {
        let marker = Marker { id: format!("test-{}", std::process::id()), folder: "/tmp/pair-16".into() };
        let start = |value: OsString| {
            std::process::Command::new("sleep").arg("60").env(VARIABLE, value).spawn().unwrap()
        };
        let mut ours = start(marker.value());
        let mut other = start(Marker { id: "other".into(), ..marker.clone() }.value());
        let found = marker.carriers().unwrap();
        ours.kill().unwrap();
        other.kill().unwrap();
        ours.wait().unwrap();
        other.wait().unwrap();
        let pids: Vec<_> = found.iter().map(|identity| identity.pid).collect();
        assert_eq!(pids, [i32::try_from(ours.id()).unwrap()]);
    }
}
