//! See `properties/port.rs`.
#![no_main]

#[path = "../properties/port.rs"]
mod port;

libfuzzer_sys::fuzz_target!(|data: &[u8]| port::check(data));
