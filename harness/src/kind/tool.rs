//! The kind CLI, built once from its pinned module.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::error::KindError;
use crate::failure::{BoxError, chain};
use crate::process::{Launch, Launcher};
use crate::supervisor::ProgressSink;
use crate::toolchain::{Environment, go};

/// Module files of the kind CLI.
const MOD: &str = include_str!("../../../kind-configs/kind/go.mod");
const SUM: &str = include_str!("../../../kind-configs/kind/go.sum");
/// Its package.
const PACKAGE: &str = "sigs.k8s.io/kind";

/// The pinned version, such as `v0.33.0`.
#[must_use]
pub fn version() -> &'static str {
    let pinned = MOD.lines().find_map(|line| line.trim().strip_prefix(PACKAGE)?.split_whitespace().next());
    pinned.unwrap_or_default()
}

/// Where the built program lies in the cache of `environment`.
fn place(environment: &Environment) -> PathBuf {
    let mut hash = Sha256::new();
    for part in [std::env::consts::ARCH, MOD, SUM] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    // Beside the folders of control planes.
    let caches = environment.cache.parent().and_then(Path::parent).unwrap_or(&environment.cache);
    caches.join("kind").join(hex::encode(&hash.finalize()[..8])).join("kind")
}

/// The kind CLI, built with Go if it has not been yet.
pub async fn prepare(launcher: &Launcher, progress: &ProgressSink) -> Result<PathBuf, KindError> {
    let none = |problem: String| KindError::NoTool { problem };
    let environment = Environment::of_process().map_err(|error| none(chain(&error)))?;
    let path = place(&environment);
    if path.is_file() {
        return Ok(path);
    }
    progress.report("kind", format!("building the kind CLI {}, once", version()));
    build(&environment, &path, launcher).await.map_err(|error| none(chain(error.as_ref())))?;
    Ok(path)
}

async fn build(environment: &Environment, path: &Path, launcher: &Launcher) -> Result<(), BoxError> {
    let go = go::locate(environment).ok_or("Go is not installed; install Go 1.26 or newer from go.dev/dl")?;
    let folder = path.parent().ok_or("it has no folder")?;
    fs::create_dir_all(folder)?;
    // Two builds at once make two files; each is whole before it takes the name.
    let work = tempfile::Builder::new().prefix(".work-").tempdir_in(folder)?;
    fs::write(work.path().join("go.mod"), MOD)?;
    fs::write(work.path().join("go.sum"), SUM)?;
    let built = work.path().join("kind");
    let flag = |name: &str, value: &Path| {
        let mut flag = OsString::from(name);
        flag.push(value);
        flag
    };
    let launch = Launch {
        name: "go-build-kind".to_owned(),
        program: go,
        args: vec![
            "build".into(),
            flag("-C=", work.path()),
            "-trimpath".into(),
            "-ldflags=-s -w".into(),
            flag("-o=", &built),
            PACKAGE.into(),
        ],
        env: go::environment(work.path()),
        log: folder.join("build.log"),
    };
    let child = launcher.launch(launch).await?;
    let status = child.exited().await;
    if !status.success() {
        return Err(format!("building it ended with {status}:\n{}", child.log_tail(20)).into());
    }
    Ok(fs::rename(built, path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_pinned_one() {
        assert_eq!(version(), "v0.33.0");
    }
}
