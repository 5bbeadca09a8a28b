//! The Go toolchain.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde::Deserialize;
use tokio::process::Command;

use super::{
    lookup::{Environment, is_executable},
    pins,
};

/// Where Go's own installation guide puts it.
pub(super) const CUSTOMARY: &str = "/usr/local/go/bin";

/// No Go takes longer than this to answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// Names of variables that reach Go, beside those that begin with `GO`: proxies and certificates.
const PASSED_ON: [&str; 10] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
];

/// An installed Go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Go {
    /// Its program.
    pub path: PathBuf,
    /// Its version, such as `1.26.8`.
    pub version: String,
    /// Where it keeps compiled packages.
    pub objects: PathBuf,
    /// Where it keeps fetched modules.
    pub modules: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
struct Settings {
    goversion: String,
    gocache: PathBuf,
    gomodcache: PathBuf,
}

impl Go {
    /// Whether it can build the pinned modules.
    pub fn is_new_enough(&self) -> bool {
        pins::ordered(&self.version) >= pins::ordered(pins::go_version())
    }
}

/// The `go` in a folder of `PATH`, or where it is by custom.
pub fn locate(environment: &Environment) -> Option<PathBuf> {
    let folders = env::split_paths(&environment.path).chain([environment.go.clone()]);
    folders.map(|folder| folder.join("go")).find(|file| is_executable(file))
}

/// Asks the Go at `path` what it is.
pub async fn ask(path: PathBuf) -> io::Result<Go> {
    let mut command = Command::new(&path);
    command.args(["env", "-json", "GOVERSION", "GOCACHE", "GOMODCACHE"]);
    command.envs(settings()).current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(DEADLINE, command.output()).await;
    let output = output.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let answer: Settings = serde_json::from_slice(&output.stdout)?;
    let version = version_number(&answer.goversion).to_owned();
    Ok(Go { path, version, objects: answer.gocache, modules: answer.gomodcache })
}

/// Environment for Go: the caller's own settings, except for those that decide what is built.
pub(crate) fn environment(temporary: &Path) -> Vec<(OsString, OsString)> {
    let wanted = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.starts_with("GO") || PASSED_ON.contains(&name.as_ref())
    };
    let mut environment: Vec<_> = env::vars_os().filter(|(name, _)| wanted(name)).collect();
    environment.extend(settings().map(|(name, value)| (name.into(), value.into())));
    environment.push(("GOTMPDIR".into(), temporary.into()));
    environment
}

/// Settings that decide what is built. An empty value means Go's default, whatever a user's file says.
fn settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    [
        ("CGO_ENABLED", "0"),
        ("GOFLAGS", "-buildvcs=false -mod=readonly"),
        ("GOTOOLCHAIN", "local"),
        ("GOWORK", "off"),
        ("GOOS", ""),
        ("GOARCH", ""),
        ("GOEXPERIMENT", ""),
    ]
    .into_iter()
}

/// The number in `go1.26.8`, `go1.27rc1` or `go1.26.8 X:nodwarf5`.
fn version_number(text: &str) -> &str {
    let number = text.strip_prefix("go").unwrap_or(text);
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    &number[..end]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("go1.26.8", "1.26.8", true)]
    #[case("go1.26.8 X:nodwarf5", "1.26.8", true)]
    #[case("go1.27rc1", "1.27", true)]
    #[case("go1.25.3", "1.25.3", false)]
    #[case("go1.9", "1.9", false)]
    fn old_versions_are_told_from_new_ones(#[case] text: &str, #[case] number: &str, #[case] enough: bool) {
        assert_eq!(version_number(text), number);
        let go = Go { path: "go".into(), version: number.into(), objects: "o".into(), modules: "m".into() };
        assert_eq!(go.is_new_enough(), enough);
    }

    #[test]
    fn the_callers_flags_do_not_reach_the_build() {
        let environment = environment(Path::new("/work"));
        let last = environment.iter().rev().find(|(name, _)| name == "GOFLAGS").unwrap();
        assert_eq!(last.1, "-buildvcs=false -mod=readonly");
    }
}
