//! Time in a mesh.

use std::time::Duration;

/// A moment, as the time since the mesh began.
///
/// Whoever drives the mesh decides what it means: the hub takes the machine's monotonic clock, tests and replays
/// count on their own.
pub type Time = Duration;

/// What the wall clock shows, for a mesh that began at `origin` (milliseconds since 1970) and a node whose clock is
/// `offset` milliseconds ahead.
#[must_use]
pub fn wall_clock(origin: u64, now: Time, offset: i64) -> u64 {
    let elapsed = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    origin.saturating_add(elapsed).saturating_add_signed(offset)
}

/// The first moment after `now` on the grid of `period` that runs through `start`.
#[must_use]
pub(super) fn next_beat(start: Time, period: Duration, now: Time) -> Time {
    let period_ns = period.as_nanos().max(1);
    let beats = now.saturating_sub(start).as_nanos() / period_ns + 1;
    start + Duration::from_nanos(u64::try_from(beats * period_ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_never_now() {
        let (start, period) = (Duration::from_millis(200), Duration::from_secs(1));
        assert_eq!(next_beat(start, period, Duration::from_millis(1199)), Duration::from_millis(1200));
        assert_eq!(next_beat(start, period, Duration::from_millis(1200)), Duration::from_millis(2200));
    }
}
