//! What a pod runs in place of Garage: `garage server`, a forwarder to the hub.
//!
//! It reads `garage.toml` and the environment as Garage does, starts its node in the hub, listens where Garage would,
//! and passes every connection to its admin port on to the hub as it is. It ends when it is told to, when its node
//! ends, and when the hub does.
//!
//! | module | what it holds |
//! |---|---|
//! | [`configuration`] | `garage.toml` |
//! | [`secrets`] | where secrets come from |
//! | [`surroundings`] | what the pod's environment says about it and the hub |
//! | [`server`] | the process, from start to end |
//! | [`control`] | the hub's control API, as far as it is needed here |
//! | [`forward`] | connections to the admin port |
//! | [`ports`] | the other ports, which only accept |

pub mod configuration;
pub mod control;
pub mod error;
pub mod forward;
pub mod ports;
pub mod secrets;
pub mod server;
pub mod surroundings;

pub use configuration::{Configuration, ConfigurationError};
pub use error::NodeError;
pub use secrets::{SecretError, SecretOptions, Secrets};
pub use server::run;
pub use surroundings::Surroundings;
