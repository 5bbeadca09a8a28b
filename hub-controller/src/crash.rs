//! A process that dies at a point of its promotion: for test builds with the feature `crash-at-step`, and for nobody else.
//!
//! A promotion passes one point before and one after each of its steps. At the chosen one the process ends: nothing is
//! flushed, released or told to anybody.

/// A point; does not return from the one at which the process dies.
#[cfg(feature = "crash-at-step")]
pub(crate) fn point(name: impl FnOnce() -> String) {
    armed::point(name);
}

/// A point: nobody counts it in a build without the feature.
#[cfg(not(feature = "crash-at-step"))]
#[inline]
pub(crate) fn point(_: impl FnOnce() -> String) {}

#[cfg(feature = "crash-at-step")]
pub use armed::arm;

#[cfg(feature = "crash-at-step")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Exit code of a process that was killed (128 + SIGKILL).
    const KILLED: i32 = 137;

    static LAST: OnceLock<u64> = OnceLock::new();
    static POINTS: AtomicU64 = AtomicU64::new(0);

    /// The process dies at this point, counted from 1. Only the first call counts.
    pub fn arm(last: u64) {
        let _chosen = LAST.set(last);
    }

    pub(super) fn point(name: impl FnOnce() -> String) {
        let Some(last) = LAST.get() else { return };
        let number = POINTS.fetch_add(1, Ordering::SeqCst) + 1;
        if number == *last {
            eprintln!("hub-controller: crash-at-step: died at point {number}: {}", name());
            std::process::exit(KILLED);
        }
    }
}
