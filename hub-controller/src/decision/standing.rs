//! What a hub that starts as Standby may do with what it finds on its own API server (design record, decision 8).
//!
//! A recovered hub joins again only after a wipe. One that was not wiped has a Lease of its own, or objects that no
//! mirror made: it must not mirror, for its state and the Active's would be mixed; nor may it ever be promoted.

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The own Lease, if somebody holds it.
    pub lease: Option<HeldLease>,
    /// Uid of the Active's Lease, if it could be read.
    pub active_lease: Option<String>,
    /// Objects of the nine kinds that no mirror made, or that a reconciler has adopted; some of them.
    pub unmarked: Vec<String>,
}

/// The hub's own Lease, held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// By whom.
    pub holder: String,
    /// It was acquired by a promotion over the hub whose Lease has this uid.
    pub promoted_over: Option<String>,
    /// It was renewed after the fence had been opened.
    pub led: bool,
}

/// What the hub may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Mirror and watch.
    Standby,
    /// A promotion got as far as the Lease and no further: give it back, then mirror and watch.
    GiveBack,
    /// It was promoted, and restarted with the options of a Standby: it leads on (design record, decision 8).
    Resume,
    /// Neither mirror nor be promoted: the wipe was skipped.
    Refused(WipeSkipped),
}

/// How it shows that the wipe was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WipeSkipped {
    /// The hub's own old Lease is there.
    OldLease {
        /// Who holds it.
        holder: String,
    },
    /// Objects are there that no mirror made.
    UnmarkedObjects {
        /// Some of them.
        examples: Vec<String>,
    },
}

impl std::fmt::Display for WipeSkipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the wipe was skipped: ")?;
        match self {
            Self::OldLease { holder } => write!(f, "this hub's own old Lease is still held by {holder}"),
            Self::UnmarkedObjects { examples } => {
                write!(f, "objects are here that no mirror made ({})", examples.join(", "))
            }
        }?;
        f.write_str("; delete the Lease and all hub objects here, or run with --ha-mode=active")
    }
}

/// What a hub that found this may do.
pub fn judge(found: &Found) -> Standing {
    let Some(lease) = &found.lease else {
        return match found.unmarked.as_slice() {
            [] => Standing::Standby,
            examples => Standing::Refused(WipeSkipped::UnmarkedObjects { examples: examples.to_vec() }),
        };
    };
    let same_active = match (&lease.promoted_over, &found.active_lease) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(over), Some(now)) => over == now,
    };
    match (same_active, lease.led || !found.unmarked.is_empty()) {
        (true, true) => Standing::Resume,
        (true, false) => Standing::GiveBack,
        (false, _) => Standing::Refused(WipeSkipped::OldLease { holder: lease.holder.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Found, HeldLease, Standing, WipeSkipped, judge};

    #[allow(clippy::unnecessary_wraps, reason = "as it is found")]
    fn lease(promoted_over: Option<&str>, led: bool) -> Option<HeldLease> {
        Some(HeldLease { holder: "b".into(), promoted_over: promoted_over.map(Into::into), led })
    }

    fn found(lease: Option<HeldLease>, active: Option<&str>, unmarked: &[&str]) -> Found {
        Found {
            lease,
            active_lease: active.map(Into::into),
            unmarked: unmarked.iter().map(ToString::to_string).collect(),
        }
    }

    fn old_lease() -> Standing {
        Standing::Refused(WipeSkipped::OldLease { holder: "b".into() })
    }

    #[rstest]
    #[case::fresh(found(None, Some("x"), &[]), Standing::Standby)]
    #[case::active_before(found(lease(None, true), Some("x"), &["Cluster ns/c"]), old_lease())]
    #[case::active_before_and_empty(found(lease(None, false), None, &[]), old_lease())]
    #[case::promoted_and_restarted(found(lease(Some("x"), true), Some("x"), &["Cluster ns/c"]), Standing::Resume)]
    #[case::promoted_and_the_active_is_gone(found(lease(Some("x"), true), None, &[]), Standing::Resume)]
    #[case::killed_before_its_first_renewal(found(lease(Some("x"), false), Some("x"), &["Cluster ns/c"]), Standing::Resume)]
    #[case::killed_before_the_fence(found(lease(Some("x"), false), Some("x"), &[]), Standing::GiveBack)]
    #[case::standby_of_a_new_active(found(lease(Some("x"), true), Some("y"), &["Cluster ns/c"]), old_lease())]
    fn a_lease_tells_what_the_hub_was(#[case] found: Found, #[case] expected: Standing) {
        assert_eq!(judge(&found), expected);
    }

    #[test]
    fn objects_that_no_mirror_made_are_not_overwritten() {
        let Standing::Refused(refusal) = judge(&found(None, Some("x"), &["Project h/p"])) else {
            panic!("it must refuse");
        };
        assert_eq!(
            refusal.to_string(),
            "the wipe was skipped: objects are here that no mirror made (Project h/p); delete the Lease and all hub \
             objects here, or run with --ha-mode=active"
        );
    }
}
