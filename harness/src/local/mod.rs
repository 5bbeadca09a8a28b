//! Two local control planes: real etcd, kube-apiserver and kube-controller-manager as child processes.
//!
//! Each site owns one loopback address; nothing listens elsewhere. Each
//! site has a certificate authority and a ServiceAccount signing key of its own: what one site trusts means
//! nothing to the other. There is no kubelet and no scheduler; [`crate::agent`] runs the pods.
//!
//! | module | what it holds |
//! |---|---|
//! | [`pair`] | both sites together; start here |
//! | [`control_plane`] | one site's three programs: their start, their end |
//! | [`ports`] | free ports |
//! | [`identity`] | who a client is |
//! | [`pki`] | keys and certificates |
//! | [`kubeconfig`] | files that clients connect with |
//! | [`arguments`] | how the programs are run, and why so |
//! | [`bootstrap`] | objects that are there before any controller runs |
//! | [`audit`] | reading an API server's audit log |
//! | [`error`] | what can go wrong |

pub mod arguments;
pub mod audit;
pub mod bootstrap;
pub mod control_plane;
pub mod error;
mod folder;
pub mod identity;
pub mod kubeconfig;
pub mod pair;
pub mod pki;
pub mod ports;
mod readiness;

pub use control_plane::ControlPlane;
pub use error::LocalError;
pub use identity::{Identity, ServiceAccountName};
pub use pair::{LocalPair, Settings};
