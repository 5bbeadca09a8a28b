//! Garage as the system under test: everything that the engine does not know.
//!
//! | module | what it holds |
//! |---|---|
//! | [`system`] | the stage of a cell; start here |
//! | [`checks`] | what every history of a federation must satisfy |
//! | [`evidence`] | what is saved of a cell before it is taken down |
//! | [`facts`] | what audit logs tell of the operator's objects |
//! | [`role`] | the part that a site plays |
//! | [`mesh`] | a cell's own secret and tokens |
//! | [`hub`] | the client of the hub's control API |
//! | [`hub_fault`] | faults of the hub that end with what asked for them |
//! | [`objects`] | the operator's kinds, from outside |
//! | [`progress`] | the reconcile witness |
//! | [`metrics`] | what the operators' metrics say, into the history |
//! | [`admin`] | the harness's own reads of a node |

pub mod admin;
pub mod checks;
pub mod evidence;
pub mod facts;
pub mod hub;
pub mod hub_fault;
pub mod mesh;
pub mod metrics;
pub mod objects;
pub mod progress;
pub mod role;
pub mod runtime;
pub mod stage;
pub mod system;
