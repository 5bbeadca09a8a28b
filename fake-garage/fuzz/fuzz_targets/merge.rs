//! See `properties/merge.rs`.
#![no_main]

#[path = "../properties/merge.rs"]
mod merge;

libfuzzer_sys::fuzz_target!(|data: &[u8]| merge::check(data));
