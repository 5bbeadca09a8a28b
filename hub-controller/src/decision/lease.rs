//! Whether a Lease may be taken, and what is written into it.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

/// Who holds a Lease, from the view of one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Nobody,
    /// The candidate itself, perhaps since before it was restarted: it resumes (design record, decision 8).
    Oneself,
    /// Somebody else.
    Stranger(String),
}

/// Who holds this Lease.
pub fn holder(spec: &LeaseSpec, identity: &str) -> Holder {
    match spec.holder_identity.as_deref().unwrap_or_default() {
        "" => Holder::Nobody,
        name if name == identity => Holder::Oneself,
        name => Holder::Stranger(name.to_owned()),
    }
}

/// How long this Lease says that it lasts.
pub fn duration(spec: &LeaseSpec) -> Duration {
    Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0))
}

/// A stranger's Lease, and since when it has not changed. Judged by when the change was seen here, never by the
/// stranger's clock.
#[derive(Clone, Debug, Default)]
pub struct Strangers {
    observed: Option<(LeaseSpec, Instant)>,
}

impl Strangers {
    /// Whether the Lease may be taken at `now`: nobody holds it, the candidate does, or it was not renewed for as long as
    /// it says that it lasts.
    pub fn may_take(&mut self, spec: &LeaseSpec, identity: &str, now: Instant) -> bool {
        if !matches!(holder(spec, identity), Holder::Stranger(_)) {
            self.observed = None;
            return true;
        }
        let since = match &self.observed {
            Some((seen, since)) if seen == spec => *since,
            _ => {
                self.observed = Some((spec.clone(), now));
                now
            }
        };
        now.saturating_duration_since(since) >= duration(spec)
    }
}

/// The Lease as its holder writes it.
pub fn claim(before: &LeaseSpec, identity: &str, lasts: Duration, now: Timestamp) -> LeaseSpec {
    let same = before.holder_identity.as_deref() == Some(identity);
    let transitions = before.lease_transitions.unwrap_or(0);
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(i32::try_from(lasts.as_secs().max(1)).unwrap_or(i32::MAX)),
        acquire_time: if same && before.acquire_time.is_some() {
            before.acquire_time.clone()
        } else {
            Some(MicroTime(now))
        },
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(if same { transitions } else { transitions.saturating_add(1) }),
        ..LeaseSpec::default()
    }
}

/// The Lease as nobody's.
pub fn unheld(before: &LeaseSpec) -> LeaseSpec {
    LeaseSpec { holder_identity: None, acquire_time: None, renew_time: None, ..before.clone() }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::jiff::Timestamp;

    use super::{Holder, Strangers, claim, holder, unheld};

    const LASTS: Duration = Duration::from_secs(15);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_renewal_keeps_when_the_lease_was_acquired() {
        let first = claim(&LeaseSpec::default(), "a", LASTS, at(10));
        let second = claim(&first, "a", LASTS, at(20));
        assert_eq!((second.acquire_time, second.lease_transitions), (first.acquire_time, Some(1)));
    }

    #[test]
    fn another_holder_acquires_it_anew() {
        let first = claim(&LeaseSpec::default(), "a", LASTS, at(10));
        let second = claim(&first, "b", LASTS, at(20));
        assert_ne!(second.acquire_time, first.acquire_time);
        assert_eq!(second.lease_transitions, Some(2));
    }

    #[test]
    fn a_strangers_lease_is_taken_once_it_was_seen_unchanged_for_as_long_as_it_lasts() {
        let (start, lease) = (Instant::now(), claim(&LeaseSpec::default(), "stranger", LASTS, at(10)));
        let mut strangers = Strangers::default();
        assert!(!strangers.may_take(&lease, "a", start));
        assert!(!strangers.may_take(&lease, "a", start + Duration::from_secs(14)));
        let renewed = claim(&lease, "stranger", LASTS, at(11));
        assert!(!strangers.may_take(&renewed, "a", start + LASTS));
        assert!(strangers.may_take(&renewed, "a", start + LASTS + LASTS));
    }

    #[test]
    fn its_own_lease_and_nobodys_are_taken_at_once() {
        let own = claim(&LeaseSpec::default(), "a", LASTS, at(10));
        assert!(Strangers::default().may_take(&own, "a", Instant::now()));
        assert!(Strangers::default().may_take(&unheld(&own), "b", Instant::now()));
        assert_eq!(holder(&unheld(&own), "a"), Holder::Nobody);
    }
}
