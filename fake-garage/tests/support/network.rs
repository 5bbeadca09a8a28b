//! Loopback addresses that no other test has.

use std::sync::atomic::{AtomicU32, Ordering};

/// Test processes run side by side: each takes networks of its own, `127.HIGH.LOW.0/24`, from its process number.
pub(crate) fn network() -> [u8; 2] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let place = std::process::id().wrapping_mul(31).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
    let [.., high, low] = place.to_be_bytes();
    [16 + high % 200, low]
}
