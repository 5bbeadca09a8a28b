//! See `properties/admin.rs`.
#![no_main]

#[path = "../properties/admin.rs"]
mod admin;

libfuzzer_sys::fuzz_target!(|data: &[u8]| admin::check(data));
