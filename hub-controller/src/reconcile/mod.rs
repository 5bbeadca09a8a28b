//! The reconcilers of the nine kinds (hub contract, section 2), reduced as its section 4 says.
//!
//! | module | what it holds |
//! |---|---|
//! | [`run`] | watches and queues; the fence before every reconcile |
//! | [`requeue`] | reconciling everything anew |
//! | [`pass`] | what one reconcile may read, and, with its permit, write |
//! | [`adoption`] | finalizers, and what a mirrored object leaves to be done |
//! | [`accounts`] | accounts of users and workers |
//! | the others | one kind each |

pub mod accounts;
pub mod adoption;
pub mod cluster;
pub mod error;
pub mod pace;
pub mod pass;
pub mod project;
pub mod requeue;
pub mod run;
pub mod service_export_config;
pub mod slice_config;
pub mod slice_qos_config;
pub mod vpn_key_rotation;
pub mod watch_backoff;
pub mod worker_service_import;
pub mod worker_slice_config;
pub mod worker_slice_gateway;
