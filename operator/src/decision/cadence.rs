//! When to look again where no watch can tell: Garage has none (operator contract §5, "Requeues").

use std::time::Duration;

/// The waiting periods.
#[derive(Clone, Copy, Debug)]
pub struct Cadence {
    /// While something is under way that other nodes or sites finish in seconds.
    pub pending: Duration,
    /// After an error.
    pub error: Duration,
    /// While Garage is not healthy.
    pub unhealthy: Duration,
    /// After something has been pending for long.
    pub short: Duration,
    /// When everything is settled.
    pub long: Duration,
}

impl Default for Cadence {
    fn default() -> Self {
        Self {
            pending: Duration::from_secs(1),
            error: Duration::from_secs(30),
            unhealthy: Duration::from_secs(10),
            short: Duration::from_mins(1),
            long: Duration::from_mins(5),
        }
    }
}

/// How long the fast pace is kept.
const FAST: Duration = Duration::from_mins(2);
/// How long the middle pace is kept.
const MIDDLE: Duration = Duration::from_mins(15);

impl Cadence {
    /// When to look again at something that has been pending for `age`: often at first, rarely later.
    pub fn while_pending(&self, age: Duration) -> Duration {
        if age < FAST {
            self.pending
        } else if age < MIDDLE {
            self.unhealthy.max(self.pending)
        } else {
            self.short.max(self.pending)
        }
    }

    /// The wait after the n-th failure in a row (from 1), doubled each time up to the error period.
    pub fn after_failures(&self, failures: u32) -> Duration {
        let factor = 2_u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.pending.saturating_mul(factor).min(self.error.max(self.pending))
    }
}

#[cfg(test)]
mod tests {
    use super::Cadence;
    use rstest::rstest;
    use std::time::Duration;

    #[rstest]
    #[case(0, 1)]
    #[case(119, 1)]
    #[case(120, 10)]
    #[case(900, 60)]
    fn pending_work_is_looked_at_less_often_with_age(#[case] age: u64, #[case] wait: u64) {
        assert_eq!(Cadence::default().while_pending(Duration::from_secs(age)), Duration::from_secs(wait));
    }

    #[rstest]
    #[case(1, 1)]
    #[case(3, 4)]
    #[case(40, 30)]
    fn failures_double_the_wait_up_to_the_error_period(#[case] failures: u32, #[case] wait: u64) {
        assert_eq!(Cadence::default().after_failures(failures), Duration::from_secs(wait));
    }
}
