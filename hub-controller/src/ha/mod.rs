//! High availability: two hubs, of which one may write (design record).
//!
//! | module | what it does |
//! |---|---|
//! | [`lease`] | reading and writing Leases |
//! | [`elector`] | holding the own Lease, and the leadership with it |
//! | [`remote`] | the way to the Active |
//! | [`watcher`] | looking at the Active's Lease |
//! | [`mirror`] | copying the Active's state |
//! | [`inspection`] | what a Standby finds on its own API server |
//! | [`standby`] | the life of a Standby: mirror, watch, be promoted |
//! | [`promotion`] | one attempt to be promoted |
//! | [`publisher`] | declaring the hub on every `Cluster` |
//! | [`events`] | Events about leadership |

pub mod elector;
pub mod events;
pub mod inspection;
pub mod lease;
pub mod mirror;
pub mod promotion;
pub mod publisher;
pub mod remote;
pub mod standby;
pub mod watcher;
