//! What can go wrong with a local pair.

use std::{io, net::Ipv4Addr, path::PathBuf, process::ExitStatus, time::Duration};

use crate::{process::LaunchError, site::Site};

/// Why a local pair does not start, or has ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// A file or folder.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Keys and certificates.
    #[error("cannot make the certificates of {site}")]
    Certificates {
        /// The site.
        site: Site,
        /// Why.
        source: rcgen::Error,
    },
    /// A user whose name does not fit into a certificate.
    #[error(
        "the user {user:?} does not fit into a certificate, which holds 64 characters; shorten the ServiceAccount's \
         name or namespace"
    )]
    UserTooLong {
        /// The user.
        user: String,
    },
    /// No port can be had.
    #[error("no free port on {address}, the address of {site}")]
    Ports {
        /// The site.
        site: Site,
        /// Its address.
        address: Ipv4Addr,
        /// Why.
        source: io::Error,
    },
    /// Ports were taken by somebody else again and again.
    #[error(
        "ports on {address}, the address of {site}, were taken by another program {attempts} times; see who listens \
         there with `ss -ltnp`, and whether another run uses the same addresses"
    )]
    PortsTaken {
        /// The site.
        site: Site,
        /// Its address.
        address: Ipv4Addr,
        /// How often it was tried.
        attempts: usize,
    },
    /// A program was not started.
    #[error("cannot start the control plane of {site}")]
    Launch {
        /// The site.
        site: Site,
        /// Why.
        source: LaunchError,
    },
    /// A program ended by itself.
    #[error("{program} of {site} ended by itself with {status}; log: {}\n{tail}", log.display())]
    Ended {
        /// The site.
        site: Site,
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// Its log.
        log: PathBuf,
        /// The log's end.
        tail: String,
    },
    /// A program runs and does not do its work.
    #[error(
        "{site} did not come up: {awaited} not within {} s ({last}); log: {}\n{tail}",
        waited.as_secs(), log.display()
    )]
    NotReady {
        /// The site.
        site: Site,
        /// What was waited for.
        awaited: &'static str,
        /// How long.
        waited: Duration,
        /// What was seen last.
        last: String,
        /// Log of the program in question.
        log: PathBuf,
        /// The log's end.
        tail: String,
    },
    /// A kubeconfig cannot be written or read.
    #[error("cannot make the kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object could not be made before the controllers were started.
    #[error("cannot create {object} on {site}")]
    Bootstrap {
        /// The site.
        site: Site,
        /// The object: kind and name.
        object: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The ServiceAccount whose return tells that the controllers work again cannot be taken away.
    #[error("cannot delete the ServiceAccount default on {site}, which the controllers are to create again")]
    Account {
        /// The site.
        site: Site,
        /// Why.
        source: Box<kube::Error>,
    },
    /// An audit log cannot be read.
    #[error("the audit log {} is broken at line {line}", path.display())]
    Audit {
        /// The log.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}
