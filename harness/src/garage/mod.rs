//! Garage as the system under test: everything that the engine does not know.

pub mod checks;
pub mod role;
