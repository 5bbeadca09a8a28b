//! The two clocks of an event: wall time for people, monotonic time for the order.

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// One moment on both clocks.
///
/// The monotonic clock is the kernel's (`CLOCK_MONOTONIC`, nanoseconds since boot), so moments taken by different
/// processes of one machine can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Wall time, UTC.
    pub at: Timestamp,
    /// Nanoseconds on the machine's monotonic clock.
    pub mono_ns: u64,
}

impl Moment {
    /// This moment.
    #[must_use]
    pub fn now() -> Self {
        let mono = clock_gettime(ClockId::Monotonic);
        let secs = u64::try_from(mono.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(mono.tv_nsec).unwrap_or(0);
        Self { at: Timestamp::now(), mono_ns: secs.saturating_mul(1_000_000_000).saturating_add(nanos) }
    }

    /// The moment at which the wall clock showed `at`, judged by the offset between the clocks in `self`.
    ///
    /// Used for sources that know only wall time, such as the API server's audit log. Exact as long as the wall
    /// clock was not set in between.
    #[must_use]
    pub fn of_wall(&self, at: Timestamp) -> Self {
        let distance = self.at.as_nanosecond() - at.as_nanosecond();
        let mono = i128::from(self.mono_ns) - distance;
        Self { at, mono_ns: u64::try_from(mono.max(0)).unwrap_or(u64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan as _;

    #[test]
    fn a_wall_time_before_now_lies_as_far_back_on_the_monotonic_clock() {
        let now = Moment { at: Timestamp::from_second(1_000).unwrap(), mono_ns: 5_000_000_000 };
        let earlier = now.of_wall(now.at - 2.seconds());
        assert_eq!(earlier.mono_ns, 3_000_000_000);
    }

    #[test]
    fn a_wall_time_before_boot_is_clamped_to_boot() {
        let now = Moment { at: Timestamp::from_second(1_000).unwrap(), mono_ns: 1 };
        assert_eq!(now.of_wall(Timestamp::from_second(10).unwrap()).mono_ns, 0);
    }
}
