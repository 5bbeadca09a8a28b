//! Where programs are looked for.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fmt, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use futures::future::join_all;
use tokio::process::Command;

use super::{cache, error::ToolchainError, go, program::Program};

/// No program may take longer than this to print its version.
const VERSION_DEADLINE: Duration = Duration::from_secs(20);

/// Where to look. A value, so that a caller can look elsewhere than its own environment says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The folder that `KUBEBUILDER_ASSETS` names.
    pub assets: Option<PathBuf>,
    /// The value of `PATH`.
    pub path: OsString,
    /// The folder in which Go is by custom, where a script's `PATH` often does not reach.
    pub go: PathBuf,
    /// The folder of built programs for the present pins.
    pub cache: PathBuf,
    /// Whether a build is refused for which the disk has too little room. Not where Go is a stand-in that writes
    /// nothing.
    pub needs_room: bool,
}

/// Where a program was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the folder that `KUBEBUILDER_ASSETS` names.
    Assets,
    /// In a folder of `PATH`.
    Path,
    /// Built here, now or earlier.
    Cache,
}

/// A program that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its file.
    pub path: PathBuf,
    /// Where that was found.
    pub origin: Origin,
    /// Its version, without a `v`.
    pub version: String,
}

/// A program that was found and is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The program.
    pub program: Program,
    /// Its file.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
}

/// Why a program is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// `KUBEBUILDER_ASSETS` names a folder that lacks it.
    Absent,
    /// Another version is needed.
    Version {
        /// Its version.
        found: String,
        /// What is needed.
        accepted: String,
    },
    /// It does not say its version.
    Silent {
        /// What it did instead.
        instead: String,
    },
}

/// What is there and what is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Programs that can be used.
    pub found: BTreeMap<Program, Found>,
    /// Programs that were found and are not used.
    pub skipped: Vec<Skipped>,
}

impl Environment {
    /// What this process' environment says. The cache is `onewriter/control-plane/DIGEST` below
    /// `ONEWRITER_CACHE_DIR`, `XDG_CACHE_HOME` or `~/.cache`.
    pub fn of_process() -> Result<Self, ToolchainError> {
        let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = folder("ONEWRITER_CACHE_DIR")
            .or_else(|| folder("XDG_CACHE_HOME"))
            .or_else(|| folder("HOME").map(|home| home.join(".cache")))
            .ok_or(ToolchainError::NoCacheFolder)?;
        Ok(Self {
            assets: env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from),
            path: env::var_os("PATH").unwrap_or_default(),
            go: PathBuf::from(go::CUSTOMARY),
            cache: cache::folder_in(&caches),
            needs_room: true,
        })
    }

    /// Who sets `KUBEBUILDER_ASSETS` means it, so a needed program that is not there is worth a word.
    fn lacking(&self, program: Program) -> Option<Skipped> {
        let path = self.assets.as_ref()?.join(program.name());
        let lacking = program.needed() && !is_executable(&path);
        lacking.then_some(Skipped { program, path, reason: Reason::Absent })
    }

    fn candidates(&self, program: Program) -> Vec<(Origin, PathBuf)> {
        let assets = self.assets.iter().map(|folder| (Origin::Assets, folder.clone()));
        let path = env::split_paths(&self.path).map(|folder| (Origin::Path, folder));
        let files = assets.chain(path).map(|(origin, folder)| (origin, folder.join(program.name())));
        let mut seen = BTreeSet::new();
        files
            .filter(|(_, file)| is_executable(file))
            // One folder often has two names, such as /bin and /usr/bin.
            .filter(|(_, file)| file.canonicalize().is_ok_and(|file| seen.insert(file)))
            .collect()
    }
}

impl Survey {
    /// Programs that were found nowhere, in the order in which they are built.
    pub fn missing(&self) -> Vec<Program> {
        Program::ALL.into_iter().filter(|program| !self.found.contains_key(program)).collect()
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Absent => {
                write!(f, "{} is not there, though KUBEBUILDER_ASSETS names its folder", self.path.display())
            }
            Reason::Version { found, accepted } => {
                write!(f, "{} is version {found}, {accepted} is needed", self.path.display())
            }
            Reason::Silent { instead } => {
                write!(f, "{} does not say its version: {instead}", self.path.display())
            }
        }
    }
}

/// Looks for all programs at once. Changes nothing.
pub async fn lookup(environment: &Environment) -> Survey {
    let mut survey = Survey::default();
    for (program, found, skipped) in join_all(Program::ALL.map(|program| find(environment, program))).await {
        survey.skipped.extend(skipped);
        survey.found.extend(found.map(|found| (program, found)));
    }
    survey
}

async fn find(environment: &Environment, program: Program) -> (Program, Option<Found>, Vec<Skipped>) {
    let mut skipped: Vec<Skipped> = environment.lacking(program).into_iter().collect();
    for (origin, path) in environment.candidates(program) {
        match judge(program, &path).await {
            Ok(version) => return (program, Some(Found { path, origin, version }), skipped),
            Err(reason) => skipped.push(Skipped { program, path, reason }),
        }
    }
    // Only whole programs of the present pins ever get this name, so there is nothing to check.
    let path = environment.cache.join(program.name());
    let built = is_executable(&path).then(|| Found {
        path,
        origin: Origin::Cache,
        version: program.version().to_owned(),
    });
    (program, built, skipped)
}

