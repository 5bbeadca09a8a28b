//! Running pods without a kubelet.
//!
//! A local site has an API server and controllers, but nothing that would run a container. The agent stands in for
//! scheduler, kubelet and Service routing: it keeps one Node object, binds pods to it, asks a [`PodRuntime`] for
//! the address of a process that plays the pod, reports it running and ready, and ends both together. Services
//! have no data path; their names and addresses go to [`Routes`].
//!
//! Everything follows watches: a pod that lacks a Secret is looked at again when that Secret appears.
//!
//! | module | what it holds |
//! |---|---|
//! | [`both_sites`] | the agent itself; start here |
//! | [`runtime`] | what plays the pods |
//! | [`pods`] | one pod, from binding to its end |
//! | [`running`] | which pods have a process, whatever the watch missed |
//! | [`references`] | the Secrets and ConfigMaps that a pod needs |
//! | [`container`] | environment and files, as a kubelet would give them |
//! | [`status`] | what is reported about pods |
//! | [`node`] | the Node object |
//! | [`routes`] | names and addresses of Services |
//! | `publisher` | watching what routes are made of |

pub mod both_sites;
pub mod container;
pub mod node;
pub mod pods;
mod publisher;
pub mod references;
pub mod routes;
pub mod running;
pub mod runtime;
pub mod status;

pub use both_sites::{Agent, AgentError};
pub use routes::{Names, Routes};
pub use runtime::{PodName, PodRuntime, PodStart, RuntimeError};
