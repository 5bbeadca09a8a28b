//! A running pair of sites, as its clients see it.

pub mod description;

pub use description::{HubDescription, OperatorDescription, PairDescription, SiteDescription};
