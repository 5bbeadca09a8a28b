//! Building programs with Go.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    cache,
    error::ToolchainError,
    go::{self, Go},
    program::{Module, Program},
};
use crate::{
    process::{Launch, LaunchError, Launcher},
    progress::{self, Progress},
};

/// How many lines of a log an error shows.
const TAIL: usize = 20;

/// What Go, the linker and the kernel say when a disk is full.
const DISK_FULL: &str = "no space left on device";

/// Builds programs into a cache folder whose lock is held.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    pub(super) go: &'a Go,
    pub(super) launcher: &'a Launcher,
    pub(super) cache: &'a Path,
    /// Emptied and removed by its owner, whatever happens here.
    pub(super) work: &'a Path,
}

/// Stops a Go, with the compilers that it started, when nobody waits for it any more.
struct StopWhenDropped<'a> {
    launcher: &'a Launcher,
    name: String,
}

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        // By name, for it may have been started by a launch that was itself dropped.
        if let Some(child) = self.launcher.children().into_iter().find(|child| child.name() == self.name) {
            tokio::spawn(async move { child.stop(Duration::ZERO).await });
        }
    }
}

impl Builder<'_> {
    /// Builds all of `programs`, given in their fixed order, and installs each as soon as it is whole.
    ///
    /// One compiler run at a time, for each uses all cores; but Kubernetes' modules are fetched while etcd is
    /// compiled, and what Kubernetes' programs have in common is compiled once.
    pub(super) async fn build_all(
        &self,
        programs: &[Program],
        progress: &dyn Progress,
    ) -> Result<(), ToolchainError> {
        let (first, others): (Vec<Program>, Vec<Program>) =
            programs.iter().partition(|program| program.module() == Module::Etcd);
        futures::try_join!(
            self.build_in_turn(&first, others.first().copied(), progress),
            self.fetch_if(!others.is_empty(), progress),
        )?;
        self.build_in_turn(&others, None, progress).await
    }

    async fn build_in_turn(
        &self,
        programs: &[Program],
        then: Option<Program>,
        progress: &dyn Progress,
    ) -> Result<(), ToolchainError> {
        for (index, program) in programs.iter().enumerate() {
            let what = format!("build {program} {}", program.version());
            let next = programs.get(index + 1).copied().or(then).map(|next| format!("build {next}"));
            progress::step(progress, &what, next.as_deref(), self.build(*program, &what)).await?;
        }
        Ok(())
    }

    async fn fetch_if(&self, wanted: bool, progress: &dyn Progress) -> Result<(), ToolchainError> {
        if !wanted {
            return Ok(());
        }
        let module = Module::Kubernetes;
        let what = format!("fetch the modules of Kubernetes {}", module.version());
        let fetch = async {
            let folder = self.module_folder(module)?;
            let args = vec!["mod".into(), "download".into(), in_folder(&folder)];
            self.run("fetch-kubernetes", &what, args).await
        };
        progress::step(progress, &what, None, fetch).await
    }

    async fn build(&self, program: Program, what: &str) -> Result<(), ToolchainError> {
        let folder = self.module_folder(program.module())?;
        let built = self.work.join(program.name());
        let mut output = OsString::from("-o=");
        output.push(&built);
        let args = vec![
            "build".into(),
            in_folder(&folder),
            "-trimpath".into(),
            format!("-ldflags={}", linker_flags(program)).into(),
            output,
            program.package().into(),
        ];
        self.run(&format!("build-{program}"), what, args).await?;
        cache::install(&built, self.cache, program)?;
        Ok(())
    }

    /// Runs Go to its end.
    async fn run(&self, name: &str, what: &str, args: Vec<OsString>) -> Result<(), ToolchainError> {
        let log = self.cache.join(format!("{name}.log"));
        // The log of an earlier attempt would be told as this one's.
        match fs::remove_file(&log) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(ToolchainError::cache("replace", log)(error));
            }
            _ => {}
        }
        let launch = Launch {
            name: format!("go-{name}"),
            program: self.go.path.clone(),
            args,
            env: go::environment(self.work),
            log: log.clone(),
        };
        let failed = |source: LaunchError| ToolchainError::Start { step: what.to_owned(), source };
        let _stop = StopWhenDropped { launcher: self.launcher, name: launch.name.clone() };
        let go = self.launcher.launch(launch).await.map_err(failed)?;
        let status = go.exited().await;
        if status.success() {
            return Ok(());
        }
        let (step, tail) = (what.to_owned(), go.log_tail(TAIL));
        Err(if tail.contains(DISK_FULL) {
            ToolchainError::DiskFull { step, log, tail }
        } else {
            ToolchainError::Build { step, status, log, tail }
        })
    }

    /// A folder with the module's files, as Go wants it.
    fn module_folder(&self, module: Module) -> Result<PathBuf, ToolchainError> {
        let folder = self.work.join(format!("module-{}", module.name()));
        fs::create_dir_all(&folder).map_err(ToolchainError::cache("make", &folder))?;
        for (name, text) in module.files() {
            let path = folder.join(name);
            fs::write(&path, text).map_err(ToolchainError::cache("write", &path))?;
        }
        Ok(folder)
    }
}

fn in_folder(folder: &Path) -> OsString {
    let mut flag = OsString::from("-C=");
    flag.push(folder);
    flag
}

/// Without symbol tables, and with the version that programs report and API discovery answers.
fn linker_flags(program: Program) -> String {
    let strip = "-s -w".to_owned();
    if program.module() != Module::Kubernetes {
        return strip;
    }
    let version = program.version();
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let stamp = |package: &str| {
        format!(
            "-X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} \
             -X {package}.gitTreeState=clean"
        )
    };
    [strip, stamp("k8s.io/component-base/version"), stamp("k8s.io/client-go/pkg/version")].join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_programs_are_stamped_with_their_version() {
        let flags = linker_flags(Program::KubeApiserver);
        assert!(flags.contains("-X k8s.io/component-base/version.gitVersion=v1.36.3 "), "{flags}");
        assert!(flags.contains("-X k8s.io/client-go/pkg/version.gitMinor=36 "), "{flags}");
    }

    #[test]
    fn etcd_knows_its_version_by_itself() {
        assert_eq!(linker_flags(Program::Etcd), "-s -w");
    }
}
