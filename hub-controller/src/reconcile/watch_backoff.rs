//! How soon broken watches are started again.

use std::time::Duration;

use kube::runtime::utils::Backoff;

/// The first delay.
const LEAST: Duration = Duration::from_millis(100);
/// The longest delay.
const MOST: Duration = Duration::from_secs(1);

/// Delays between attempts to start a watch again: doubling, at most a second, with jitter.
///
/// All watches of a controller share one delay, and each has to fail for itself when the API server restarts (refused,
/// forbidden until its roles are read, expired): with the library's 30 seconds the last of them is back after minutes.
#[derive(Debug, Default)]
pub struct WatchBackoff {
    failures: u32,
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = LEAST.saturating_mul(2_u32.saturating_pow(self.failures)).min(MOST);
        self.failures = self.failures.saturating_add(1);
        Some(delay.mul_f64(rand::random_range(0.5..=1.0)))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST, MOST, WatchBackoff};
    use kube::runtime::utils::Backoff;

    #[test]
    fn delays_grow_to_a_second_and_begin_anew_after_a_success() {
        let mut backoff = WatchBackoff::default();
        let delays: Vec<_> = backoff.by_ref().take(40).collect();
        assert!(delays[0] <= LEAST && delays.iter().all(|delay| *delay <= MOST), "{delays:?}");
        assert!(delays[39] >= MOST / 2);
        backoff.reset();
        assert!(backoff.next().unwrap() <= LEAST);
    }
}
