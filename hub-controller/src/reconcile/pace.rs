//! How soon a reconcile that failed is tried again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The first delay.
const LEAST: Duration = Duration::from_millis(100);
/// The longest delay.
const MOST: Duration = Duration::from_secs(30);

/// How often each object has failed in a row.
#[derive(Debug, Default)]
pub struct Paces(Mutex<BTreeMap<String, u32>>);

impl Paces {
    /// It succeeded.
    pub fn succeeded(&self, object: &str) {
        self.lock().remove(object);
    }

    /// It failed once more; answers how soon to try again.
    pub fn failed(&self, object: &str) -> Duration {
        let failures = {
            let mut paces = self.lock();
            let failures = paces.entry(object.to_owned()).or_default();
            *failures = failures.saturating_add(1);
            *failures
        };
        delay(failures).mul_f64(rand::random_range(0.5..=1.0))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn delay(failures: u32) -> Duration {
    LEAST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(MOST)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Paces, delay};

    #[test]
    fn delays_double_up_to_half_a_minute() {
        let delays = [1, 2, 5, 9, 40].map(delay);
        assert_eq!(delays.map(|delay| delay.as_millis()), [100, 200, 1_600, 25_600, 30_000]);
    }

    #[test]
    fn a_success_forgets_failures() {
        let paces = Paces::default();
        for _ in 0..20 {
            paces.failed("Cluster ns/c");
        }
        paces.succeeded("Cluster ns/c");
        assert!(paces.failed("Cluster ns/c") <= Duration::from_millis(100));
    }
}
