//! The program at work, on real control planes: faults, kills, interrupts, and runs beside each other.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod faults;
mod interrupted;
mod killed;
mod run;
mod secrets;
mod side_by_side;
