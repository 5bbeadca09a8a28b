//! A Go that pretends, and a machine on which it is all there is.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use harness::{
    process::{Launcher, Marker},
    progress::{Event, Progress, Silent},
    toolchain::{Binaries, Environment, ToolchainError, prepare},
};

/// Makes a file that could be run.
pub(crate) const MAKE: &str = "echo '#!/bin/sh' > \"$out\"";

/// A folder with a Go, an empty cache and a launcher.
pub(crate) struct Pretence {
    root: tempfile::TempDir,
    pub(crate) launcher: Launcher,
}

impl Pretence {
    pub(crate) fn new(version: &str, build: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let launcher = launcher(root.path());
        let pretence = Self { root, launcher };
        pretence.install_go(version, build);
        pretence
    }

    /// Another run on the same machine.
    pub(crate) fn another_launcher(&self) -> Launcher {
        let folder = self.root.path().join("another");
        fs::create_dir(&folder).unwrap();
        launcher(&folder)
    }

    pub(crate) fn install_go(&self, version: &str, build: &str) {
        let root = self.root.path().display();
        let script = format!(
            r#"#!/bin/sh
case "$1" in
env) echo '{{"GOVERSION": "{version}", "GOCACHE": "{root}/objects", "GOMODCACHE": "{root}/modules"}}'; exit ;;
mod) echo "fetch" >> {root}/calls; exit ;;
esac
for arg; do case "$arg" in -o=*) out="${{arg#-o=}}" ;; esac; done
echo "build $arg" >> {root}/calls
{build}
"#
        );
        write_program(&self.root.path().join("bin/go"), &script);
    }

    pub(crate) fn remove_go(&self) {
        fs::remove_file(self.root.path().join("bin/go")).unwrap();
    }

    pub(crate) fn environment(&self) -> Environment {
        Environment {
            assets: None,
            path: self.root.path().join("bin").into(),
            go: self.root.path().join("no-go"),
            cache: self.cache(),
            needs_room: false,
        }
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    pub(crate) async fn prepare(&self) -> Result<Binaries, ToolchainError> {
        prepare(&self.environment(), &self.launcher, &Silent).await
    }

    /// What Go was asked to do, sorted, for some of it is done at once.
    pub(crate) fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.root.path().join("calls")).unwrap_or_default();
        let mut calls: Vec<String> = calls.lines().map(str::to_owned).collect();
        calls.sort();
        calls
    }

    /// Names of everything in the cache but logs and the lock.
    pub(crate) fn cached(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name != "lock" && Path::new(name).extension().is_none_or(|end| end != "log"));
        names.sort();
        names
    }
}

/// Keeps the sentences that it is told.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<String>>, pub(crate) tokio::sync::Notify);

impl Progress for Kept {
    fn report(&self, event: Event<'_>) {
        if let Event::Begun { what, .. } = event {
            self.0.lock().unwrap().push(what.to_owned());
            self.1.notify_one();
        }
    }
}

fn launcher(folder: &Path) -> Launcher {
    let marker = Marker { id: "toolchain-test".into(), folder: folder.into() };
    Launcher::new(folder.join("processes"), marker).unwrap()
}

/// By another process: a file that is open for writing here when another test forks could not be run for a moment.
fn write_program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let write = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
    assert!(Command::new("sh").args(["-c", write]).arg(path).arg(script).status().unwrap().success());
}
