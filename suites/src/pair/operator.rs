//! The programs of a pair: the operator that was asked for, or the reference operator, and the fake Garage of pods; built
//! when they are not there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::pair::federation::PairOptions;
use harness::process::{Launch, Launcher};
use harness::supervisor::{AnyError, Context};

/// Name of the reference operator's program and package.
const REFERENCE: &str = "garage-operator";

/// Name of the fake Garage's program and package.
const FAKE: &str = "fake-garage";

/// Variables that cargo and rustup read.
const CARGO_ENVIRONMENT: [&str; 6] =
    ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_BUILD_JOBS", "CARGO_NET_OFFLINE"];

/// There is no operator to run.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The program that was asked for is not there.
    #[error("the operator {} cannot be run: {problem}; --operator-bin takes the path of an executable file", .path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no program beside this one, and no workspace to build it in.
    #[error(
        "there is no {REFERENCE} beside {}, and no workspace to build it in; \
         name an operator with --operator-bin, or run this from a checkout", .executable.display()
    )]
    Missing {
        /// This executable.
        executable: PathBuf,
    },
    /// The build with a feature failed.
    #[error("building {REFERENCE} with its feature `{feature}` failed ({status}):\n{tail}")]
    BuildWith {
        /// The feature.
        feature: String,
        /// How cargo ended.
        status: String,
        /// What it said.
        tail: String,
    },
    /// The fake Garage is not beside this program, and there is no workspace to build it in.
    #[error("there is no {FAKE} beside {}, and no workspace to build it in; run this from a checkout", .executable.display())]
    NoFake {
        /// This executable.
        executable: PathBuf,
    },
    /// The build failed.
    #[error("building {package} failed ({status}); the end of {}:\n{tail}", .log.display())]
    Build {
        /// What was built.
        package: &'static str,
        /// How cargo ended.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
}

/// Finds the operator to run, and builds the reference operator if that is the one and this runs from a build folder.
#[must_use]
pub fn resolve(options: PairOptions, context: Context) -> BoxFuture<'static, Result<PathBuf, AnyError>> {
    async move {
        if let Some(path) = options.operator_bin {
            return usable(path).map_err(AnyError::from);
        }
        let executable = std::env::current_exe()?;
        match BuildFolder::of(&executable) {
            Some(folder) => build(&folder, REFERENCE, &context).await,
            None => beside(&executable).map_err(AnyError::from),
        }
    }
    .boxed()
}

/// Finds the fake Garage that pods run, and builds it if this runs from a build folder.
#[must_use]
pub fn resolve_garage(
    _options: PairOptions,
    context: Context,
) -> BoxFuture<'static, Result<PathBuf, AnyError>> {
    async move {
        let executable = std::env::current_exe()?;
        if let Some(folder) = BuildFolder::of(&executable) {
            build(&folder, FAKE, &context).await
        } else {
            let sibling = usable(executable.with_file_name(FAKE));
            sibling.map_err(|_| AnyError::from(OperatorError::NoFake { executable }))
        }
    }
    .boxed()
}

/// Replaces the path that somebody gave by an absolute one, for the supervisor works in another folder.
///
/// # Errors
/// When it is no file that can be executed.
pub fn resolve_argument(path: &mut Option<PathBuf>) -> Result<(), OperatorError> {
    if let Some(given) = path.take() {
        *path = Some(usable(given)?);
    }
    Ok(())
}

/// Checks that `path` is a file that can be executed, and returns it as an absolute path.
pub fn usable(path: PathBuf) -> Result<PathBuf, OperatorError> {
    use std::os::unix::fs::PermissionsExt as _;
    let problem = match std::fs::metadata(&path) {
        Err(error) => error.to_string(),
        Ok(file) if !file.is_file() => "it is no file".to_owned(),
        Ok(file) if file.permissions().mode() & 0o111 == 0 => "it is not executable".to_owned(),
        Ok(_) => return std::path::absolute(&path).map_err(|error| unusable(path, error.to_string())),
    };
    Err(unusable(path, problem))
}

fn unusable(path: PathBuf, problem: String) -> OperatorError {
    OperatorError::Unusable { path, problem }
}

fn beside(executable: &Path) -> Result<PathBuf, OperatorError> {
    let sibling = executable.with_file_name(REFERENCE);
    usable(sibling).map_err(|_| OperatorError::Missing { executable: executable.to_owned() })
}

/// The folder that cargo builds into, found from an executable in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BuildFolder {
    workspace: PathBuf,
    target: PathBuf,
    profile: String,
}