/// The version of the program at `path`, if it may be used.
async fn judge(program: Program, path: &Path) -> Result<String, Reason> {
    let output = version_output(program, path).await;
    let output = output.map_err(|error| Reason::Silent { instead: error.to_string() })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(version) = program.version_in(&text) else {
        return Err(Reason::Silent { instead: format!("it ended with {}", output.status) });
    };
    if program.accepts(version) {
        Ok(version.to_owned())
    } else {
        Err(Reason::Version { found: version.to_owned(), accepted: program.accepted() })
    }
}

async fn version_output(program: Program, path: &Path) -> io::Result<Output> {
    let mut command = Command::new(path);
    command.args(program.version_args()).stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(VERSION_DEADLINE, command.output()).await {
        Ok(output) => output,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", VERSION_DEADLINE.as_secs()),
        )),
    }
}

pub(super) fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A program that prints `text` when it is asked for its version.
    fn pretend(folder: &Path, program: Program, text: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(program.name());
        // Written by another process: were it open for writing here, a child that another test forks meanwhile
        // would hold it open, and the kernel would refuse to run it.
        let script = format!("#!/bin/sh\necho '{text}'\n");
        let write = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
        let written = std::process::Command::new("sh").args(["-c", write]).arg(&path).arg(script).status();
        assert!(written.unwrap().success());
        path
    }

    fn environment(root: &Path) -> Environment {
        Environment {
            assets: Some(root.join("assets")),
            path: env::join_paths([root.join("first"), root.join("second")]).unwrap(),
            go: root.join("no-go"),
            cache: root.join("cache"),
            needs_room: true,
        }
    }

    #[tokio::test]
    async fn each_program_is_looked_up_on_its_own_and_assets_come_first() {
        let root = tempfile::tempdir().unwrap();
        pretend(&root.path().join("first"), Program::Etcd, "etcd Version: 3.6.9");
        let etcd = pretend(&root.path().join("assets"), Program::Etcd, "etcd Version: 3.6.1");
        let apiserver = pretend(&root.path().join("second"), Program::KubeApiserver, "Kubernetes v1.36.3");
        let kubectl = pretend(&root.path().join("cache"), Program::Kubectl, "not asked");

        let survey = lookup(&environment(root.path())).await;

        let place = |program| survey.found.get(&program).map(|found| (found.origin, found.path.clone()));
        assert_eq!(place(Program::Etcd), Some((Origin::Assets, etcd)));
        assert_eq!(place(Program::KubeApiserver), Some((Origin::Path, apiserver)));
        assert_eq!(place(Program::Kubectl), Some((Origin::Cache, kubectl)));
        assert_eq!(survey.missing(), [Program::KubeControllerManager]);
    }

    #[tokio::test]
    async fn another_version_is_passed_over_with_a_reason_and_the_next_place_is_tried() {
        let root = tempfile::tempdir().unwrap();
        let old = pretend(&root.path().join("assets"), Program::KubeApiserver, "Kubernetes v1.31.0");
        let good = pretend(&root.path().join("second"), Program::KubeApiserver, "Kubernetes v1.36.3");

        let survey = lookup(&environment(root.path())).await;

        assert_eq!(survey.found[&Program::KubeApiserver].path, good);
        let reason = Reason::Version { found: "1.31.0".into(), accepted: "1.36.3".into() };
        assert_eq!(
            skipped(survey, Program::KubeApiserver),
            [Skipped { program: Program::KubeApiserver, path: old, reason }]
        );
    }

    #[tokio::test]
    async fn a_program_that_says_no_version_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        pretend(&root.path().join("first"), Program::Etcd, "hello");
        let survey = lookup(&environment(root.path())).await;
        assert!(!survey.found.contains_key(&Program::Etcd));
        let said = skipped(survey, Program::Etcd).into_iter().map(|skipped| skipped.to_string());
        assert!(
            said.clone().any(|text| text.contains("does not say its version")),
            "{:?}",
            said.collect::<Vec<_>>()
        );
    }

    #[tokio::test]
    async fn a_needed_program_that_the_assets_folder_lacks_is_named() {
        let root = tempfile::tempdir().unwrap();
        pretend(&root.path().join("assets"), Program::Etcd, "etcd Version: 3.6.16");
        let survey = lookup(&environment(root.path())).await;
        let absent = survey.skipped.iter().filter(|skipped| skipped.reason == Reason::Absent);
        let absent: Vec<Program> = absent.map(|skipped| skipped.program).collect();
        assert_eq!(absent, [Program::KubeApiserver, Program::KubeControllerManager]);
    }

    fn skipped(survey: Survey, program: Program) -> Vec<Skipped> {
        survey.skipped.into_iter().filter(|skipped| skipped.program == program).collect()
    }
}
