//! When the keys of a slice are made anew (hub contract, section 2, "`VpnKeyRotation`").

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The keys are new: their times are set.
    First,
    /// The keys have expired: they are made anew.
    Rotation,
    /// Nothing until then.
    In(Duration),
}

/// When keys made at `created` expire: the interval less one twenty-fourth of a day.
///
/// `day` is 24 hours but in tests, which have no month to wait.
pub fn expiry(created: Timestamp, interval_days: u8, day: Duration) -> Timestamp {
    let lasts = day.saturating_mul(u32::from(interval_days)).saturating_sub(day / 24);
    let lasts = SignedDuration::try_from(lasts).unwrap_or(SignedDuration::MAX);
    created.saturating_add(lasts).unwrap_or(Timestamp::MAX)
}

/// What is due at `now` for keys that expire then.
pub fn due(expires: Option<Timestamp>, now: Timestamp) -> Due {
    let Some(expires) = expires else { return Due::First };
    if expires <= now {
        return Due::Rotation;
    }
    Due::In(expires.duration_since(now).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::jiff::Timestamp;

    use super::{Due, due, expiry};

    #[test]
    fn keys_expire_an_hour_before_their_last_day_ends() {
        let created = Timestamp::from_second(0).unwrap();
        let expires = expiry(created, 30, Duration::from_hours(24));
        assert_eq!(expires.as_second(), 30 * 86_400 - 3_600);
        assert_eq!(due(Some(expires), created), Due::In(Duration::from_hours(30 * 24 - 1)));
        assert_eq!(due(Some(expires), expires), Due::Rotation);
        assert_eq!(due(None, created), Due::First);
    }
}