impl BuildFolder {
    /// `<target>/<profile>/onewriter` or `<target>/<profile>/deps/<test>-<hash>`, of a workspace that is still there.
    fn of(executable: &Path) -> Option<Self> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
        let folder = executable.parent()?;
        let folder = if folder.ends_with("deps") { folder.parent()? } else { folder };
        let profile = folder.file_name()?.to_str()?.to_owned();
        let is_build_folder = folder.join(".cargo-lock").exists() || folder.join("deps").is_dir();
        let known = is_build_folder && workspace.join("operator/Cargo.toml").is_file();
        known.then(|| Self {
            workspace: workspace.to_owned(),
            target: folder.parent().map(Path::to_owned).unwrap_or_default(),
            profile,
        })
    }

    fn program(&self, package: &str) -> PathBuf {
        self.target.join(&self.profile).join(package)
    }

    /// Where the operator with `feature` is put: its own build would be replaced by the next one without it.
    fn program_with(&self, feature: &str) -> PathBuf {
        self.target.join(&self.profile).join("defects").join(feature).join(REFERENCE)
    }

    /// Cargo takes its own lock, so builds of several runs wait for each other.
    fn arguments(&self, package: &str) -> Vec<OsString> {
        let profile = if self.profile == "debug" { "dev" } else { &self.profile };
        let mut arguments: Vec<OsString> =
            ["build", "--quiet", "--package", package, "--bin", package, "--profile", profile]
                .map(OsString::from)
                .to_vec();
        arguments.extend(["--manifest-path".into(), self.workspace.join("Cargo.toml").into()]);
        arguments.extend(["--target-dir".into(), self.target.clone().into()]);
        arguments
    }
}

/// Builds the reference operator with a Cargo feature of its own, and puts it where no other build replaces it.
pub async fn build_with(feature: &str) -> Result<PathBuf, OperatorError> {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = BuildFolder::of(&executable).ok_or(OperatorError::Missing { executable })?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = tokio::process::Command::new(cargo);
    command
        .args(folder.arguments(REFERENCE))
        .args(["--features", feature])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let failed =
        |status: String, tail: String| OperatorError::BuildWith { feature: feature.to_owned(), status, tail };
    let output = command.output().await.map_err(|error| failed(error.to_string(), String::new()))?;
    if !output.status.success() {
        let tail = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        return Err(failed(output.status.to_string(), tail));
    }
    let program = folder.program_with(feature);
    let put = program.parent().map_or(Ok(()), std::fs::create_dir_all);
    let put = put.and_then(|()| replace(&folder.program(REFERENCE), &program));
    put.map_err(|error| unusable(program.clone(), error.to_string()))?;
    usable(program)
}

/// Copies a program whole or not at all: the one that is there may be running.
fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    let fresh = to.with_extension("new");
    std::fs::copy(from, &fresh)?;
    std::fs::rename(&fresh, to)
}

async fn build(folder: &BuildFolder, package: &'static str, context: &Context) -> Result<PathBuf, AnyError> {
    context.progress.report(package, "building it");
    let log = context.folder.join(format!("{package}-build.log"));
    let child = launch(&context.launcher, folder, package, &log).await?;
    let status = child.exited().await;
    if status.success() {
        return Ok(usable(folder.program(package))?);
    }
    Err(OperatorError::Build { package, status: status.to_string(), tail: child.log_tail(30), log }.into())
}

async fn launch(
    launcher: &Launcher,
    folder: &BuildFolder,
    package: &str,
    log: &Path,
) -> Result<harness::process::Child, AnyError> {
    let env = CARGO_ENVIRONMENT.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    let launch = Launch {
        name: format!("{package}-build"),
        program: std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from),
        args: folder.arguments(package),
        env: env.collect(),
        log: log.to_owned(),
    };
    Ok(launcher.launch(launch).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_that_is_not_there_is_named_with_the_flag() {
        let error = usable("/no/such/operator".into()).unwrap_err().to_string();
        assert!(error.contains("/no/such/operator") && error.contains("--operator-bin"), "{error}");
    }

    #[test]
    fn a_relative_path_is_resolved_where_it_was_given() {
        let mut path = Some(PathBuf::from("../../../../../../../../../../bin/sh"));
        resolve_argument(&mut path).unwrap();
        assert!(path.unwrap().is_absolute());
    }

    #[test]
    fn a_file_that_is_no_program_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = usable(file.path().to_owned()).unwrap_err().to_string();
        assert!(error.contains("not executable"), "{error}");
    }

    #[test]
    fn this_test_runs_from_a_build_folder() {
        let executable = std::env::current_exe().unwrap();
        let folder = BuildFolder::of(&executable).unwrap();
        assert!(executable.starts_with(folder.target.join(&folder.profile)));
    }
}
