//! The layout model, rule by rule and case by case, without any mesh around it.
//!
//! The names of the tests carry the letters and numbers of the captures that the rules were observed in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod answers;
mod applying;
mod conflicts;
mod fixture;
mod laws;
mod merging;
mod retiring;
mod staging;
