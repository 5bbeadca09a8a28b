//! A recording fake.
/// x
pub mod cli {
    /// x
    pub fn run(_: &[std::ffi::OsString]) -> u8 {
        1
    }
}
