//! The programs of a control plane.

use std::fmt;

use super::pins;

/// A program of a control plane, in the order in which they are built.
///
/// etcd comes first because the far larger modules of Kubernetes can be fetched meanwhile; kubectl last because a
/// run does not need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The controllers.
    KubeControllerManager,
    /// The client, for people.
    Kubectl,
}

/// A pinned Go module that programs are built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Module {
    /// etcd.
    Etcd,
    /// Kubernetes.
    Kubernetes,
}

impl Program {
    /// All of them, in the order in which they are built.
    pub const ALL: [Self; 4] = [Self::Etcd, Self::KubeApiserver, Self::KubeControllerManager, Self::Kubectl];

    /// Its file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
        }
    }

    /// Whether a run needs it; kubectl is there for people only.
    pub fn needed(self) -> bool {
        self != Self::Kubectl
    }

    /// The module that it is built from.
    pub fn module(self) -> Module {
        match self {
            Self::Etcd => Module::Etcd,
            Self::KubeApiserver | Self::KubeControllerManager | Self::Kubectl => Module::Kubernetes,
        }
    }

    /// The Go package of its `main`.
    pub fn package(self) -> String {
        match self {
            Self::Etcd => pins::ETCD_MODULE.to_owned(),
            _ => format!("{}/cmd/{}", pins::KUBERNETES_MODULE, self.name()),
        }
    }

    /// The pinned version, without a `v`.
    pub fn version(self) -> &'static str {
        self.module().version()
    }

    /// What makes it print its version.
    pub fn version_args(self) -> &'static [&'static str] {
        match self {
            Self::Kubectl => &["version", "--client"],
            _ => &["--version"],
        }
    }

    /// The version in what it printed, without a `v`: `Kubernetes v1.36.3`, `etcd Version: 3.6.16`,
    /// `Client Version: v1.36.3`.
    pub fn version_in(self, output: &str) -> Option<&str> {
        let label = match self {
            Self::Etcd => "etcd Version: ",
            Self::KubeApiserver | Self::KubeControllerManager => "Kubernetes v",
            Self::Kubectl => "Client Version: v",
        };
        output.lines().find_map(|line| line.strip_prefix(label)).map(str::trim)
    }

    /// Whether a program of that version may be used: for Kubernetes exactly the pinned one, for etcd any patch
    /// release of the pinned minor version.
    pub fn accepts(self, version: &str) -> bool {
        match self.module() {
            Module::Kubernetes => version == self.version(),
            Module::Etcd => minor(version).is_some_and(|found| Some(found) == minor(self.version())),
        }
    }

    /// The versions that [`Program::accepts`], for people.
    pub fn accepted(self) -> String {
        match self.module() {
            Module::Kubernetes => self.version().to_owned(),
            Module::Etcd => format!("{}.x", minor(self.version()).unwrap_or(self.version())),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Module {
    /// Its name in file names and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// The pinned version, without a `v`.
    pub fn version(self) -> &'static str {
        match self {
            Self::Etcd => pins::etcd_version(),
            Self::Kubernetes => pins::kubernetes_version(),
        }
    }

    /// Its `go.mod` and `go.sum`.
    pub fn files(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Etcd => [("go.mod", pins::ETCD_MOD), ("go.sum", pins::ETCD_SUM)],
            Self::Kubernetes => [("go.mod", pins::KUBERNETES_MOD), ("go.sum", pins::KUBERNETES_SUM)],
        }
    }
}

fn minor(version: &str) -> Option<&str> {
    version.rsplit_once('.').map(|(minor, _patch)| minor)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Program::KubeApiserver, "Kubernetes v1.36.3\n", Some("1.36.3"))]
    #[case(Program::Etcd, "etcd Version: 3.6.16\nGit SHA: Not provided\n", Some("3.6.16"))]
    #[case(Program::Kubectl, "Client Version: v1.36.3\nKustomize Version: v5.8.1\n", Some("1.36.3"))]
    #[case(Program::KubeApiserver, "command not understood", None)]
    fn the_version_is_read_from_what_a_program_prints(
        #[case] program: Program,
        #[case] output: &str,
        #[case] version: Option<&str>,
    ) {
        assert_eq!(program.version_in(output), version);
    }

    #[rstest]
    #[case(Program::KubeApiserver, "1.36.3", true)]
    #[case(Program::KubeApiserver, "1.36.2", false)]
    #[case(Program::Etcd, "3.6.2", true)]
    #[case(Program::Etcd, "3.60.2", false)]
    #[case(Program::Etcd, "3.5.16", false)]
    #[case(Program::Etcd, "nonsense", false)]
    fn only_fitting_versions_are_accepted(
        #[case] program: Program,
        #[case] version: &str,
        #[case] accepted: bool,
    ) {
        assert_eq!(program.accepts(version), accepted);
    }
}
