//! Free space, so that a build that cannot end well does not begin.

use std::{
    collections::BTreeMap,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::{error::ToolchainError, program::Module};

/// What a first build of a module's programs takes, in megabytes (measured with Go 1.26 on x86-64).
struct Need {
    modules: u64,
    objects: u64,
    programs: u64,
}

impl Module {
    fn need(self) -> Need {
        match self {
            Self::Etcd => Need { modules: 80, objects: 300, programs: 50 },
            Self::Kubernetes => Need { modules: 800, objects: 2_800, programs: 450 },
        }
    }
}

/// The folders that a build fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Go's fetched modules.
    pub modules: PathBuf,
    /// Go's compiled packages.
    pub objects: PathBuf,
    /// Built programs.
    pub programs: PathBuf,
}

/// Bytes that are free where `path` is; none if nobody can tell.
#[must_use]
pub fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Refuses a build for which there is not enough free space. Folders on one disk share it.
pub fn check(folders: &Folders, modules: &[Module]) -> Result<(), ToolchainError> {
    let mut needs: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
    let each = modules.iter().map(|module| (module, module.need())).flat_map(|(module, need)| {
        let fetched = is_fetched(&folders.modules, *module);
        [
            (&folders.modules, if fetched { 0 } else { need.modules }),
            (&folders.objects, need.objects),
            (&folders.programs, need.programs),
        ]
    });
    for (folder, megabytes) in each {
        let folder = existing(folder);
        let disk = folder.metadata().map_err(ToolchainError::cache("look at", &folder))?.dev();
        needs.entry(disk).or_insert_with(|| (folder, 0)).1 += megabytes;
    }
    needs.into_values().try_for_each(|(folder, needed)| enough(folder, needed))
}

fn enough(folder: PathBuf, needed: u64) -> Result<(), ToolchainError> {
    let disk = rustix::fs::statvfs(&folder).map_err(|errno| ToolchainError::Cache {
        action: "learn the free space of",
        path: folder.clone(),
        source: errno.into(),
    })?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize) / 1_000_000;
    if free < needed { Err(ToolchainError::Disk { folder, free, needed }) } else { Ok(()) }
}

/// Go keeps each fetched module as an archive beside its unpacked tree.
fn is_fetched(modules: &Path, module: Module) -> bool {
    let (path, version) = match module {
        Module::Etcd => (super::pins::ETCD_MODULE, module.version()),
        Module::Kubernetes => (super::pins::KUBERNETES_MODULE, module.version()),
    };
    modules.join("cache/download").join(path).join("@v").join(format!("v{version}.zip")).exists()
}

/// The nearest folder above that exists.
fn existing(folder: &Path) -> PathBuf {
    folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_space_names_the_folder_and_what_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let error = enough(folder.path().to_owned(), u64::MAX).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&folder.path().display().to_string()), "{text}");
        assert!(text.contains("ONEWRITER_CACHE_DIR"), "{text}");
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_judged_by_the_one_above() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(existing(&folder.path().join("a/b/c")), folder.path());
    }
}
