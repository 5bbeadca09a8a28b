//! What can go wrong before a control plane can start.

use std::{fmt, io, path::PathBuf, process::ExitStatus};

use super::{lookup::Skipped, pins, program::Program};
use crate::process::LaunchError;

/// Why there are no programs to start a control plane with. None is worth a retry without a change.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// Neither `ONEWRITER_CACHE_DIR` nor `XDG_CACHE_HOME` nor `HOME` says where the cache is.
    #[error("no cache folder: set ONEWRITER_CACHE_DIR (or HOME) to an absolute path")]
    NoCacheFolder,
    /// Programs are missing, and so is Go.
    #[error(
        "{missing} found nowhere, and there is no Go to build {them} with{skipped}\n{ways}",
        missing = List(missing), them = if missing.len() == 1 { "it" } else { "them" },
        skipped = Reasons(skipped), ways = ThreeWays
    )]
    NoGo {
        /// What is missing.
        missing: Vec<Program>,
        /// What was found and not taken.
        skipped: Vec<Skipped>,
    },
    /// Programs are missing, and Go is older than the pinned modules need.
    #[error(
        "{missing} found nowhere, and {} is Go {version}, too old to build{skipped}\n{ways}",
        go.display(), missing = List(missing), skipped = Reasons(skipped), ways = ThreeWays
    )]
    GoTooOld {
        /// The Go that was found.
        go: PathBuf,
        /// Its version.
        version: String,
        /// What is missing.
        missing: Vec<Program>,
        /// What was found and not taken.
        skipped: Vec<Skipped>,
    },
    /// Go does not do what Go does.
    #[error("{} does not run as Go", go.display())]
    GoBroken {
        /// The Go that was found.
        go: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Too little free space to begin.
    #[error(
        "no space to build the control plane: {} has {free} MB free, {needed} MB are needed; \
         free some, or set ONEWRITER_CACHE_DIR, GOCACHE and GOMODCACHE to a larger disk",
        folder.display()
    )]
    Disk {
        /// The folder whose disk is too full.
        folder: PathBuf,
        /// Free space in megabytes.
        free: u64,
        /// Needed space in megabytes.
        needed: u64,
    },
    /// The cache cannot be used.
    #[error("cannot {action} {}", path.display())]
    Cache {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Go could not be started.
    #[error("cannot start Go to {step}")]
    Start {
        /// What it was to do.
        step: String,
        /// Why.
        source: LaunchError,
    },
    /// The disk filled up during the build.
    #[error(
        "no space left to {step}: free some (a first build takes 4.5 GB), or set ONEWRITER_CACHE_DIR, GOCACHE \
         and GOMODCACHE to a larger disk; log: {}\n{tail}",
        log.display()
    )]
    DiskFull {
        /// What was being done.
        step: String,
        /// The log.
        log: PathBuf,
        /// Its end.
        tail: String,
    },
    /// Go failed.
    #[error("cannot {step}: Go ended with {status}; log: {}\n{tail}", log.display())]
    Build {
        /// What was being done.
        step: String,
        /// How Go ended.
        status: ExitStatus,
        /// The log.
        log: PathBuf,
        /// Its end.
        tail: String,
    },
}

impl ToolchainError {
    pub(super) fn cache(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Cache { action, path, source }
    }
}

struct List<'a>(&'a [Program]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, program) in self.0.iter().enumerate() {
            let separator = match index {
                0 => "",
                _ if index + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{separator}{program}")?;
        }
        f.write_str(if self.0.len() == 1 { " was" } else { " were" })
    }
}

struct Reasons<'a>(&'a [Skipped]);

impl fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|skipped| write!(f, "\n  not used: {skipped}"))
    }
}

struct ThreeWays;

impl fmt::Display for ThreeWays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let go = pins::go_version();
        let (kubernetes, etcd) = (Program::KubeApiserver.accepted(), Program::Etcd.accepted());
        writeln!(f, "There are three ways out:")?;
        writeln!(f, "  1. install Go {go} or newer (https://go.dev/dl) and see that `go` is in PATH;")?;
        writeln!(
            f,
            "  2. set KUBEBUILDER_ASSETS to a folder with kube-apiserver and kube-controller-manager {kubernetes} \
             and etcd {etcd};"
        )?;
        write!(f, "  3. put these programs into a folder of PATH.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::lookup::Reason;

    #[test]
    fn without_go_the_error_says_the_three_ways_out_and_what_was_not_used() {
        let skipped = Skipped {
            program: Program::KubeApiserver,
            path: "/opt/k8s/kube-apiserver".into(),
            reason: Reason::Version { found: "1.35.0".into(), accepted: "1.36.3".into() },
        };
        let error = ToolchainError::NoGo {
            missing: vec![Program::KubeApiserver, Program::KubeControllerManager],
            skipped: vec![skipped],
        };
        insta::assert_snapshot!(error, @r"
        kube-apiserver and kube-controller-manager were found nowhere, and there is no Go to build them with
          not used: /opt/k8s/kube-apiserver is version 1.35.0, 1.36.3 is needed
        There are three ways out:
          1. install Go 1.26.0 or newer (https://go.dev/dl) and see that `go` is in PATH;
          2. set KUBEBUILDER_ASSETS to a folder with kube-apiserver and kube-controller-manager 1.36.3 and etcd 3.6.x;
          3. put these programs into a folder of PATH.
        ");
    }
}
