//! Decisions as plain functions over values: no cluster, no clock, no network.

pub mod admission;
pub mod assignment;
pub mod awaiting;
pub mod cadence;
pub mod cluster_state;
pub mod conversion;
pub mod drain_proof;
pub mod drift;
pub mod factor_migration;
pub mod foreign_writer;
pub mod identity_change;
pub mod import;
pub mod mesh;
pub mod mutation;
pub mod node_rules;
pub mod node_state;
pub mod operations;
pub mod ownership;
pub mod rollout;
pub mod spec_rules;
pub mod tombstones;
