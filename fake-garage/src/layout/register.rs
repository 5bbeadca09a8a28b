//! A value whose latest write wins.

/// A last-writer-wins register: a value with the time it was written.
///
/// Times are milliseconds since 1970 on the clock of the node that wrote, pushed forward where a write has seen a
/// later one. Two values of the same time are decided by their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register<T> {
    /// When the value was written, in milliseconds.
    pub at: u64,
    /// The value.
    pub value: T,
}

impl<T> Register<T> {
    /// `value`, written at `at`.
    pub const fn new(at: u64, value: T) -> Self {
        Self { at, value }
    }

    /// The time a write at `now` gets that has seen this register: at least one more than the register's.
    #[must_use]
    pub fn next_time(&self, now: u64) -> u64 {
        now.max(self.at.saturating_add(1))
    }
}

impl<T: Ord + Clone> Register<T> {
    /// Takes over the other write if it is later (or as late and larger). Returns whether anything changed.
    pub fn join(&mut self, other: &Self) -> bool {
        let newer = other.at > self.at || (other.at == self.at && other.value > self.value);
        if newer {
            self.clone_from(other);
        }
        newer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_write_wins_even_if_its_value_is_smaller() {
        let mut register = Register::new(1, "b");
        assert!(register.join(&Register::new(2, "a")));
        assert_eq!(register.value, "a");
    }

    #[test]
    fn of_two_writes_of_one_millisecond_the_larger_value_wins() {
        let mut register = Register::new(1, "b");
        assert!(!register.join(&Register::new(1, "a")));
        assert!(register.join(&Register::new(1, "c")));
    }

    #[test]
    fn case_s1_a_write_that_has_seen_one_from_the_future_comes_after_it() {
        assert_eq!(Register::new(90_000, ()).next_time(30_000), 90_001);
        assert_eq!(Register::new(10_000, ()).next_time(30_000), 30_000);
    }
}
