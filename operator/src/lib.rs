//! The reference operator: one layout writer in a Garage federation.
