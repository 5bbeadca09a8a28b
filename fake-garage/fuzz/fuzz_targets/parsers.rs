//! See `properties/parsers.rs`.
#![no_main]

#[path = "../properties/parsers.rs"]
mod parsers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| parsers::check(data));
